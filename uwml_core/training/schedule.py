"""Learning rate over the steps."""

from __future__ import annotations

import math

WARMUP_SHARE = 0.05


def learning_rate_at(step: int, total_steps: int, peak: float) -> float:
    """Linear warm-up over the first twentieth of the steps, then a half cosine towards 0.

    Args:
        step: from 0.
        total_steps: steps of the whole training.
        peak: learning rate at the end of the warm-up.

    Returns:
        A rate in (0, peak]: no step is spent at 0.

    Example:
        >>> [round(learning_rate_at(step, 41, 1.0), 2) for step in (0, 1, 2, 21, 40)]
        [0.5, 1.0, 1.0, 0.52, 0.0]
    """
    warmup = min(max(1, round(WARMUP_SHARE * total_steps)), total_steps)
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (1 + math.cos(math.pi * (step - warmup) / (total_steps - warmup))) / 2
