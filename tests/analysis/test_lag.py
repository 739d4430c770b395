"""Which direction lags, and since when: synthetic gaps whose answer is known."""

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.controller_log import controller_log, window_means
from uwml_core.analysis.intervals import block_interval
from uwml_core.analysis.jitter import jitter
from uwml_core.analysis.lag import find_lag, may_lag, stretches

DIRECTIONS = ("i2t", "t2i")


def log_of(ahead, *, epochs, noise=0.01, start=0):
    """Log in which the first direction is ahead by ``ahead`` of each step."""
    ahead = np.asarray(ahead, dtype=float)
    random = np.random.default_rng(3)
    base = random.normal(0.1, 0.05, len(ahead))
    frame = pd.DataFrame(
        {
            "step": np.arange(start, start + len(ahead)),
            "epoch": epochs,
            "gap_i2t": base + ahead + random.normal(0, noise, len(ahead)),
            "gap_t2i": base,
        }
    )
    return controller_log(frame, DIRECTIONS)


def test_lag_begins_at_the_first_epoch_of_the_unbroken_stretch():
    ahead = np.repeat([0.0, 0.05, 0.0, 0.04, 0.04], 100)
    log = log_of(ahead, epochs=np.repeat(np.arange(5), 100))
    lag = find_lag(log)
    assert (lag.lagging, lag.first_epoch, lag.first_step, lag.from_start) == (1, 3, 300, False)
    expected = block_interval((log.gap[:, 0] - log.gap[:, 1])[300:])
    assert lag.behind == expected
    assert lag.behind.n == 200
    assert lag.behind.low < 0.04 < lag.behind.high


def test_the_other_direction_lags_with_a_positive_distance():
    lag = find_lag(log_of(np.full(200, -0.04), epochs=np.repeat([0, 1], 100)))
    assert (lag.lagging, lag.from_start, lag.first_epoch) == (0, True, 0)
    assert lag.behind.mean == pytest.approx(0.04, abs=0.005)
    assert 0 < lag.behind.low < lag.behind.high


def test_neither_lags_within_the_noise():
    lag = find_lag(log_of(np.zeros(200), epochs=np.repeat([0, 1], 100)))
    assert lag.lagging is None
    assert lag.behind.n == 100
    assert lag.behind.low < 0 < lag.behind.high


def test_a_change_of_sign_ends_the_stretch():
    ahead = np.repeat([-0.05, 0.05], 100)
    lag = find_lag(log_of(ahead, epochs=np.repeat([0, 1], 100)))
    assert (lag.lagging, lag.first_epoch) == (1, 1)


def test_newest_epoch_with_few_steps_counts_with_the_one_before():
    ahead = np.full(105, 0.05)
    lag = find_lag(log_of(ahead, epochs=np.repeat([0, 1, 2], [50, 50, 5])))
    assert lag.behind.n == 105


@pytest.mark.parametrize("n", [0, 1, 19])
def test_too_few_steps_give_no_interval(n):
    lag = find_lag(log_of(np.full(n, 0.05), epochs=np.zeros(n)))
    assert lag.lagging is None
    assert np.isnan(lag.behind.half_width)
    assert lag.behind.n == n
    assert (lag.first_step is None) == (n == 0)


def test_steps_without_a_gap_are_left_out():
    log = log_of(np.full(100, 0.05), epochs=np.repeat([0, 1], 50))
    log.gap[::3, 1] = np.nan
    log.gap[1, 0] = np.inf
    lag = find_lag(log)
    assert lag.behind.n == log.usable.sum() == 65
    assert lag.first_step == 2


def test_epochs_that_were_not_logged_are_one_stretch():
    lag = find_lag(log_of(np.full(60, 0.05), epochs=np.full(60, np.nan)))
    assert (lag.lagging, lag.first_epoch, lag.from_start) == (1, None, True)


@pytest.mark.parametrize(
    ("lengths", "want"),
    [([20, 20], [0, 20]), ([5, 20, 20], [0, 25]), ([20, 5, 5, 5, 5], [0, 20]), ([19], []), ([], [])],
)
def test_stretches_hold_enough_steps_each(lengths, want):
    assert stretches(np.repeat(np.arange(len(lengths), dtype=float), lengths)) == want


def test_window_means_equal_a_plain_loop():
    random = np.random.default_rng(0)
    gap = random.normal(0.1, 0.05, (300, 2))
    gap[random.integers(0, 300, 30), random.integers(0, 2, 30)] = np.nan
    gap[0] = np.nan
    means, n = window_means(gap, 40)
    seen = []
    for row, mean, count in zip(gap, means, n, strict=True):
        if np.isfinite(row).all():
            seen.append(row)
        recent = seen[-40:]
        assert count == len(recent)
        np.testing.assert_allclose(mean, np.mean(recent, axis=0) if recent else [np.nan] * 2, atol=1e-14)


def test_window_means_of_nothing():
    means, n = window_means(np.empty((0, 2)), 5)
    assert means.shape == (0, 2)
    assert len(n) == 0


def test_jitter_is_total_variation_per_hundred_steps():
    first = np.array([0.5, 0.5, 0.6, 0.55])
    result = jitter(np.column_stack([first, 1 - first]))
    assert result.per_100_steps == pytest.approx(100 * (0.1 + 0.05) / 3)
    assert np.isnan(result.sd)
    assert result.stretches == 0


def test_spread_of_jitter_is_over_whole_stretches():
    changes = np.concatenate([np.full(100, 0.001), np.full(100, 0.002), np.full(50, 0.1)])
    first = np.concatenate([[0.0], np.cumsum(changes)])
    result = jitter(np.column_stack([first, 1 - first]))
    assert result.stretches == 2
    assert result.sd == pytest.approx(np.std([0.1, 0.2], ddof=1))


def test_jitter_leaves_out_changes_to_what_is_not_a_number():
    first = np.array([0.5, np.nan, 0.9, 0.8])
    assert jitter(np.column_stack([first, 1 - first])).per_100_steps == pytest.approx(10.0)


@pytest.mark.parametrize("n", [0, 1])
def test_jitter_of_one_step_is_unknown(n):
    assert np.isnan(jitter(np.full((n, 2), 0.5)).per_100_steps)


@pytest.mark.parametrize("ahead", [0.0, 0.05, 0.2, -0.2])
def test_a_lag_is_ruled_out_only_where_there_is_none_so_large(ahead):
    log = log_of(np.repeat([0.3, 0.0, ahead], 40), epochs=np.repeat(np.arange(3), 40), noise=0.1)
    for limit in (0.02, 0.1, 0.25):
        assert may_lag(log, limit) or not find_lag(log).behind.low > limit
    assert not may_lag(log_of(np.zeros(100), epochs=np.zeros(100)), 0.1)
    assert not may_lag(log_of(np.zeros(3), epochs=np.zeros(3)), 0.0)
