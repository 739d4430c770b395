"""What may be compared, what is one method, what the page says, and how its tables leave it."""

import csv
import io
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.compare.ablation import ablation, ablation_texts, configuration_diff
from uwml_core.analysis.compare.comparable import obstacle, recount_error, recount_note
from uwml_core.analysis.compare.comparison import compare, seed_values
from uwml_core.analysis.compare.export import to_latex, to_markdown
from uwml_core.analysis.compare.headline import chosen_note, compare_headline, seeds_note
from uwml_core.analysis.compare.methods import Member, Method, methods_of, plain_first, seeds_text
from uwml_core.analysis.compare.outcomes import Outcome, Ranks, choose, evaluations
from uwml_core.analysis.compare.progress import recall_progress
from uwml_core.analysis.compare.settings import ADDED_LATER, differing, settings_of
from uwml_core.analysis.compare.tables import difference_texts
from uwml_core.training.config import OptimizationConfig, TrainConfig
from uwml_core.weighting import UWMLConfig

HOSTILE = (
    r"50% \input{/etc/passwd} & {x}_^~#$",
    "a|b `code` *bold* [x](javascript:alert(1)) <script>",
    "two\nlines\r\n\\\\ and a tab\t.",
    "\u202eoverride שלום 跑 ✓",
    "[optional] argument",
    "*starred",
    "ends with a backslash \\",
)


def member(run_id: str, seed: int | None = 0, data: str | None = "d", **loss: object) -> Member:
    config = {"loss": UWMLConfig(**loss).to_dict(), "train": {"seed": seed, "epochs": 3}}
    return Member(run_id=run_id, name=run_id, seed=seed, settings=settings_of(config), fingerprint=data)


def outcome(i2t: list[float], t2i: list[float] | None = None, step: int = 9) -> Outcome:
    ranks = {}
    for direction, values in (("i2t", i2t), ("t2i", i2t if t2i is None else t2i)):
        n = len(values)
        caption = np.full(n, -1) if direction == "i2t" else np.zeros(n, dtype=int)
        ranks[direction] = Ranks(item=np.arange(n), caption=caption, rank=np.array(values, dtype=float))
    return Outcome(step=step, epoch=1, ranks=ranks)


def hits(n: int, found: int) -> list[float]:
    """Ranks of n queries of which the first ``found`` are answered right at once."""
    return [1.0] * found + [20.0] * (n - found)


@pytest.fixture
def clear():
    """A method that finds 30 more of 100 queries than its baseline."""
    plain = member("plain", curve="uniform", direction_mode="off")
    return [(member("bell"), outcome(hits(100, 60))), (plain, outcome(hits(100, 30)))]


def test_settings_have_defaults_and_flat_names() -> None:
    found = settings_of({"loss": {"center": 0.1}, "train": {"epochs": 3}, "x": {"y": {"z": [1, 2]}}})
    assert found["loss.center"] == 0.1
    assert found["loss.topk"] == UWMLConfig().topk
    assert found["x.y.z"] == [1, 2]
    assert settings_of(UWMLConfig(center=0.1).to_dict())["loss.center"] == 0.1
    assert settings_of({}) == {}


def logged_config() -> dict[str, Any]:
    """Defaults as a run's log has them: from scratch nothing is frozen."""
    return TrainConfig(train=OptimizationConfig(warmup_epochs=0)).to_dict()


def test_what_older_runs_lack_has_the_value_that_the_trainer_has_now() -> None:
    now = logged_config()
    for name, value in ADDED_LATER.items():
        section, key = name.split(".")
        assert now[section][key] == value


def test_a_run_of_an_older_trainer_differs_in_nothing() -> None:
    now = logged_config()
    old = {
        name: {k: v for k, v in section.items() if f"{name}.{k}" not in ADDED_LATER}
        for name, section in now.items()
    }
    old["loss"] = {k: v for k, v in now["loss"].items() if k not in ("topk", "hn_alpha")}
    assert differing([settings_of(now), settings_of(old)]) == []


def test_differing_leaves_out_seed_names_and_what_epochs_imply() -> None:
    one, two = (
        settings_of(
            {
                "loss": {"total_steps": 10 * e},
                "train": {"epochs": e, "seed": e, "resume": "x" * e},
                "run": {"name": str(e)},
            }
        )
        for e in (1, 2)
    )
    assert differing([one, two]) == ["train.epochs"]
    assert differing([{"a": 1}, {"a": 1.0}]) == []
    assert differing([{"a": 1}, {}]) == ["a"]


def test_runs_that_differ_in_the_seed_alone_are_one_method() -> None:
    runs = [member("uwml-seed0", 0), member("x", 0, center=0.0), member("uwml-seed1", 1)]
    first, second = methods_of(runs)
    assert (first.name, [m.run_id for m in first.members], first.seeds) == (
        "uwml",
        ["uwml-seed0", "uwml-seed1"],
        [0, 1],
    )
    assert second.name == "x"
    assert seeds_text(first) == "2 seeds"


@pytest.mark.parametrize("change", [{"data": "other"}, {"seed": None}, {"center": 0.2}])
def test_other_data_no_seed_or_another_setting_is_another_method(change: dict[str, object]) -> None:
    assert len(methods_of([member("a"), member("b", **{"seed": 1, **change})])) == 2


def test_runs_without_settings_and_finished_models_are_alone() -> None:
    bare = [Member(run_id=k, name="same", seed=0, settings={}) for k in ("a", "b")]
    assert [m.name for m in methods_of(bare)] == ["same (a)", "same (b)"]
    model = settings_of({"finished_model": {"images": "i.npy"}})
    done = [Member(run_id=k, name=k, seed=0, settings=model) for k in ("a", "b")]
    assert len(methods_of(done)) == 2


def test_repeats_of_a_seed_are_runs_not_seeds() -> None:
    (method,) = methods_of([member("a", 3), member("b", 3)])
    assert seeds_text(method) == "2 runs"
    values = seed_values(method, [outcome(hits(10, 2)), outcome(hits(10, 4))], [("i2t", "R@1")])
    assert values == [{3: 30.0}]


def test_the_natural_baseline_is_unweighted_and_of_the_same_base() -> None:
    plain = member("plain", curve="uniform", direction_mode="off")
    other = member("vse", base="triplet", curve="uniform", direction_mode="off")
    bell = member("bell")
    assert plain_first([bell, plain, other], bell).run_id == "plain"
    assert plain_first([bell, other], bell).run_id == "vse"
    assert plain_first([bell, member("older")], bell).run_id == "older"


@pytest.mark.parametrize(
    ("other", "ranks", "says"),
    [
        (member("b", data="e"), outcome(hits(30, 3)), "runs on different data"),
        (member("b"), outcome(hits(31, 3)), "they answered 30 and 31 i2t queries"),
        (member("b"), None, "b has no ranks on val"),
        (member("b", modalities=("video", "text")), outcome(hits(30, 3)), ""),
    ],
)
def test_what_cannot_be_compared_is_said(other: Member, ranks: Outcome | None, says: str) -> None:
    first = (member("a"), outcome(hits(30, 3)))
    assert says in obstacle(first, (other, ranks), "val")
    found = compare([first, (other, ranks)], "a", "val")
    assert (len(found.differences) == 0) == bool(says)
    if says:
        assert says in compare_headline(found, 2)


def test_the_same_number_of_other_queries_cannot_be_compared() -> None:
    moved = outcome(hits(30, 3))
    moved.ranks["t2i"].item[-1] = 77
    sentence = obstacle((member("a"), outcome(hits(30, 3))), (member("b"), moved), "val")
    assert sentence == "a and b cannot be compared: they answered other t2i queries."


def test_unknown_data_are_compared_where_the_queries_are_the_same() -> None:
    found = compare(
        [(member("a"), outcome(hits(30, 3))), (member("b", data=None), outcome(hits(30, 9)))], "a", "val"
    )
    assert len(found.methods) == 2


def test_a_baseline_without_ranks_is_said_once() -> None:
    found = compare([(member("a"), None), (member("b"), outcome(hits(30, 3)))], "a", "val")
    assert compare_headline(found, 2) == "Too little data yet: a has no ranks on val."


def test_headline_names_the_winner_with_its_interval(clear) -> None:
    found = compare(clear, "plain", "val")
    row = found.differences.iloc[0]
    assert (row["baseline"], row["value"], row["difference"]) == (30.0, 60.0, 30.0)
    assert (row["gained"], row["lost"], row["queries"], row["items"]) == (30, 0, 100, 100)
    expected = (
        f"+30.0 R@1 (i2t), 95 % interval +{row['low']:.1f} to +{row['high']:.1f}, paired over 100 queries"
    )
    assert compare_headline(found, 2).startswith(f"bell beats plain: {expected}; +30.0 (t2i), ")
    back = compare(clear, "bell", "val")
    assert compare_headline(back, 2).startswith("plain is worse than bell: −30.0 R@1 (i2t)")


def test_headline_of_noise_of_opposite_directions_and_of_the_same_run() -> None:
    first = (member("a"), outcome([1.0, 20.0] * 50))
    turned = (member("b", center=0.0), outcome([20.0, 1.0] * 50))
    assert compare_headline(compare([first, turned], "a", "val"), 2).startswith(
        "No difference beyond noise between b and a: 0.0 R@1 (i2t), 95 % interval −"
    )
    mixed = (member("c", center=0.1), outcome(hits(100, 90), hits(100, 10)))
    assert "c beats a in one direction and is worse in the other: +40.0 R@1 (i2t)" in compare_headline(
        compare([first, mixed], "a", "val"), 2
    )
    twin = (member("d", center=0.2), first[1])
    assert compare_headline(compare([first, twin], "a", "val"), 2) == (
        "d and a find the same queries: no difference in R@1."
    )


def test_headline_of_too_little_data() -> None:
    few = [(member("a"), outcome(hits(10, 1))), (member("b", center=0.0), outcome(hits(10, 9)))]
    assert compare_headline(compare(few, "a", "val"), 2).startswith(
        "Too little data yet to tell b from a: +80.0 R@1 (i2t) of 10 queries, 20 items needed for an interval"
    )
    assert compare_headline(compare(few[:1], "a", "val"), 1).startswith(
        "Too little data yet: choose a second"
    )
    seeds = [(member("a"), outcome(hits(30, 1))), (member("a2", 1), outcome(hits(30, 2)))]
    assert compare_headline(compare(seeds, "a", "val"), 2).startswith("The chosen runs are one method")


def test_headline_counts_several_methods(clear) -> None:
    worse = (member("hard", curve="hard"), outcome(hits(100, 1)))
    elsewhere = (member("far", data="e"), outcome(hits(100, 1)))
    text = compare_headline(compare([*clear, worse, elsewhere], "plain", "val"), 4)
    assert text.startswith(
        "Of 2 methods held against plain, 1 better, 1 worse, 0 not beyond noise. bell beats"
    )
    assert text.endswith("plain and far cannot be compared: they are runs on different data.")


def test_seeds_are_paired_and_decide_the_headline() -> None:
    found_by = {0: (30, 40), 1: (35, 44), 2: (28, 40)}
    entries = []
    for seed, (was, now) in found_by.items():
        plain = member(f"plain-{seed}", seed, curve="uniform", direction_mode="off")
        entries += [(plain, outcome(hits(100, was))), (member(f"bell-{seed}", seed), outcome(hits(100, now)))]
    entries.append((member("bell-9", 9), outcome(hits(100, 99))))
    found = compare(entries, "plain-0", "val")
    row = found.differences.iloc[0]
    assert (row["seeds"], row["seed_difference"]) == (3, pytest.approx((10 + 9 + 12) / 3))
    # the seed that only one of both has counts for the queries alone
    assert row["difference"] == pytest.approx((40 + 44 + 40 + 99) / 4 - (30 + 35 + 28) / 3)
    assert compare_headline(found, 7).startswith(
        "bell beats plain: +10.3 R@1 (i2t), 95 % interval +6.5 to +14.1"
    )
    assert "paired over 3 seeds" in compare_headline(found, 7)
    assert seeds_note(found.differences).startswith("Intervals are over seeds")
    table = difference_texts(found.differences, "plain", "bell")
    assert table[1][5] == "+6.5 to +14.1, n = 3"


def test_table_says_one_seed_and_p_only_of_independent_queries(clear) -> None:
    found = compare(clear, "plain", "val")
    table = difference_texts(found.differences, "plain", "bell")
    assert table[0][:4] == ["Metric", "plain", "bell", "Difference"]
    assert table[1][:4] == ["R@1 i2t", "30.0", "60.0", "+30.0"]
    assert table[1][5:] == ["one seed", "30 / 0", "< 0.001"]
    assert table[-1][0] == "rsum"
    assert table[-1][6:] == ["–", "–"]
    again = outcome(hits(100, 30))
    again.ranks["t2i"].item[1] = 0
    again.ranks["t2i"].caption[1] = 1
    other = outcome(hits(100, 60))
    other.ranks["t2i"].item[1] = 0
    other.ranks["t2i"].caption[1] = 1
    several = compare([(clear[1][0], again), (clear[0][0], other)], "plain", "val").differences
    assert math.isnan(several[several["direction"] == "t2i"]["mcnemar_p"].iloc[0])


def test_lower_median_rank_is_better() -> None:
    entries = [(member("a"), outcome([9.0] * 60)), (member("b", center=0.0), outcome([4.0] * 60))]
    rows = compare(entries, "a", "val").differences.set_index(["metric", "direction"])
    assert rows.loc[("median_rank", "i2t"), "difference"] == -5.0
    assert rows.loc[("median_rank", "i2t"), "verdict"] == "better"


def test_hit_rates_that_are_not_the_logged_ones_are_named() -> None:
    one = outcome(hits(10, 3))
    evals = pd.DataFrame(
        {
            "step": 9,
            "split": "val",
            "direction": ["i2t", "t2i"],
            "metric": "R@1",
            "value": [30.0, 32.5],
            "n": 10,
        }
    )
    assert recount_error(one, evals, "val") == pytest.approx(2.5)
    assert recount_note([("a", 0.0), ("b", 2.5)]).endswith("points: b (2.50)")
    assert recount_note([("a", 0.0)]) == "Hit rates counted from ranks equal the logged R@K"
    assert math.isnan(recount_error(one, evals, "test"))
    assert recount_note([("a", math.nan)]) == "No logged R@K to check the hit rates against"


def test_evaluation_is_the_newest_or_the_best() -> None:
    part = pd.DataFrame(
        {"split": "val", "step": [3, 3, 7, 7, 9, 9], "epoch": [0, 0, 1, 1, 2, 2],
         "direction": ["i2t", "t2i"] * 3, "n": 10, "hits": [1, 1, 5, 6, 6, 4]}
    )  # fmt: skip
    found = evaluations([part])
    assert choose(found, "val", "last") == (9, 2)
    assert choose(found, "val", "best") == (7, 1)
    assert choose(found, "test", "last") is None
    assert choose(evaluations([]), "val", "best") is None
    note = chosen_note("last", [("a", 2, 9), ("b", 2, 9), ("c", None, 7)])
    assert note == "Newest evaluations: a, b at epoch 2; c at step 7"
    assert chosen_note("last", [("a", 2, 9), ("b", 2, 9)]) == ""


def test_recall_over_epochs_is_the_mean_of_the_seeds_with_their_range() -> None:
    def evals(values: list[float]) -> pd.DataFrame:
        rows = {"step": [4, 9], "epoch": [0, 1], "split": "val", "direction": "i2t", "metric": "R@1"}
        return pd.DataFrame({**rows, "value": values, "n": 50})

    method = Method(name="m", members=(member("a", 0), member("b", 1)))
    curves = recall_progress([method], {"a": evals([10.0, 20.0]), "b": evals([20.0, np.nan])}, "val")
    assert curves[["epoch", "value", "low", "high", "runs"]].to_numpy().tolist() == [
        [0.0, 15.0, 10.0, 20.0, 2.0],
        [1.0, 20.0, 20.0, 20.0, 1.0],
    ]
    assert recall_progress([method], {"a": evals([1, 2])[:0], "b": evals([1, 2])[:0]}, "val").empty


def test_configuration_diff_and_ablation_hold_what_differs(clear) -> None:
    found = compare(clear, "plain", "val")
    diff = configuration_diff(found.methods)
    assert diff.columns.tolist() == ["setting", "plain", "bell"]
    assert diff.to_numpy().tolist() == [
        ["loss.curve", "uniform", "bell"],
        ["loss.direction_mode", "off", "adaptive"],
    ]
    frame = ablation(found)
    assert frame["R@1 i2t"].tolist() == [30.0, 60.0]
    assert (frame["R@1 i2t low"] < frame["R@1 i2t"]).all()
    texts = ablation_texts(frame, found)
    assert texts[0][:4] == ["Method", "loss.curve", "loss.direction_mode", "R@1 i2t"]
    assert texts[1][0] == "plain"
    assert re.fullmatch(r"30\.0 ± \d+\.\d", texts[1][3])
    assert texts[1][-1] == "1 seed"
    bare = Method(name="foreign", members=(Member(run_id="f", name="f", seed=None, settings={}),))
    assert configuration_diff([*found.methods, bare]).columns.tolist() == ["setting", "plain", "bell"]


def read_markdown(text: str) -> list[list[str]]:
    """Cells of a Markdown table, as GitHub splits and unescapes them."""
    rows = []
    for line in text.splitlines():
        cells = re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]
        rows.append([re.sub(r"\\([\\`*_{}\[\]()#+!|~<>$&])", r"\1", cell.strip()) for cell in cells])
    return [rows[0], *rows[2:]]


def read_latex(text: str) -> list[list[str]]:
    """Cells of a tabular, commands turned back into what they print."""
    back = {
        r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^",
        r"\textless{}": "<", r"\textgreater{}": ">", r"\textbar{}": "|", r"\textquotedbl{}": '"',
        "$-$": "−", r"$\pm$": "±", "--": "–",
        **{f"\\{mark}": mark for mark in "{}&%$#_"},
    }  # fmt: skip
    tokens = re.compile("|".join(re.escape(token) for token in sorted(back, key=len, reverse=True)))
    rows = []
    for line in text.splitlines():
        if not line.endswith(r" \\"):
            assert line in (r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}") or line.startswith(
                r"\begin{tabular}"
            )
            continue
        cells = re.split(r"(?<!\\) & ", line.removesuffix(r" \\"))
        rows.append([tokens.sub(lambda m: back[m.group()], c.removeprefix("{}")) for c in cells])
    return rows


def plain(text: str) -> str:
    return " ".join(text.replace("\u202e", "").split())


@pytest.mark.parametrize("read", [read_markdown, read_latex])
def test_hostile_names_survive_an_export_and_stay_text(read) -> None:
    table = [["Method", "R@1 i2t"], *([name, f"{k}.0 ± 0.2"] for k, name in enumerate(HOSTILE))]
    written = (to_markdown if read is read_markdown else to_latex)(table)
    assert read(written) == [[plain(cell) for cell in row] for row in table]
    assert len(written.splitlines()) == len(table) + (1 if read is read_markdown else 5)


def test_latex_has_no_command_of_a_name() -> None:
    written = to_latex([["x"], *([name] for name in HOSTILE)])
    commands = set(re.findall(r"\\([a-zA-Z]+)", written))
    assert commands <= {
        "begin", "end", "toprule", "midrule", "bottomrule", "textbackslash", "textasciitilde",
        "textasciicircum", "textless", "textgreater", "textbar", "textquotedbl",
    }  # fmt: skip


def test_csv_holds_the_frame(clear) -> None:
    frame = compare(clear, "plain", "val").differences
    read = list(csv.DictReader(io.StringIO(frame.to_csv(index=False))))
    assert [row["metric"] for row in read] == frame["metric"].tolist()
    assert [float(row["low"]) for row in read] == frame["low"].tolist()
