import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.training import (
    QUANTITIES,
    event_marks,
    phase_bands,
    quantity_label,
    reference_lines,
    retrieval_curves,
    rolling_mean,
    series_view,
    step_columns,
    step_series,
    zoomed_view,
)
from uwml_core.weighting import UWMLConfig

DIRECTIONS = ("i2t", "t2i")


def steps(**columns):
    n = len(next(iter(columns.values()))) if columns else 0
    return pd.DataFrame({"step": np.arange(n), "epoch": 0, "batch_size": 4} | columns)


def test_loss_has_the_total_and_each_direction_in_order():
    series = step_series(steps(loss=[3.0, 2.0], loss_i2t=[1.0, 1.5], loss_t2i=[5.0, 2.5]), DIRECTIONS, "loss")
    assert series["step"].tolist() == [0, 1, 0, 1, 0, 1]
    assert series["direction"].cat.codes.tolist() == [-1, -1, 0, 0, 1, 1]
    assert series["value"].tolist() == [3.0, 2.0, 1.0, 1.5, 5.0, 2.5]
    assert series["n"].tolist() == [4.0] * 6


def test_a_quantity_that_was_never_logged_has_no_rows():
    series = step_series(steps(loss=[1.0], temperature=[np.nan]), DIRECTIONS, "temperature")
    assert list(series.columns) == ["step", "epoch", "direction", "value", "n"]
    assert len(series) == 0


def test_a_loss_of_nothing_but_nan_is_shown():
    assert len(step_series(steps(loss=[np.nan, np.nan]), DIRECTIONS, "loss")) == 2


def test_ess_share_counts_anchors_that_have_a_negative():
    frame = steps(ess_i2t=[2.0, 3.0], no_negative_count_i2t=[0.0, 1.0])
    series = step_series(frame, DIRECTIONS, "ess_share")
    assert series["value"].tolist() == [50.0, 100.0]
    assert series["direction"].tolist() == ["i2t", "i2t"]


def test_throughput_is_pairs_per_second_and_undefined_without_time():
    series = step_series(steps(step_time_ms=[8.0, 0.0, np.nan, 4.0]), DIRECTIONS, "throughput")
    assert series["value"].tolist()[0::3] == [500.0, 1000.0]
    assert np.isnan(series["value"].tolist()[1:3]).all()


def test_unknown_quantity_names_what_there_is():
    with pytest.raises(ValueError, match="quantity='los' is unknown; choose one of loss, learning_rate"):
        step_series(steps(loss=[1.0]), DIRECTIONS, "los")


def test_every_quantity_of_a_real_log_has_a_title_and_rows_where_logged(run):
    frame = run.frame("steps", columns=step_columns(run.directions))
    for quantity in QUANTITIES:
        assert quantity_label(quantity)[0]
        series = step_series(frame, run.directions, quantity)
        assert len(series) in (90, 180, 270), quantity


def test_series_of_a_run_without_rows_are_empty(empty_frames):
    for quantity in QUANTITIES:
        assert len(step_series(empty_frames[0], DIRECTIONS, quantity)) == 0


def test_rolling_mean_averages_finite_values_of_one_direction_only():
    frame = steps(loss=[1.0, np.nan, 3.0, 5.0], loss_i2t=[10.0, 10.0, np.inf, 10.0])
    smooth = rolling_mean(step_series(frame, DIRECTIONS, "loss"), window=2)
    assert smooth["value"].tolist() == [1.0, 1.0, 3.0, 4.0, 10.0, 10.0, 10.0, 10.0]
    assert set(smooth["window"]) == {2}


def test_rolling_mean_of_nothing_but_nan_is_nan_and_of_nothing_is_empty():
    smooth = rolling_mean(step_series(steps(loss=[np.nan, np.nan]), DIRECTIONS, "loss"))
    assert np.isnan(smooth["value"]).all()
    assert len(rolling_mean(step_series(steps(loss=np.empty(0)), DIRECTIONS, "loss"))) == 0


def test_rolling_mean_equals_a_loop_on_a_long_series():
    loss = np.random.default_rng(0).standard_normal(300) + 1e6
    smooth = rolling_mean(step_series(steps(loss=loss), DIRECTIONS, "loss"), window=7)["value"]
    expected = [loss[max(0, i - 6) : i + 1].mean() for i in range(300)]
    assert smooth.to_numpy() == pytest.approx(expected, rel=1e-12)


def evals(rows):
    return pd.DataFrame(
        rows, columns=["step", "epoch", "split", "direction", "metric", "value", "n", "tied_share"]
    )


def test_retrieval_curves_hold_recall_of_one_split_in_order():
    frame = evals(
        [
            (9, 0, "val", "t2i", "R@10", 40.0, 8, 0.0),
            (9, 0, "val", "t2i", "R@1", 10.0, 8, 0.0),
            (19, 1, "val", "i2t", "R@1", 30.0, 8, 0.1),
            (9, 0, "val", "i2t", "R@1", 20.0, 8, 0.0),
            (9, 0, "train", "i2t", "R@1", 99.0, 8, 0.0),
            (9, 0, "val", "i2t", "median_rank", 3.0, 8, 0.0),
            (9, 0, "val", None, "rsum", 70.0, 16, 0.0),
        ]
    )
    curves = retrieval_curves(frame)
    rows = curves[["metric", "direction", "step", "value"]].values.tolist()
    assert rows == [
        ["R@1", "i2t", 9, 20.0],
        ["R@1", "i2t", 19, 30.0],
        ["R@1", "t2i", 9, 10.0],
        ["R@10", "t2i", 9, 40.0],
    ]
    assert retrieval_curves(evals([])).empty


def test_phases_are_stretches_and_may_return():
    frame = steps(phase=["warmup", "warmup", "train", None, "warmup"])
    bands = phase_bands(frame).values.tolist()
    assert bands == [["warmup", 0, 1], ["train", 2, 2], ["warmup", 4, 4]]


def test_phases_of_several_parts_are_joined():
    parts = [
        pd.DataFrame({"step": [k], "phase": pd.Series([name], dtype="str")}) for k, name in enumerate("aab")
    ]
    bands = phase_bands(pd.concat([*parts, pd.DataFrame({"step": [3, 4], "phase": ["", None]})]))
    assert bands.values.tolist() == [["a", 0, 1], ["b", 2, 2]]


def test_no_phase_logged_gives_no_bands(empty_frames):
    assert phase_bands(steps(phase=[None, None])).empty
    assert phase_bands(empty_frames[0]).empty
    assert phase_bands(pd.DataFrame({"step": [1]})).empty


def test_events_of_a_kind_at_a_step_become_one_mark():
    events = pd.DataFrame(
        {
            "step": [5, 5, 2, 7, 8],
            "level": ["error", "error", "info", "info", "info"],
            "kind": ["non_finite", "non_finite", "resume", "checkpoint", "phase"],
            "message": ["loss is NaN", "gradient is NaN", "weiter ✓", "saved", "train"],
        }
    )
    assert event_marks(events).values.tolist() == [
        [2, "resume", "info", "weiter ✓", 1],
        [5, "non_finite", "error", "loss is NaN", 2],
    ]


def test_no_events_give_no_marks(empty_frames):
    assert event_marks(empty_frames[2]).empty


def test_reference_of_infonce_is_the_log_of_one_plus_negatives():
    frame = steps(negatives_per_anchor=[127.0, 127.0, 90.0])
    lines = reference_lines(UWMLConfig(), frame)
    assert lines["name"].tolist() == ["ln(1 + 127)"]
    assert lines["value"].tolist() == pytest.approx([4.852030263919617])


def test_reference_of_triplet_is_its_margin():
    lines = reference_lines(UWMLConfig(base="triplet", triplet_margin=0.3), steps(loss=[1.0]))
    assert lines["value"].tolist() == pytest.approx([0.3])


def test_reference_follows_a_normalization_that_grows_with_the_batch():
    lines = reference_lines(UWMLConfig(base="triplet", normalization="rss"), steps(loss=[1.0]))
    assert lines["value"].tolist() == pytest.approx([0.2 * 2.0])


@pytest.mark.parametrize(
    ("config", "value"),
    [
        (UWMLConfig(base="triplet", over_negatives="sum", normalization="rss"), 5 * 0.2),
        (UWMLConfig(base="dcl"), np.log(5)),
        (UWMLConfig(base="hn_nce", hn_alpha=0.5), np.log(5.5)),
        # the least of 2 (P(s) + Q(s)), at s = 0.5
        (UWMLConfig(base="wei2020_max"), 2 * (0.2 / 4 - 0.35 + 0.5 + 0.9 / 4 - 0.2 + 0.03)),
        (UWMLConfig(base="wei2020_calibrated"), 2 * (0.072 - 0.42 + 0.5 + 0.324 - 0.24 + 0.03)),
    ],
)
def test_reference_of_the_other_losses(config, value):
    lines = reference_lines(config, steps(negatives_per_anchor=[5.0, 5.0], loss=[1.0, 1.0]))
    assert lines["value"].tolist() == pytest.approx([value])


def test_no_reference_for_a_loss_that_learns_its_scale():
    assert reference_lines(UWMLConfig(base="sigmoid"), steps(negatives_per_anchor=[5.0])).empty


def test_no_reference_without_a_known_loss_or_without_steps():
    assert reference_lines(None, steps(negatives_per_anchor=[3.0])).empty
    assert reference_lines(UWMLConfig(), steps(negatives_per_anchor=[np.nan])).empty
    assert reference_lines(UWMLConfig(), steps(negatives_per_anchor=np.empty(0))).empty


@pytest.mark.parametrize("smooth", [False, True])
def test_zoomed_quantity_is_the_whole_series_within_the_range(smooth):
    count, random = 30_000, np.random.default_rng(3)
    logged = {f"loss{suffix}": random.normal(size=count) for suffix in ("", "_i2t", "_t2i")}
    # one direction is missing in all of the range
    logged["loss_t2i"][9_000:13_000] = np.nan
    frame = steps(step=np.arange(count), **logged)
    view = series_view(frame, DIRECTIONS, "loss", smooth=smooth)
    within = (10_000.0, 10_400.0)
    found = zoomed_view(frame, DIRECTIONS, "loss", view, within, smooth=smooth).frame
    whole = step_series(frame, DIRECTIONS, "loss")
    whole = rolling_mean(whole) if smooth else whole
    for part in (found, whole):
        part["name"] = part["direction"].astype(object).fillna("total")
    expected, shown = (f[f["step"].between(*within)].sort_values(["name", "step"]) for f in (whole, found))
    assert len(shown) == 3 * 401
    assert shown["name"].tolist() == expected["name"].tolist()
    assert shown["step"].tolist() == expected["step"].tolist()
    np.testing.assert_allclose(shown["value"], expected["value"], rtol=1e-9, atol=1e-12)


def test_zoom_into_a_quantity_that_was_never_logged_is_empty():
    frame = steps(step=np.arange(100), loss=np.ones(100))
    view = series_view(frame, DIRECTIONS, "temperature", smooth=True)
    assert zoomed_view(frame, DIRECTIONS, "temperature", view, (3.0, 9.0), smooth=True).frame.empty
