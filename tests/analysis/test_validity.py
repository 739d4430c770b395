import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from tests.support.synthetic import make_run
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.analysis.selection import PREVIEW_COLUMNS
from uwml_core.analysis.validity import validity
from uwml_core.analysis.what_if import preview
from uwml_core.runlog.reader import open_run
from uwml_core.weighting import UWMLConfig

DIRECTIONS = ("i2t", "t2i")


@pytest.fixture(scope="module")
def logged(run):
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS))
    return pairs, run.frame("steps"), loss_config(run.config)


def test_logged_parameters_give_the_logged_weights(logged):
    pairs, steps, config = logged
    result = validity(pairs, steps, config, DIRECTIONS)
    assert result.max_error <= 2e-6
    assert result.ok is True
    assert result.n == 2 * 90 * 24 - 4
    assert "gives the logged weights" in result.reason


@pytest.mark.parametrize(
    "change",
    [
        {"center": 0.151},
        {"steepness_start": 2.01},
        {"steepness_end": 12.1},
        {"hard_floor": 0.301},
        {"max_weight": 1.2},
        {"curve": "hard"},
        {"curve": "uniform"},
    ],
)
def test_other_parameters_do_not(logged, change):
    pairs, steps, config = logged
    result = validity(pairs, steps, dataclasses.replace(config, **change), DIRECTIONS)
    assert result.ok is False
    assert result.max_error > 1e-4
    assert "does not give the logged weights" in result.reason


@pytest.mark.parametrize(
    "config",
    [
        UWMLConfig(curve="hard", total_steps=20),
        UWMLConfig(curve="uniform", total_steps=20),
        UWMLConfig(steepness_start=0.0, steepness_end=200.0, hard_floor=0.0, total_steps=20),
        UWMLConfig(max_weight=1.0, total_steps=20),
        UWMLConfig(margin_scale="negative_std", center=1.5, total_steps=20),
        UWMLConfig(combination="add", update_every=1, smoothing=0.0, total_steps=20),
        UWMLConfig(combination="add", steepness_start=0.0, steepness_end=0.0, total_steps=20),
    ],
)
def test_any_curve_replays(tmp_path, config):
    run = open_run(make_run(tmp_path, epochs=2, steps_per_epoch=10, config=config))
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS))
    result = validity(pairs, run.frame("steps"), loss_config(run.config), DIRECTIONS)
    assert result.ok is True, result


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (UWMLConfig(base="sigmoid"), "weighs each pair of anchor and negative"),
        (UWMLConfig(base="triplet", over_negatives="sum"), "weighs each pair of anchor and negative"),
        (UWMLConfig(base="wei2020_max"), "weights of its own"),
    ],
)
def test_weights_that_anchors_do_not_determine_are_not_replayed(logged, config, reason):
    pairs, steps, _ = logged
    result = validity(pairs, steps, config, DIRECTIONS)
    assert (result.ok, result.n) == (None, 0)
    assert result.reason.startswith("Not available: ")
    assert reason in result.reason
    whatif = preview(pairs, steps, config, config, DIRECTIONS)
    assert (whatif.weights["count_before"] == whatif.weights["count_after"]).all()


def test_a_margin_scale_that_was_not_logged_is_named(logged):
    pairs, steps, config = logged
    scaled = dataclasses.replace(config, margin_scale="negative_std")
    result = validity(pairs, steps, scaled, DIRECTIONS)
    assert result.ok is None
    assert "scale of the margins was not logged" in result.reason


def test_one_wrong_weight_among_thousands_is_found(logged):
    pairs, steps, config = logged
    weight = pairs["weight"].to_numpy().copy()
    weight[1234] += np.float32(0.01)
    changed = pairs.set_column(pairs.column_names.index("weight"), "weight", pa.array(weight))
    assert validity(changed, steps, config, DIRECTIONS).max_error == pytest.approx(0.01, rel=1e-3)


def test_nothing_to_compare_is_neither_right_nor_wrong(logged):
    pairs, steps, config = logged
    none = pairs.set_column(
        pairs.column_names.index("weight"), "weight", pa.nulls(pairs.num_rows, pa.float32())
    )
    nothing = "nothing can be replayed"
    for table, frame, reason in (
        (pairs.slice(0, 0), steps, nothing),
        (none, steps, "the log has no weights"),
        (pairs, steps.iloc[:0], nothing),
    ):
        result = validity(table, frame, config, DIRECTIONS)
        assert (result.ok, result.n) == (None, 0)
        assert np.isnan(result.max_error)
        assert reason in result.reason


def test_unknown_loss_cannot_be_checked(logged):
    result = validity(logged[0], logged[1], None, DIRECTIONS)
    assert result.ok is None
    assert "does not tell its loss parameters" in result.reason


def test_a_replay_that_is_not_a_number_fails(logged, monkeypatch):
    monkeypatch.setattr(
        "uwml_core.analysis.validity.replayed_weight",
        lambda pairs, config: np.full(len(pairs.weight), np.nan),
    )
    assert validity(*logged, DIRECTIONS).ok is False
