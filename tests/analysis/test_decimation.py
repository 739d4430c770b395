import itertools

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.decimation import decimate, decimate_series, zoom, zoom_series


@pytest.mark.parametrize("length", [20_000, 1_000_000])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_keeps_a_hundred_of_a_hundred_one_step_spikes(length, noise):
    random = np.random.default_rng(0)
    y = noise * random.standard_normal(length)
    # also right beside each other, where one stretch holds several
    spikes = np.concatenate([random.choice(length // 2, 60, replace=False) * 2 + 1, 4001 + 2 * np.arange(80)])
    spikes = np.unique(spikes)[:100]
    y[spikes] += random.uniform(2.0, 8.0, 100) * random.choice([-1, 1], 100)
    kept = decimate(np.arange(length), y, max_points=2000).kept
    assert len(kept) <= 2000
    assert np.isin(spikes, kept).sum() == 100


def test_keeps_first_last_minimum_and_maximum_in_order():
    y = np.random.default_rng(1).standard_normal(50_000)
    kept = decimate(np.arange(50_000), y, max_points=500).kept
    assert {0, 49_999, int(y.argmin()), int(y.argmax())} <= set(kept.tolist())
    assert np.all(np.diff(kept) > 0)
    assert len(kept) <= 500


@pytest.mark.parametrize("broken", [[], [0, 500, 2_999]])
def test_keeps_the_rows_that_a_search_of_each_stretch_finds(broken):
    # few different values, so that many are equally high or low
    y = np.random.default_rng(3).integers(-9, 9, 3_000).astype(float)
    y[1_000:1_300] = 2.0
    y[broken] = np.nan
    finite = np.flatnonzero(np.isfinite(y)).tolist()
    edges = [int(edge) for edge in np.linspace(0, len(finite), 38)]
    wanted = {finite[0], finite[-1]}
    for first, after in itertools.pairwise(edges):
        wanted |= {min(finite[first:after], key=y.__getitem__), max(finite[first:after], key=y.__getitem__)}
    kept = set(decimate(np.arange(3_000), y, max_points=101).kept.tolist())
    assert wanted <= kept
    spikes = {}
    for before, row, after in zip(finite, finite[1:], finite[2:], strict=False):
        if (y[row] > y[before]) == (y[row] > y[after]):
            spikes[row] = min(abs(y[row] - y[before]), abs(y[row] - y[after]))
    highest = sorted(spikes.values(), reverse=True)[:25]
    assert all(spikes[row] >= highest[-1] > 0 for row in kept - wanted)
    assert len({row for row in kept if spikes.get(row, 0.0) >= highest[-1]}) >= 25


def test_keeps_every_row_of_a_short_series():
    result = decimate(np.arange(5), np.array([1.0, 2.0, 2.0, 2.0, 1.0]), max_points=8)
    assert result.kept.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_defines_an_answer_for_tiny_series(length):
    result = decimate(np.arange(length), np.zeros(length), max_points=8)
    assert result.kept.tolist() == list(range(length))
    assert result.total == length


def test_returns_rows_that_are_not_finite_apart_and_never_as_extremes():
    y = np.zeros(10_000)
    y[[10, 20]] = [np.nan, np.inf]
    y[30] = -np.inf
    result = decimate(np.arange(10_000), y, max_points=100)
    assert result.nonfinite.tolist() == [10, 20, 30]
    assert not np.isin([10, 20, 30], result.kept).any()
    assert result.nonfinite_total == 3


def test_thins_a_series_of_nothing_but_nan_but_counts_all():
    result = decimate(np.arange(10_000), np.full(10_000, np.nan), max_points=100)
    assert len(result.kept) == 0
    assert len(result.nonfinite) == 25
    assert result.nonfinite_total == 10_000


def test_constant_series_stays_within_its_points():
    kept = decimate(np.arange(10_000), np.full(10_000, 3.0), max_points=100).kept
    assert {0, 9999} <= set(kept.tolist())
    assert len(kept) <= 100


def test_refuses_unequal_lengths_and_too_few_points():
    with pytest.raises(ValueError, match="x has 2 rows and y has 3"):
        decimate(np.arange(2), np.arange(3))
    with pytest.raises(ValueError, match="max_points=4 is too few; expected at least 8"):
        decimate(np.arange(2), np.arange(2), max_points=4)


def series(values_by_direction):
    codes = np.repeat(list(values_by_direction), [len(v) for v in values_by_direction.values()])
    return pd.DataFrame(
        {
            "step": np.concatenate([np.arange(len(v)) for v in values_by_direction.values()]),
            "direction": pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(["i2t", "t2i"])),
            "value": np.concatenate(list(values_by_direction.values())),
        }
    )


def test_series_are_decimated_each_direction_on_its_own():
    first, second = np.zeros(5000), np.zeros(5000)
    first[100], second[200] = 1.0, 9.0
    view = decimate_series(series({-1: first, 0: second, 1: np.zeros(3)}), max_points=100)
    total = view.frame[view.frame["direction"].isna()]
    assert total.loc[total["value"] == 1.0, "step"].tolist() == [100]
    other = view.frame[view.frame["direction"] == "i2t"]
    assert other.loc[other["value"] == 9.0, "step"].tolist() == [200]
    assert view.frame.loc[view.frame["direction"] == "t2i", "step"].tolist() == [0, 1, 2]
    assert view.total == 10_003


def test_note_says_shown_of_total_and_what_is_not_finite():
    values = np.zeros(5000)
    values[7] = np.nan
    view = decimate_series(series({-1: values}), max_points=8)
    assert view.note == f"{view.shown} of 5,000 points; 1 value is not finite, marked at the edge"
    assert np.isnan(view.frame.loc[view.frame["step"] == 7, "value"]).all()


def test_empty_series_gives_an_empty_view():
    view = decimate_series(series({-1: np.empty(0)}))
    assert (view.shown, view.total, view.nonfinite, len(view.frame)) == (0, 0, 0, 0)
    assert view.note == ""


def noisy_series(steps=5_000):
    random = np.random.default_rng(4)
    values = random.normal(size=2 * steps)
    values[[700, 4_321]] = np.nan, 99.0
    codes = np.repeat([-1, 1], steps)
    direction = pd.Categorical.from_codes(codes, categories=["i2t", "t2i"])
    return pd.DataFrame({"step": np.tile(np.arange(steps), 2), "direction": direction, "value": values})


def test_zoomed_series_holds_every_row_of_the_range_and_the_rest_as_it_was():
    series = noisy_series()
    whole = decimate_series(series, max_points=100)
    within = (600.0, 679.5)
    view = zoom_series(whole, series[series["step"].between(*within)], within, max_points=100)
    for code in (-1, 1):
        found = view.frame[view.frame["direction"].cat.codes == code]
        assert found["step"].is_monotonic_increasing
        near = found[found["step"].between(*within)]
        rows = series[series["direction"].cat.codes == code]
        assert near["step"].tolist() == list(range(600, 680))
        assert near["value"].tolist() == rows["value"].iloc[600:680].tolist()
        before = whole.frame[whole.frame["direction"].cat.codes == code]
        around = [frame[~frame["step"].between(*within)]["value"].tolist() for frame in (found, before)]
        np.testing.assert_array_equal(*around)
    assert view.note == "160 of 160 points in steps 600 to 679"


def test_zoomed_series_is_thinned_within_a_long_range_and_counts_what_is_not_finite():
    series = noisy_series()
    within = (500.0, 4_500.0)
    part = series[series["step"].between(*within)]
    view = zoom_series(decimate_series(series, max_points=100), part, within, max_points=100)
    shown = view.frame[view.frame["step"].between(*within)]
    assert 100 < np.isfinite(shown["value"]).sum() == view.shown <= 200
    assert {700, 4_321} <= set(shown["step"])
    assert view.note.startswith(f"{view.shown} of 8,002 points in steps 500 to 4,500")
    assert "1 value is not finite" in view.note


@pytest.mark.parametrize("within", [(-5.0, -1.0), (10_000.0, 20_000.0), (100.2, 100.8)])
def test_range_without_a_step_leaves_the_series_as_it_was(within):
    series = noisy_series()
    whole = decimate_series(series, max_points=100)
    view = zoom_series(whole, series[series["step"].between(*within)], within)
    pd.testing.assert_frame_equal(view.frame, whole.frame)
    assert (view.shown, view.total) == (0, 0)


def test_zoom_of_rows_is_that_of_the_part_alone():
    x, y = np.arange(1_000) * 3, np.random.default_rng(5).normal(size=1_000)
    y[[20, 500]] = np.nan
    found = zoom(x, y, decimate(x, y, 20), (300.0, 2_000.0), 40)
    part = slice(100, 667)
    alone = decimate(x[part], y[part], 40)
    inner = found.kept[(found.kept >= 100) & (found.kept < 667)]
    assert inner.tolist() == (100 + alone.kept).tolist()
    assert found.nonfinite.tolist() == [20, 500]
    assert (found.total, found.nonfinite_total) == (567, 1)
