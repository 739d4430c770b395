"""Spread and uncertainty of means over steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Below this a resampled interval says more about the resampling than about the run.
FEWEST_STEPS = 20


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % interval.

    Attributes:
        mean: mean of the finite values; NaN without any.
        low, high: bounds; NaN with fewer than ``FEWEST_STEPS`` values.
        n: finite values.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """Half the width of the interval, what stands behind a ±."""
        return (self.high - self.low) / 2.0


def bootstrap_means(values: np.ndarray, *, draws: int = 400, seed: int = 0) -> np.ndarray:
    """Means of moving-block resamples of a series.

    Blocks of about the cube root of n neighbouring values keep most of the dependence between steps.

    Args:
        values: finite values in step order ``[n]``, n >= 1.
        draws: resamples.
        seed: of the resampling; the same series always gives the same means.

    Returns:
        ``[draws]`` means.

    Reference:
        H. R. Kunsch, The jackknife and the bootstrap for general stationary observations, 1989.
    """
    n = len(values)
    block = max(1, round(n ** (1 / 3)))
    blocks = -(-n // block)
    starts = np.random.default_rng(seed).integers(0, n - block + 1, size=(draws, blocks))
    sums = np.concatenate([[0.0], np.cumsum(values - values.mean(), dtype=np.float64)])
    # every block's sum once, so that a resample looks up one number for each of its blocks
    of_block = sums[block:] - sums[:-block]
    deviation = of_block.take(starts).sum(axis=1) / (block * blocks)
    return np.asarray(values.mean() + deviation)


def block_interval(values: np.ndarray) -> Interval:
    """Mean over steps with a 95 % moving-block bootstrap interval.

    Args:
        values: one value per step in step order ``[n]``; values that are not finite are left out.

    Returns:
        The interval; without bounds where there are fewer than ``FEWEST_STEPS`` values.

    Example:
        >>> block_interval(np.full(50, 2.0))
        Interval(mean=2.0, low=2.0, high=2.0, n=50)
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return Interval(np.nan, np.nan, np.nan, 0)
    mean = float(finite.mean())
    if len(finite) < FEWEST_STEPS:
        return Interval(mean, np.nan, np.nan, len(finite))
    low, high = np.quantile(bootstrap_means(finite), [0.025, 0.975])
    return Interval(mean, float(low), float(high), len(finite))


def difference_interval(first: np.ndarray, last: np.ndarray) -> Interval:
    """Mean of ``last`` minus mean of ``first``, two stretches of one series, with a 95 % interval.

    Args:
        first, last: one value per step ``[n]`` and ``[m]``; values that are not finite are left out.

    Returns:
        The interval; ``n`` is the size of the shorter stretch.
    """
    first, last = (np.asarray(v, dtype=np.float64) for v in (first, last))
    first, last = first[np.isfinite(first)], last[np.isfinite(last)]
    n = min(len(first), len(last))
    if not n:
        return Interval(np.nan, np.nan, np.nan, 0)
    change = float(last.mean() - first.mean())
    if n < FEWEST_STEPS:
        return Interval(change, np.nan, np.nan, n)
    low, high = np.quantile(bootstrap_means(last, seed=1) - bootstrap_means(first), [0.025, 0.975])
    return Interval(change, float(low), float(high), n)
