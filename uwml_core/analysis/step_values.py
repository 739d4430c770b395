"""Quantities of single steps, as they were logged or follow from what was."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd


def column(frame: pd.DataFrame, name: str) -> np.ndarray:
    """A column as float64, NaN where it is null or missing; not to be changed: it may be the frame's own."""
    if name not in frame.columns:
        return np.full(len(frame), np.nan)
    values = frame[name].to_numpy()
    if values.dtype == np.float64:
        # as logged; pandas would look for nulls and copy
        return values
    if values.dtype.kind in "iu":
        return values.astype(np.float64)
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def quantity_values(steps: pd.DataFrame, quantity: str, direction: str | None) -> np.ndarray | None:
    """A quantity of ``training.QUANTITIES`` at each step, None where it has no such column.

    Args:
        steps: frame of the table ``steps``.
        quantity: its name.
        direction: of which direction; None for the total.
    """
    suffix = "" if direction is None else f"_{direction}"
    if quantity == "throughput":
        return _throughput(steps) if direction is None else None
    if quantity == "ess_share":
        return _ess_share(steps, suffix) if direction else None
    if f"{quantity}{suffix}" not in steps.columns:
        return None
    value = column(steps, f"{quantity}{suffix}")
    return 100.0 * value if quantity in ("accuracy", "clamped_share") else value


def _throughput(steps: pd.DataFrame) -> np.ndarray:
    time_ms = column(steps, "step_time_ms")
    return 1000.0 * column(steps, "batch_size") / np.where(time_ms > 0, time_ms, np.nan)


def _ess_share(steps: pd.DataFrame, suffix: str) -> np.ndarray:
    anchors = column(steps, "batch_size") - np.nan_to_num(column(steps, f"no_negative_count{suffix}"))
    return 100.0 * column(steps, f"ess{suffix}") / np.where(anchors > 0, anchors, np.nan)


@lru_cache
def names_dtype(names: tuple[str, ...]) -> pd.CategoricalDtype:
    """Type of a column that holds some of these names; to make one takes as long as to draw a line.

    Args:
        names: in the order of their codes, such as a run's directions.
    """
    return pd.CategoricalDtype(list(names))
