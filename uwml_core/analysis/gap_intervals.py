"""How far the measures of the gap would differ with other items: a bootstrap over items.

An item that is drawn w times counts w times; pairs of an item with itself are left out, drawn twice or not.
Neighbors and the fitted separating rules stay as they are.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

DRAWS = 200
_TAIL = 0.025


@functools.lru_cache(maxsize=8)
def draws(n: int) -> NDArray[np.float32]:
    """How often each of n items is drawn, float32 ``[DRAWS, n]``; the same at every call."""
    random = np.random.default_rng(n)
    return np.stack([np.bincount(random.integers(n, size=n), minlength=n) for _ in range(DRAWS)]).astype(
        np.float32
    )


def interval(values: Floats) -> tuple[float, float]:
    """Where 95 % of the draws lie; NaN where none is finite."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return float("nan"), float("nan")
    low, high = np.quantile(finite.astype(np.float64), [_TAIL, 1.0 - _TAIL])
    return float(low), float(high)


def drawn_mean(weights: Floats, values: Floats) -> Floats:
    """Mean of one value per item for each draw.

    Args:
        weights: ``[draws, n]``.
        values: ``[n]`` or ``[n, dim]``.
    """
    mean: Floats = weights @ values.astype(weights.dtype) / max(weights.shape[1], 1)
    return mean


def drawn_cosine(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Mean of x_i · y_j over i ≠ j for each draw, from sums of vectors rather than from all pairs."""
    x, y = x.astype(weights.dtype), y.astype(weights.dtype)
    whole = np.sum((weights @ x) * (weights @ y), axis=1)
    return _without_own(weights, whole, np.sum(x * y, axis=1))


def drawn_kernel(weights: Floats, kernel: Floats) -> Floats:
    """Mean of a kernel ``[n, n]`` over i ≠ j for each draw."""
    kernel = kernel.astype(weights.dtype)
    return _without_own(weights, np.sum((weights @ kernel) * weights, axis=1), np.diagonal(kernel))


def drawn_skewness(weights: Floats, values: Floats) -> Floats:
    """Skewness of one value per item for each draw; NaN where all values are equal."""
    mean = drawn_mean(weights, values)
    away = values.astype(weights.dtype)[None, :] - mean[:, None]
    n = max(weights.shape[1], 1)
    variance, third = (np.sum(weights * away**power, axis=1) / n for power in (2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness: Floats = np.where(variance > 0, third / variance**1.5, np.nan)
    return skewness


def _without_own(weights: Floats, whole: Floats, own: Floats) -> Floats:
    squares = weights * weights
    pairs = weights.sum(axis=1) ** 2 - squares.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(pairs > 0, (whole - squares @ own) / pairs, np.nan)
    return mean
