"""How far points really moved between two snapshots: a turn of the whole space is no motion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# By so much unit vectors differ that were rounded to half precision, before and after a turn.
ROUNDING = 5e-4
_ROUNDS = 5
# Enough points to know the turn by.
_MOST = 5000

Floats = NDArray[np.float64]


def ways(before: NDArray[np.float32], now: NDArray[np.float32]) -> Floats:
    """Distance of each vector from where it was, after the turn of the whole space that leaves most in place.

    A loss depends on products of embeddings alone, so training turns the space of both modalities freely;
    nothing is nearer to anything after such a turn, and it is no motion. The turn is the one of least
    absolute distances (by reweighting), so that a part that moves does not drag along what rests. Vectors of
    different sizes are compared in the larger space.

    Args:
        before: ``[n, dim]``, unit norm.
        now: ``[n, dim or another]``, the same points in the same order.

    Returns:
        ``[n]``, 0 to 2; what rounding to half precision explains counts as none.

    Reference:
        Schönemann, "A generalized solution of the orthogonal Procrustes problem", 1966.
    """
    size = max(before.shape[1], now.shape[1])
    here, there = (np.pad(v, ((0, 0), (0, size - v.shape[1]))).astype(np.float64) for v in (before, now))
    some = np.linspace(0, len(here) - 1, min(len(here), _MOST)).astype(np.int64)
    turn = np.eye(size)
    for _ in range(_ROUNDS):
        left = np.linalg.norm(here[some] @ turn - there[some], axis=1)
        middle = float(np.median(left))
        if middle < ROUNDING:
            break
        weight = 1.0 / np.maximum(left, max(0.1 * middle, ROUNDING))
        outer, _, inner = np.linalg.svd((here[some] * weight[:, None]).T @ there[some])
        turn = outer @ inner
    way: Floats = np.linalg.norm(here @ turn - there, axis=1)
    return np.where(way > ROUNDING, way, 0.0)


def motion(way: Floats, spacing_before: Floats, spacing_now: Floats) -> Floats:
    """Ways ``[n]`` as shares of the distance to the neighbors, before or now, whichever is less."""
    shares: Floats = way / np.maximum(np.minimum(spacing_before, spacing_now), ROUNDING)
    return shares
