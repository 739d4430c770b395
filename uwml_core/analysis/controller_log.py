"""What the log tells the direction controller's replay: gaps, weights and losses, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from uwml_core.weighting.direction import finite_rows

_PER_DIRECTION = ("gap", "direction_weight", "loss")


def balance_columns(directions: tuple[str, str]) -> list[str]:
    """Columns of ``steps`` that the balance of the directions is computed from."""
    return [
        "step",
        "epoch",
        "phase",
        "batch_size",
        *(f"{name}_{d}" for name in _PER_DIRECTION for d in directions),
    ]


@dataclass(frozen=True, kw_only=True)
class ControllerLog:
    """Logged steps in step order; second axis of ``[n, 2]`` is the direction, NaN where not logged.

    Attributes:
        step: int64 ``[n]``.
        epoch: float64 ``[n]``.
        pairs: batch size, float64 ``[n]``.
        gap: mean margin of the step, cosine units, ``[n, 2]``.
        weight: direction weight, ``[n, 2]``.
        loss: loss of the direction before its weight, ``[n, 2]``.
    """

    step: np.ndarray
    epoch: np.ndarray
    pairs: np.ndarray
    gap: np.ndarray
    weight: np.ndarray
    loss: np.ndarray

    @property
    def usable(self) -> np.ndarray:
        """Steps whose gaps the controller takes, bool ``[n]``."""
        return finite_rows(self.gap)

    @property
    def has_gaps(self) -> bool:
        """Whether any step has a gap in both directions."""
        return bool(self.usable.any())

    @property
    def has_weights(self) -> bool:
        """Whether any step has a direction weight."""
        return bool(np.isfinite(self.weight).any())

    @property
    def missing_steps(self) -> int:
        """Steps before the newest one that are not in the log."""
        return int(self.step[-1]) + 1 - len(self.step) if len(self.step) else 0


def controller_log(steps: pd.DataFrame, directions: tuple[str, str]) -> ControllerLog:
    """Take what the replay needs.

    Args:
        steps: frame of the table ``steps`` in step order; columns that it lacks count as not logged.
        directions: the run's directions.
    """
    # a direction's values lie beside each other: most of what is asked is asked of each direction
    gap, weight, loss = (
        np.stack([_floats(steps, f"{name}_{d}") for d in directions]).T for name in _PER_DIRECTION
    )
    return ControllerLog(
        step=steps["step"].to_numpy(dtype=np.int64),
        epoch=_floats(steps, "epoch"),
        pairs=_floats(steps, "batch_size"),
        gap=gap,
        weight=weight,
        loss=loss,
    )


def _floats(frame: pd.DataFrame, name: str) -> np.ndarray:
    if name not in frame.columns:
        return np.full(len(frame), np.nan)
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def window_means(gap: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the last gaps at each step, as the controller sees it.

    Args:
        gap: ``[n, 2]``; a step whose gaps are not both finite adds nothing and keeps the last mean.
        window: most gaps per mean, >= 1.

    Returns:
        Means ``[n, 2]``, NaN before the first gap, and the number of gaps in each ``[n]``.

    Example:
        >>> window_means(np.array([[1.0, 0.0], [np.nan, 9.0], [2.0, 1.0], [4.0, 2.0]]), 2)[0].tolist()
        [[1.0, 0.0], [1.0, 0.0], [1.5, 0.5], [3.0, 1.5]]
    """
    usable = finite_rows(gap)
    taken = gap if usable.all() else gap[usable]
    n = np.minimum(np.arange(1, len(taken) + 1), window)
    means = _sliding_means(taken, n, window)
    if len(taken) == len(gap):
        return means, n
    last = np.cumsum(usable)
    return np.vstack([[np.nan, np.nan], means])[last], np.concatenate([[0], n])[last]


def _sliding_means(taken: np.ndarray, n: np.ndarray, window: int) -> np.ndarray:
    if not len(taken):
        return np.empty((0, 2))
    columns = []
    for values in taken.T:
        # Sums of deviations keep the digits that sums of many raw values would lose.
        middle = values.mean()
        sums = np.cumsum(values - middle)
        sums[window:] -= sums[:-window]
        columns.append(middle + sums / n)
    return np.stack(columns).T
