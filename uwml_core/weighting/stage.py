"""Training stage: the bell sharpens on a cosine schedule."""

from __future__ import annotations

from typing import Any, overload

import numpy as np


@overload
def stage_steepness(progress: float, start: float, end: float) -> float: ...
@overload
def stage_steepness(progress: np.ndarray, start: float, end: float) -> np.ndarray: ...
def stage_steepness(progress: Any, start: float, end: float) -> Any:
    """Steepness at a stage of training: start + (end - start)(1 - cos(pi t)) / 2.

    Args:
        progress: t, optimizer steps done / total, in [0, 1]; a float or a float64 array.
        start: steepness at t = 0, per cosine unit.
        end: steepness at t = 1.

    Returns:
        The steepness, a float for a float and an array of the same shape for an array.

    Example:
        >>> [round(stage_steepness(t, 2.0, 12.0), 9) for t in (0.0, 0.5, 1.0)]
        [2.0, 7.0, 12.0]
    """
    value = start + (end - start) * (1.0 - np.cos(np.pi * np.asarray(progress, dtype=np.float64))) / 2.0
    return float(value) if np.ndim(progress) == 0 else value


def stage_factor(steepness: Any, start: float, end: float) -> Any:
    """Steepness, a number or an array, relative to the larger end of its schedule; 1 where both are 0.

    Example:
        >>> stage_factor(6.0, 2.0, 12.0)
        0.5
    """
    largest = max(start, end)
    return steepness / largest if largest > 0 else 1.0
