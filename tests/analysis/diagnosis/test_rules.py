"""Rules over short real trainings and over frames made by hand; each number against the files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.support.steps import a_step
from tests.support.synthetic import make_run
from uwml_core.analysis.diagnosis.examine import Examination, ask, diagnose
from uwml_core.analysis.diagnosis.finding import SEVERITIES, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.rules import RULES
from uwml_core.analysis.diagnosis.suspects import (
    false_negative_ranking,
    shared_captions,
    wrong_pair_ranking,
)
from uwml_core.data import open_data
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.sick import KINDS, sick_run

LOGS = Path(__file__).parents[3] / "logs"
D = ("i2t", "t2i")
BY_NAME = {rule.name: rule for rule in RULES}


def frames(config: dict[str, Any] | None = None, **tables: pd.DataFrame) -> Frames:
    return Frames(
        directions=("i2t", "t2i"),
        modalities=("image", "text"),
        config=config or {},
        load=lambda name: tables.get(name, pd.DataFrame()),
    )


def steps(n: int = 100, **columns: object) -> pd.DataFrame:
    return pd.DataFrame({"step": np.arange(n), "epoch": 0, "batch_size": 64, **columns})


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sick")
    for kind in ("nan-at-step", "accumulated-batch"):
        sick_run(kind, root=root, seed=7)
    return root


@pytest.mark.parametrize("kind", ["nan-at-step", "accumulated-batch"])
def test_an_illness_that_was_trained_is_found(sick: Path, kind: str) -> None:
    found = diagnose(open_run(sick / f"{kind}-seed7"))
    assert {finding.rule for finding in found.findings} & set(KINDS[kind].expects)
    assert (
        found.not_applicable.keys() | set(found.silent) | {f.rule for f in found.findings} == BY_NAME.keys()
    )


def test_negatives_of_a_claimed_batch_are_those_in_the_files(sick: Path) -> None:
    run = sick / "accumulated-batch-seed7"
    (finding,) = [f for f in diagnose(open_run(run)).findings if f.rule == "claimed_batch"]
    counted, claimed = duckdb.sql(
        f"""with s as (select *, row_number() over (order by step desc) k, count(*) over () n
            from '{run}/steps/*.parquet')
            select median(negatives_per_anchor) filter (k <= round(n / 4)), median(effective_batch_size)
            from s"""
    ).fetchall()[0]
    assert finding.number("negatives_per_anchor").value == counted
    assert finding.number("claimed_batch").value == claimed == 128


@pytest.mark.parametrize("name", ["sample-infonce", "sample-video"])
def test_rules_stay_silent_on_healthy_samples(name: str) -> None:
    assert diagnose(open_run(LOGS / name)).findings == ()


def test_wrong_pairs_of_the_sample_are_suspected_and_most_suspects_are_wrong() -> None:
    run = open_run(LOGS / "sample-uwml")
    (finding,) = diagnose(run).findings
    assert finding.rule == "wrong_pairs"
    n = finding.number("suspected_share").n
    suspected = round(n * finding.number("suspected_share").value)
    right = open_data("emoji_pairs", only="source=noto")
    told = dict(zip(right.item_ids.tolist(), right.captions, strict=True))
    items = run.items(columns=["item_id", "captions"]).set_index("item_id")["captions"]
    lowest = wrong_pair_ranking(run.rollup("items").to_pandas())["item_id"].head(suspected)
    wrong = [tuple(items[item]) != tuple(told[item]) for item in lowest]
    assert suspected > 0.25 * n
    # 40 % of all are
    assert np.mean(wrong) > 0.9


@pytest.mark.parametrize(
    ("loss", "judged"),
    [
        ({"curve": "bell", "steepness_start": 16.0, "hard_floor": 0.0}, False),
        ({"curve": "bell", "steepness_start": 16.0, "hard_floor": 0.3}, True),
        ({"curve": "uniform", "steepness_start": 16.0, "hard_floor": 0.0}, True),
        ({"curve": "bell", "steepness_start": "?", "hard_floor": None}, True),
    ],
)
def test_margins_under_a_bell_that_begins_steep_tell_nothing_of_wrong_pairs(
    tmp_path: Path, loss: dict[str, object], judged: bool
) -> None:
    shutil.copytree(LOGS / "sample-uwml", tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    info["config"]["loss"] |= loss
    (tmp_path / "run" / "run.json").write_text(json.dumps(info), encoding="utf-8")
    examination = diagnose(open_run(tmp_path / "run"))
    assert ("wrong_pairs" in [finding.rule for finding in examination.findings]) is judged


def test_collapse_of_the_sample_is_found_with_the_spread_in_the_files() -> None:
    run = LOGS / "sample-collapse"
    finding = diagnose(open_run(run)).findings[0]
    spread, n = duckdb.sql(
        f"""with p as (select * from '{run}/pairs/*.parquet'
              where step > (select max(step) - 20 from '{run}/pairs/*.parquet')),
            v as (select positive_similarity v from p union all select negative_similarity from p)
            select stddev_pop(v::double), count(*) from v where isfinite(v)"""
    ).fetchall()[0]
    assert (finding.rule, finding.severity) == ("collapse", "serious")
    assert finding.number("similarity_spread").value == pytest.approx(spread, rel=1e-9)
    assert finding.number("similarity_spread").n == n


@pytest.mark.parametrize(
    "options",
    [
        {"epochs": 1, "steps_per_epoch": 1},
        {"nan_steps": (3, 4)},
        {"directions": ("v2t", "t2v")},
        *({"without": (name,)} for name in ("steps", "pairs", "evals", "snapshots", "neighbors", "items")),
    ],
)
def test_no_run_makes_a_rule_fail(tmp_path: Path, options: dict[str, Any]) -> None:
    found = diagnose(open_run(make_run(tmp_path, **options)))
    assert all(finding.severity in SEVERITIES for finding in found.findings)


def test_an_empty_run_is_judged_by_no_rule_that_finds_something(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "empty"):
        pass
    found = diagnose(open_run(tmp_path / "empty"))
    assert (found.findings, found.worst) == ((), None)


def test_non_finite_loss_names_its_first_step() -> None:
    loss = np.ones(50)
    loss[[20, 22]] = np.nan
    events = pd.DataFrame(
        {
            "kind": ["checkpoint", "non_finite", "non_finite"],
            "level": ["info", "error", "info"],
            "step": [10, 20, 23],
        }
    )
    (finding,) = ask(
        BY_NAME["non_finite"], frames(steps=steps(50, loss=loss, not_finite=np.isnan(loss)), events=events)
    )
    assert finding.number("first_step").value == 20
    assert finding.number("steps").value == 2
    assert finding.evidence.frame["step"].tolist() == list(range(24))


@pytest.mark.parametrize(("high", "found"), [(slice(None, None, 8), True), (slice(100, 120), False)])
def test_a_gradient_jumps_where_it_does_so_again_and_again(high: slice, found: bool) -> None:
    norm = np.ones(200)
    norm[high] = 50.0
    assert bool(ask(BY_NAME["unstable"], frames(steps=steps(200, gradient_norm=norm)))) == found


def test_what_was_not_logged_at_every_step_is_finite_and_what_never_was_is_not(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "now-and-then") as log:
        for step in range(6):
            log.log_step(a_step(step), item_ids=[1, 2], gradient_norm=None if step % 2 else 1.0)
    assert "non_finite" in diagnose(open_run(log.path)).silent
    with RunLogger(tmp_path, "never") as log:
        log.log_step(a_step(0), item_ids=[1, 2], loss=float("nan"))
    (finding,) = (f for f in diagnose(open_run(log.path)).findings if f.rule == "non_finite")
    assert finding.number("steps").value == 1


@pytest.mark.parametrize(("weight", "found"), [(0.01, True), (0.1, False), (np.nan, False)])
def test_a_direction_without_weight_is_found(weight: float, found: bool) -> None:
    table = steps(direction_weight_i2t=1 - weight, direction_weight_t2i=weight)
    result = ask(BY_NAME["one_direction"], frames(steps=table))
    assert bool(result) == found or isinstance(result, str)


def test_a_foreign_claim_is_read_from_its_own_names() -> None:
    config = {"args": {"per_device_train_batch_size": 32, "gradient_accumulation_steps": 8}}
    table = steps(negatives_per_anchor=31.0)
    (finding,) = ask(BY_NAME["claimed_batch"], frames(config, steps=table))
    assert finding.number("claimed_batch").value == 256
    assert finding.changes[0].value == 8


def test_a_rule_says_which_columns_it_needs() -> None:
    result = ask(BY_NAME["direction_jitter"], frames(steps=steps(loss=1.0)))
    assert "steps.direction_weight_d" in str(result)


def test_a_rule_is_asked_again_only_about_new_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = open_run(make_run(tmp_path))
    asked: list[str] = []
    monkeypatch.setattr(
        "uwml_core.analysis.diagnosis.examine.ask", lambda rule, given: asked.append(rule.name) or ()
    )
    examination = Examination(run)
    examination.update()
    examination.update()
    assert sorted(asked) == sorted(BY_NAME)


def test_captions_shared_by_labels_are_counted_by_hand() -> None:
    items = pa.table(
        {
            "item_id": [1, 2, 3, 4, 5],
            "label": [10, 20, 20, 30, 40],
            "captions": [["A cat ", "dog"], ["a cat"], ["fish", "Fish"], [], None],
        }
    )
    found, has_one = shared_captions(items)
    (row,) = found.to_dict("records")
    assert has_one.tolist() == [True, True, False, False, False]
    assert (row["caption"], row["items"], row["labels"]) == ("a cat", 2, 2)
    # each of the two meets the other with 1 of 4 and both draw it with 1/2 * 1
    assert row["chance"] == pytest.approx(0.5 / 4)
    nothing, none_has = shared_captions(items.slice(0, 0))
    assert nothing.empty
    assert none_has.tolist() == []


def test_items_with_low_margins_are_suspected_first() -> None:
    rows = pd.DataFrame(
        {
            "direction": ["i2t", "i2t", "i2t", "t2i", "t2i", "t2i"],
            "item_id": [1, 2, 3, 1, 2, 3],
            "n": [4, 4, 0, 4, 4, 0],
            "margin_mean": [0.2, -0.3, np.nan, 0.1, -0.1, np.nan],
        }
    )
    ranking = wrong_pair_ranking(rows)
    assert ranking["item_id"].tolist() == [2, 1]
    assert ranking["mean_margin"].tolist() == pytest.approx([-0.2, 0.15])


def test_equal_captions_come_before_similar_embeddings() -> None:
    rows = pd.DataFrame(
        {
            "step": 9,
            "item_id": 1,
            "negative_item_id": [2, 3],
            "similarity": [0.9, 0.5],
            "margin": [-0.2, 0.1],
        }
    )
    assert false_negative_ranking(rows)["negative_item_id"].tolist() == [2, 3]
    captions = {1: ["red heart"], 2: ["a tractor"], 3: ["red heart"]}
    assert false_negative_ranking(rows, captions)["negative_item_id"].tolist() == [3, 2]


def test_without_captions_what_stays_near_comes_first_if_it_is_near_at_the_end() -> None:
    rows = pd.DataFrame(
        {
            "step": [0, 0, 9, 9, 9],
            "item_id": 1,
            "negative_item_id": [2, 4, 2, 2, 3],
            "similarity": [0.1, 0.9, 0.2, 0.4, 0.9],
            "margin": 0.1,
        }
    )
    found = false_negative_ranking(rows)
    assert found[["negative_item_id", "encounters"]].to_numpy().tolist() == [[2, 3], [3, 1]]
    assert found["similarity"].tolist() == pytest.approx([0.3, 0.9])


def test_confidence_grows_from_the_limit() -> None:
    assert [confidence(value, 1.0, 3.0) for value in (1.0, 2.0, 5.0)] == [0.5, 0.75, 1.0]


@pytest.mark.parametrize(("dead", "wrong", "found"), [(0.4, 0.3, True), (0.2, 0.1, False)])
def test_dead_and_wrong_sign_zones_add_up(dead: float, wrong: float, found: bool) -> None:
    shares = {
        f"{name}_share_{d}": value for name, value in (("dead", dead), ("wrong_sign", wrong)) for d in D
    }
    result = ask(BY_NAME["dead_zone"], frames(steps=steps(**shares)))
    assert [round(finding.number("lost_share").value, 6) for finding in result] == [0.7] * found


@pytest.mark.parametrize(("count", "found"), [(32.0, True), (0.0, False)])
def test_anchors_without_negatives_are_counted(count: float, found: bool) -> None:
    table = steps(no_negative_count_i2t=count, no_negative_count_t2i=0.0)
    result = ask(BY_NAME["no_negatives"], frames(steps=table))
    assert [finding.number("no_negative_share").value for finding in result] == [0.25] * found
