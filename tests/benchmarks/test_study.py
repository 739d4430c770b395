"""The study: its reduced form, what it keeps, and its arithmetic over seeds."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.study.cases import CANDIDATES
from benchmarks.study.configuration import Configuration
from benchmarks.study.methods import METHODS, NOISES, TUNED_INFONCE, configuration, tuning
from benchmarks.study.paired import Results, told
from benchmarks.study.pictures import PICTURE, picture
from benchmarks.study.plan import MODALITIES, chosen, parts
from benchmarks.study.promises import Promise
from benchmarks.study.quick import checks
from benchmarks.study.store import Store
from benchmarks.study.tables import TABLES, document
from uwml_core.analysis.compare.seeds import SeedInterval
from uwml_core.weighting import loss_preset


def of(method: str = "infonce", **settings: float) -> Configuration:
    named = {f"loss.{name}": value for name, value in settings.items()}
    return Configuration(modality="image", encoder="tiny", method=method, preset="infonce", settings=named)


def rows(which: Configuration, recalls: dict[int, float], split: str = "test") -> list[dict[str, object]]:
    return [
        {"key": which.key, "seed": seed, f"{split}_there_r1": value, f"{split}_back_r1": value + 2}
        for seed, value in recalls.items()
    ]


@pytest.mark.slow
def test_the_quick_form_sees_what_is_far_beyond_noise() -> None:
    found = list(checks())
    assert len(found) == 4
    assert [check for check in found if not check.holds] == []


def test_a_result_is_found_again_whatever_the_method_is_called() -> None:
    assert of("one", temperature=0.1).key == of("another", temperature=0.1).key
    assert of(temperature=0.1).key != of(temperature=0.2).key


def test_the_store_asks_only_for_seeds_that_it_lacks(tmp_path: Path) -> None:
    store, first, second = Store(tmp_path / "new"), of(), of(temperature=0.1)
    assert store.missing(first, (0, 1)) == [0, 1]
    store.add(first, rows(first, {0: 10.0}))
    assert store.missing(first, (0, 1)) == [1]
    store.add(first, rows(first, {1: 20.0}))
    store.add(second, rows(second, {1: 30.0}))
    assert (store.missing(first, (0, 1)), store.missing(second, (0, 1))) == ([], [0])
    table = Store(tmp_path / "new").merge(tmp_path / "copy")
    assert sorted(table["test_there_r1"]) == [10.0, 20.0, 30.0]
    pd.testing.assert_frame_equal(table, pd.read_parquet(tmp_path / "copy" / "results.parquet"))


def test_differences_are_taken_seed_by_seed() -> None:
    first, second = of(), of(temperature=0.1)
    table = pd.DataFrame([*rows(first, {0: 10.0, 1: 21.0, 2: 99.0}), *rows(second, {1: 20.0, 0: 12.0})])
    found = Results(table).difference(first, second, "R@1")
    # the seeds that both have: -2 and 1, whose half width is 12.706 * 1.5
    assert (found.n, found.mean) == (2, -0.5)
    assert found.high == pytest.approx(-0.5 + 12.7062 * 1.5, abs=1e-3)
    assert Results(table).mean(first, "R@1 apart").mean == 2.0


def test_what_was_not_trained_is_told_as_such() -> None:
    table = pd.DataFrame(rows(of(), {0: 1.0}))
    for results in (Results(table), Results(pd.DataFrame())):
        nothing = results.difference(of(), of(temperature=0.3), "R@1")
        assert nothing.n == 0
        assert told(nothing, signed=True) == "not trained"


def test_settings_are_chosen_on_the_validation_split() -> None:
    grid = tuning(TUNED_INFONCE, "image", 0.2)
    rsums = [100.0, 300.0, 200.0, 250.0]
    table = pd.DataFrame(
        {"key": which.key, "seed": seed, "val_rsum": rsum + seed, "test_rsum": -rsum}
        for which, rsum in zip(grid, rsums, strict=True)
        for seed in (100, 101)
    )
    best = chosen(Results(table), TUNED_INFONCE, "image", 0.4)
    assert (best.settings, best.noise, best.purpose) == (grid[1].settings, 0.4, "test")
    with pytest.raises(ValueError, match="run the tuning first"):
        chosen(Results(table), TUNED_INFONCE, "video", 0.4)


def test_every_method_is_tuned_with_the_same_budget() -> None:
    assert {len(method.grid) for method in METHODS.values()} == {0, 4}
    for name in METHODS:
        for modality in MODALITIES:
            for noise in NOISES:
                configuration(name, modality, noise, {}).train_config(0)
                assert all(which.purpose == "tune" for which in tuning(name, modality, noise))


def test_the_plan_has_every_configuration_that_needs_no_tuning() -> None:
    known = pd.DataFrame({"key": pd.Series(dtype=str), "seed": pd.Series(dtype=int)})
    made = []
    for part in parts():
        # what is tuned waits for its tuning
        with contextlib.suppress(ValueError):
            made += part.make(Results(known))
    for which in made:
        which.train_config(0)
    assert {(which.modality, which.noise) for which in made} == {(m, n) for m in MODALITIES for n in NOISES}


@pytest.mark.parametrize(
    ("claim", "interval", "verdict"),
    [
        (5.0, SeedInterval(5.5, 4.0, 7.0, 10), "holds"),
        (5.0, SeedInterval(1.0, 0.5, 1.5, 10), "weaker"),
        (0.0, SeedInterval(1.0, -0.5, 2.5, 10), "not seen"),
        (0.0, SeedInterval(-1.0, -1.5, -0.5, 10), "the opposite"),
        (None, SeedInterval(0.1, -0.3, 0.5, 10), "holds"),
        (None, SeedInterval(0.1, -2.0, 2.2, 10), "not decided"),
        (None, SeedInterval(-3.0, -4.0, -2.0, 10), "does not hold"),
        (0.0, SeedInterval(1.0, math.nan, math.nan, 1), "not tested"),
    ],
)
def test_verdicts_follow_from_the_interval(claim: float | None, interval: SeedInterval, verdict: str) -> None:
    assert Promise("", "", claim, interval).verdict == verdict


def test_the_document_is_made_of_the_results() -> None:
    root = Path(__file__).parents[2]
    text = (root / "docs" / "results.md").read_text(encoding="utf-8")
    results = Results(pd.read_parquet(root / "benchmarks" / "results" / "results.parquet"))
    assert all(f"<!-- {name} -->" in text and f"<!-- /{name} -->" in text for name in TABLES)
    assert document(text, results) == text
    assert (root / "docs" / "images" / PICTURE).read_text(encoding="utf-8") == picture(results)


def test_the_presets_are_what_was_measured() -> None:
    for name, ending in (("uwml", ": the defaults"), ("noisy_pairs", ": preset noisy_pairs")):
        (case,) = (case for case in CANDIDATES if case.title.endswith(ending))
        measured, config = case.configuration("image", 0.0).settings, loss_preset(name).to_dict()
        loss = {key: value for key, value in measured.items() if key.startswith("loss.")}
        assert len(loss) == 6
        assert {key: config[key.removeprefix("loss.")] for key in loss} == loss
