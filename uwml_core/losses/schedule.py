"""What the stage of the training sets: steepness of the curve and temperature."""

from __future__ import annotations

import sys
import warnings
from typing import NamedTuple

from uwml_core.weighting import UWMLConfig, stage_factor, stage_steepness


class Stage(NamedTuple):
    """Schedule values of one step; ``progress`` is None where it is unknown."""

    progress: float | None
    steepness: float
    factor: float
    temperature: float


def stage_at(progress: float | None, config: UWMLConfig) -> Stage:
    """Schedule values at a progress in [0, 1]; those of the end where it is unknown.

    Example:
        >>> stage_at(None, UWMLConfig(temperature=0.1, temperature_end=0.05)).temperature
        0.05
    """
    t = 1.0 if progress is None else progress
    start, end = config.steepness_start, config.steepness_end
    steepness = stage_steepness(t, start, end)
    first = config.temperature
    last = first if config.temperature_end is None else config.temperature_end
    return Stage(progress, steepness, stage_factor(steepness, start, end), first + (last - first) * t)


def depends_on_progress(config: UWMLConfig) -> bool:
    """Whether an unknown progress changes the loss at all."""
    bends = config.curve != "uniform" and config.steepness_start != config.steepness_end
    cools = config.has_temperature and config.temperature_end is not None
    return bends or cools


def warn_of_unknown_progress() -> None:
    """Say once that the schedule stays at its end, at the line that called the loss."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(
        "neither progress nor total_steps is known, so steepness and temperature stay at their end values; "
        "pass total_steps to UWMLLoss or progress to each call",
        stacklevel=level,
    )


def _inside(module: str) -> bool:
    return module.partition(".")[0] in ("torch", "uwml_core")
