"""Differences over seeds: paired where both methods have the seed, with a t interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

_GRID = 20_001


@dataclass(frozen=True)
class SeedInterval:
    """Mean over seeds and its 95 % t interval.

    Attributes:
        mean: NaN without a seed.
        low, high: NaN with fewer than two seeds.
        n: seeds.
    """

    mean: float
    low: float
    high: float
    n: int


def t_interval(values: np.ndarray) -> SeedInterval:
    """Mean with a 95 % interval of Student's t.

    Args:
        values: one per seed [n]; values that are not finite are left out.

    Example:
        >>> interval = t_interval(np.array([1.0, 3.0]))
        >>> round(interval.low, 2), round(interval.high, 2), interval.n
        (-10.71, 14.71, 2)
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    n = len(finite)
    if n < 2:
        return SeedInterval(float(finite[0]) if n else math.nan, math.nan, math.nan, n)
    half = t_quantile(n - 1) * float(finite.std(ddof=1)) / math.sqrt(n)
    mean = float(finite.mean())
    return SeedInterval(mean, mean - half, mean + half, n)


def t_quantile(freedom: int, share: float = 0.975) -> float:
    """Quantile of Student's t.

    The distribution function is the integral of cos^(freedom - 1) over the angle whose tangent is
    t / sqrt(freedom).

    Args:
        freedom: degrees of freedom, >= 1.
        share: in [0.5, 1).

    Example:
        >>> round(t_quantile(1), 2), round(t_quantile(4), 4)
        (12.71, 2.7764)
    """
    angle = np.linspace(0.0, np.pi / 2, _GRID)
    density = np.cos(angle) ** (freedom - 1)
    middle = np.cos(0.5 * (angle[1:] + angle[:-1])) ** (freedom - 1)
    area = np.concatenate([[0.0], np.cumsum(density[:-1] + 4.0 * middle + density[1:])])
    at = float(np.interp((share - 0.5) * 2.0, area / area[-1], angle))
    return math.tan(at) * math.sqrt(freedom)


def paired_differences(baseline: Mapping[int, float], other: Mapping[int, float]) -> np.ndarray:
    """Differences of the seeds that both have, in the order of the seeds.

    Args:
        baseline, other: a value per seed.

    Example:
        >>> paired_differences({0: 1.0, 1: 2.0}, {1: 2.5, 2: 9.0})
        array([0.5])
    """
    return np.array([other[seed] - baseline[seed] for seed in sorted(set(baseline) & set(other))])
