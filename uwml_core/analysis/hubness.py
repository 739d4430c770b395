"""Hubs: items that are among the nearest of far more queries than others are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEIGHBORS = 10


def occurrences(queries: Floats, hubs: Floats, neighbors: int = NEIGHBORS) -> NDArray[np.int64]:
    """N_k of each candidate: of how many queries it is among the k most similar.

    Args:
        queries, hubs: float64 ``[N, dim]``, unit norm, row by row one item; an item's own counterpart is a
            candidate too.
        neighbors: k; with few items the largest below N / 2.

    Returns:
        int64 ``[N]``, summing up to N · k.
    """
    n = len(hubs)
    k = min(neighbors, (n - 1) // 2)
    if k < 1:
        return np.zeros(n, np.int64)
    nearest = np.argpartition(-(queries @ hubs.T), k - 1, axis=1)[:, :k]
    return np.bincount(nearest.ravel(), minlength=n).astype(np.int64)


def skewness(found: NDArray[np.int64]) -> float:
    """Skewness of N_k: near 0 where all are found equally often, large where a few hubs answer everything.

    With mean and standard deviation over the candidates:

        S = E[(N_k − mean)³] / sd³

    Args:
        found: from ``occurrences``.

    Returns:
        The skewness; NaN without candidates, or where all are found equally often.

    Reference:
        Radovanović et al., "Hubs in space", JMLR 2010.

    Example:
        >>> round(skewness(np.array([0, 0, 0, 4])), 4)
        1.1547
    """
    if not len(found):
        return float("nan")
    away = found - found.mean()
    spread = float(np.sqrt(np.mean(away**2)))
    return float(np.mean(away**3)) / spread**3 if spread > 0 else float("nan")
