"""How restless the direction weights are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

STRETCH = 100


class Jitter(NamedTuple):
    """Total variation of the direction weight.

    Attributes:
        per_100_steps: mean |change| from step to step, times 100; NaN below two steps.
        sd: sample standard deviation of the total variation of consecutive stretches of 100 changes; NaN
            below two whole stretches.
        stretches: whole stretches.
    """

    per_100_steps: float
    sd: float
    stretches: int


def jitter(weights: np.ndarray) -> Jitter:
    """Total variation of one direction's weight per 100 steps; the other's is the same, as they sum to 1.

    Args:
        weights: ``[n, 2]``; a change to or from a weight that is not finite is left out.

    Example:
        >>> jitter(np.array([[0.5, 0.5], [0.6, 0.4], [0.5, 0.5]])).per_100_steps.round(6)
        np.float64(10.0)
    """
    changes = np.abs(np.diff(weights[:, 0]))
    changes = changes[np.isfinite(changes)]
    whole = len(changes) // STRETCH
    sums = changes[: whole * STRETCH].reshape(whole, STRETCH).sum(axis=1)
    return Jitter(
        per_100_steps=STRETCH * changes.mean() if len(changes) else np.nan,
        sd=float(sums.std(ddof=1)) if whole > 1 else np.nan,
        stretches=whole,
    )
