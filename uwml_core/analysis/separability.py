"""How well a straight cut tells the modalities apart, on items that it was not fitted to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_RIDGE = 1.0


def linear_separability(x: Floats, y: Floats) -> float:
    """Share of held-out vectors whose modality a linear rule names: 0.5 is chance, 1 a clean cut.

    A ridge classifier (targets ±1, penalty 1, free intercept) is fitted on every other item and tested
    on the rest, then the other way round.

    Args:
        x, y: float64 ``[N, dim]``, row by row one item.

    Returns:
        The share; NaN with fewer than four items. A vector exactly on the border counts one half.

    Reference:
        Shi et al., "Towards understanding the modality gap in CLIP", ICLR 2023 workshop.
    """
    right = held_out(x, y)
    return float(right.mean()) if len(right) else float("nan")


def held_out(x: Floats, y: Floats) -> Floats:
    """Share of each item's two vectors whose modality is named rightly while the item is held out.

    Args:
        x, y: float64 ``[N, dim]``, row by row one item.

    Returns:
        float64 ``[N]``; empty with fewer than four items.
    """
    right = np.empty(len(x) if len(x) >= 4 else 0)
    even = np.arange(len(right)) % 2 == 0
    for fit in (even, ~even) if len(right) else ():
        right[~fit] = _right(x[fit], y[fit], x[~fit], y[~fit])
    return right


def _right(x: Floats, y: Floats, x_new: Floats, y_new: Floats) -> Floats:
    points = np.concatenate([x, y])
    target = np.repeat([1.0, -1.0], [len(x), len(y)])
    middle = points.mean(axis=0)
    centred = points - middle
    slope = np.linalg.solve(centred.T @ centred + _RIDGE * np.eye(points.shape[1]), centred.T @ target)
    named = np.sign((x_new - middle) @ slope) - np.sign((y_new - middle) @ slope)
    right: Floats = 0.5 + named / 4.0
    return right
