import numpy as np
import pytest

from uwml_core.analysis.intervals import block_interval, bootstrap_means, difference_interval


def nested_bootstrap(values, draws, seed):
    n = len(values)
    block = max(1, round(n ** (1 / 3)))
    blocks = -(-n // block)
    starts = np.random.default_rng(seed).integers(0, n - block + 1, size=(draws, blocks))
    return [np.mean([values[s + k] for s in row for k in range(block)]) for row in starts]


def test_bootstrap_equals_resampling_block_by_block():
    values = np.random.default_rng(3).standard_normal(37).cumsum()
    assert bootstrap_means(values, draws=20, seed=5) == pytest.approx(nested_bootstrap(values, 20, 5))


def test_interval_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        interval = block_interval(random.standard_normal(200))
        hits += interval.low <= 0.0 <= interval.high
    assert 170 <= hits <= 199


def test_interval_is_wider_for_dependent_steps():
    random = np.random.default_rng(0)
    noise = random.standard_normal(500)
    dependent = np.convolve(noise, np.ones(5) / np.sqrt(5), mode="same")
    assert block_interval(dependent).half_width > 1.3 * block_interval(noise).half_width


def test_too_few_steps_have_a_mean_but_no_interval():
    interval = block_interval(np.arange(19.0))
    assert interval.mean == 9.0
    assert np.isnan([interval.low, interval.high]).all()


def test_nothing_finite_gives_nan_and_no_count():
    interval = block_interval(np.array([np.nan, np.inf]))
    assert np.isnan(interval.mean)
    assert interval.n == 0


def test_difference_leaves_out_what_is_not_finite_and_repeats_itself():
    first = np.append(np.full(30, 2.0), np.nan)
    last = np.append(np.full(40, 0.5), np.inf)
    change = difference_interval(first, last)
    assert (change.mean, change.low, change.high, change.n) == (-1.5, -1.5, -1.5, 30)
    random = np.random.default_rng(0).standard_normal(100)
    assert difference_interval(random, -random) == difference_interval(random, -random)
    assert np.isnan(difference_interval(np.empty(0), last).mean)
