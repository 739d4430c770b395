"""What rules take from a series over steps, and from the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from uwml_core.analysis.diagnosis.finding import Change, Evidence, Measured
from uwml_core.analysis.diagnosis.frames import Frames

_MOST_POINTS = 200


def current(frames: Frames, name: str) -> Any:
    """A setting of the run by its full name, such as ``train.learning_rate``; None where unknown."""
    section, _, key = name.partition(".")
    values = frames.config.get(section)
    return values.get(key) if isinstance(values, Mapping) else None


def lowered(name: str, value: Any, factor: float) -> tuple[Change, ...]:
    """The setting times a factor, two digits; nothing where the run's value is unknown."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ()
    return (Change(name=name, value=float(f"{value * factor:.2g}"), before=value),)


def tail(frames: Frames, share: float = 0.25) -> slice:
    """The last part of the steps, at least one."""
    n = len(frames.steps)
    return slice(n - max(1, round(n * share)), n)


def measured(frames: Frames, name: str, values: np.ndarray, part: slice, unit: str = "") -> Measured:
    """Median of the finite values of a part of the steps, with what it was taken from."""
    chosen, step = values[part], frames.steps["step"].to_numpy()[part]
    finite = np.isfinite(chosen)
    return Measured(
        name=name,
        value=float(np.median(chosen[finite])) if finite.any() else float("nan"),
        unit=unit,
        n=int(finite.sum()),
        first_step=int(step[0]),
        last_step=int(step[-1]),
    )


def thinned(
    frames: Frames, columns: Mapping[str, np.ndarray], *, unit: str = "", limit: float | None = None,
    limit_name: str = "",
) -> Evidence:  # fmt: skip
    """Lines over steps: means of up to 200 equal stretches, labelled by their last step.

    Args:
        frames: the run.
        columns: name to one value per step.
        unit: of the values.
        limit, limit_name: reference line.
    """
    step = frames.steps["step"].to_numpy()
    edges = np.unique(np.linspace(0, len(step), min(len(step), _MOST_POINTS) + 1).astype(np.int64))
    table = {"step": step[edges[1:] - 1]}
    for name, values in columns.items():
        with np.errstate(invalid="ignore"):
            sums = np.add.reduceat(np.nan_to_num(values, posinf=np.nan, neginf=np.nan), edges[:-1])
            count = np.add.reduceat(np.isfinite(values).astype(np.float64), edges[:-1])
            table[name] = sums / np.where(count > 0, count, np.nan)
    return Evidence(
        frame=pd.DataFrame(table), x="step", y=tuple(columns), unit=unit, limit=limit, limit_name=limit_name
    )
