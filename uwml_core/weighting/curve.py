"""Pair difficulty: how much weight a margin gets."""

from __future__ import annotations

from typing import Any

from uwml_core.weighting.namespace import namespace_of

CURVES = ("bell", "uniform", "hard")

# A batch of equally easy pairs then becomes uniform instead of 0/0.
WEIGHT_FLOOR = 1e-6


def difficulty_weight(
    margin: Any,
    *,
    curve: str = "bell",
    center: float = 0.15,
    steepness: Any = 8.0,
    hard_floor: float = 0.0,
) -> Any:
    """Weight of each pair as a function of its margin.

    With z = steepness (margin - center): ``bell`` is sech^2(z / 2), the derivative of the S-shaped
    curve scaled to peak 1, and below the center hard_floor + (1 - hard_floor) sech^2(z / 2), so a badly
    misaligned pair keeps moderate attention. ``hard`` is sigmoid(-z). ``uniform`` is 1.

    Args:
        margin: array of any shape, positive minus nearest negatives, cosine units. NaN marks an anchor
            without negatives.
        curve: one of ``CURVES``.
        center: margin of the peak, cosine units (or multiples of the margin scale).
        steepness: kappa >= 0, per cosine unit; a scalar or an array that broadcasts with ``margin``.
        hard_floor: lower plateau of the bell left of the center, in [0, 1).

    Returns:
        Array of the shape, dtype and library of ``margin``, in [1e-6, 1]; 0 where the margin is NaN.

    Raises:
        ValueError: if ``curve`` is unknown.

    Example:
        >>> import numpy as np
        >>> difficulty_weight(np.array([0.15, 0.15 + 1e6, np.nan]), steepness=8.0).tolist()
        [1.0, 1e-06, 0.0]
    """
    xp = namespace_of(margin)
    if curve == "uniform":
        weight = xp.ones_like(margin)
    elif curve == "bell":
        weight = _bell(xp, steepness * (margin - center), hard_floor)
    elif curve == "hard":
        weight = _sigmoid(xp, -steepness * (margin - center))
    else:
        raise ValueError(f"curve={curve!r} is unknown; choose one of {', '.join(CURVES)}")
    floored = xp.where(weight < WEIGHT_FLOOR, xp.full_like(weight, WEIGHT_FLOOR), weight)
    return xp.where(xp.isnan(margin), xp.zeros_like(margin), floored)


def _bell(xp: Any, z: Any, hard_floor: float) -> Any:
    # exp(-|z|) never overflows, so the bell is exact in the tails at any steepness.
    tail = xp.exp(-xp.abs(z))
    bell = 4.0 * tail / (1.0 + tail) ** 2
    return xp.where(z < 0, hard_floor + (1.0 - hard_floor) * bell, bell)


def _sigmoid(xp: Any, z: Any) -> Any:
    tail = xp.exp(-xp.abs(z))
    return xp.where(z < 0, tail, xp.ones_like(tail)) / (1.0 + tail)
