"""What is told from histograms agrees with the pairs that they were counted from."""

import dataclasses

import numpy as np
import pytest

from tests.support.rollups import margins_of
from tests.support.synthetic import make_run
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.analysis.pooled import compare_pooled, pooled_margins
from uwml_core.analysis.selection import PREVIEW_COLUMNS
from uwml_core.analysis.what_if import preview, weight_curve_headline
from uwml_core.runlog.reader import open_run
from uwml_core.weighting import UWMLConfig

# Shares, as parts of 1: a step of 128 pairs has its own mean weight, a histogram the epoch's.
TOLERANCE = 0.025
# the hard curve gives most where a bell without floor left nothing to scale
OTHER_TOLERANCE = {"hard": 0.045}
TRIED = {
    "center": {"center": 0.05},
    "steepness": {"steepness_start": 8.0, "steepness_end": 20.0},
    "floor": {"hard_floor": 0.8},
    "clamp": {"max_weight": 1.2},
    "uniform": {"curve": "uniform"},
    "hard": {"curve": "hard"},
    "added": {"combination": "add"},
    "rss": {"normalization": "rss"},
}


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    root = tmp_path_factory.mktemp("logs")
    return open_run(make_run(root, epochs=4, steps_per_epoch=20, batch=128, items=400, lonely_steps=(7, 8)))


def both(run, epoch=None, **changes):
    steps, before = run.frame("steps"), loss_config(run.config)
    after = dataclasses.replace(before, **changes)
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS))
    if epoch is not None:
        steps = steps[steps["epoch"] == epoch]
    pooled = pooled_margins(run.rollup("margins"), run.frame("steps"), epoch, before, run.directions)
    return preview(pairs, steps, before, after, run.directions), compare_pooled(pooled, after)


@pytest.mark.parametrize("epoch", [None, 2])
@pytest.mark.parametrize("name", TRIED)
def test_pooled_preview_is_close_to_the_exact_one(batches, name, epoch):
    exact, pooled = both(batches, epoch, **TRIED[name])
    tolerance = OTHER_TOLERANCE.get(name, TOLERANCE)
    for column in ("direction", "rows", "steps"):
        assert pooled.summary[column].tolist() == exact.summary[column].tolist()
    for measure in ("ess_share", "loss_scale"):
        for when in ("before", "after"):
            ours, theirs = (r.summary[f"{measure}_{when}"].to_numpy() for r in (pooled, exact))
            limit = tolerance * np.maximum(theirs, 1.0)
            assert (np.abs(ours - theirs) <= limit).all(), (measure, when, ours, theirs)
    assert pooled.summary[["clamped_share_after", "hardest_share_after"]].isna().all(axis=None)
    for when in ("before", "after"):
        ours, theirs = (r.bands[f"share_{when}"].to_numpy() for r in (pooled, exact))
        assert (np.abs(ours - theirs) <= tolerance).all(), (when, ours, theirs)
    assert pooled.bands["n"].tolist() == exact.bands["n"].tolist()
    assert pooled.weights["count_after"].sum() == exact.weights["count_after"].sum()


def test_equal_parameters_change_nothing_at_all(batches):
    _exact, pooled = both(batches)
    assert pooled.unchanged
    for frame in (pooled.summary, pooled.bands, pooled.weights):
        for name in frame.columns[frame.columns.str.endswith("_before")]:
            after = frame[name.replace("_before", "_after")].to_numpy()
            np.testing.assert_array_equal(frame[name].to_numpy(), after)


def test_sums_of_logged_weights_are_those_of_the_raw_rows(batches):
    pairs = batches.frame("pairs")
    pairs = pairs[np.isfinite(pairs["margin"])]
    _exact, pooled = both(batches)
    for row in pooled.summary.to_dict("records"):
        mine = pairs[pairs["direction"] == row["direction"]]
        shares = [
            w.sum() ** 2 / (w**2).sum() / len(w)
            for _epoch, w in mine.astype({"weight": np.float64}).groupby("epoch")["weight"]
        ]
        assert row["ess_share_before"] == pytest.approx(np.mean(shares), rel=1e-9)


def test_it_has_no_interval_and_says_so_in_no_sentence(batches):
    _exact, pooled = both(batches, center=0.05)
    headline = weight_curve_headline(pooled)
    assert "→" in headline
    assert "±" not in headline
    assert "Too little" not in headline


def test_logs_without_weights_start_from_equal_ones(pair_table, step_frame):
    pairs = pair_table(weight=[None] * 8)
    uniform = UWMLConfig(curve="uniform")
    pooled = pooled_margins(margins_of(pairs), step_frame, None, uniform, ("i2t", "t2i"))
    result = compare_pooled(pooled, UWMLConfig())
    assert result.summary["ess_share_before"].tolist() == [1.0, 1.0]
    assert (result.summary["ess_share_after"] < 1.0).all()


def test_no_rows_are_nothing_rather_than_an_error(pair_table, step_frame):
    empty = margins_of(pair_table().slice(0, 0))
    pooled = pooled_margins(empty, step_frame, None, UWMLConfig(), ("i2t", "t2i"))
    result = compare_pooled(pooled, UWMLConfig(center=0.0))
    assert result.summary["rows"].tolist() == [0, 0]
    assert weight_curve_headline(result) == "Too little data yet: no pair with a logged weight."
