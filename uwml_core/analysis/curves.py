"""The difficulty curve over a grid of margins, at one or several moments of training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from uwml_core.weighting import UWMLConfig, difficulty_weight, stage_steepness

# All that a difference of two cosines can be; curves that stand beside each other are drawn less far.
MARGIN_GRID = np.round(np.linspace(-2.0, 2.0, 801), 3)
_NEAR_GRID = MARGIN_GRID[np.abs(MARGIN_GRID) <= 1.0]


def steepness_at(progress: np.ndarray, config: UWMLConfig) -> np.ndarray:
    """Steepness of the curve at each progress; that of the end where the progress is unknown (NaN).

    Args:
        progress: float64 ``[n]``, optimizer steps done / total.
        config: whose schedule.

    Returns:
        float64 ``[n]``, per cosine unit.
    """
    progress = np.asarray(progress, dtype=np.float64)
    known = np.where(np.isnan(progress), 1.0, progress)
    return stage_steepness(known, config.steepness_start, config.steepness_end)


def curve_weight(margin: np.ndarray, steepness: np.ndarray | float, config: UWMLConfig) -> np.ndarray:
    """The loss's own difficulty weight with the curve of ``config``, in the precision of ``margin``."""
    weight: np.ndarray = difficulty_weight(
        margin,
        curve=config.curve,
        center=config.center,
        steepness=steepness,
        hard_floor=config.hard_floor,
    )
    return weight


def mean_margin_scale(steps: pd.DataFrame, directions: tuple[str, str]) -> float:
    """Mean over steps and directions of the logged margin scale; NaN where none was logged.

    Args:
        steps: frame of the table ``steps``.
        directions: the run's directions.
    """
    names = [f"margin_scale_{direction}" for direction in directions]
    columns = [steps[name].to_numpy(np.float64, na_value=np.nan) for name in names if name in steps.columns]
    values = np.concatenate([np.empty(0), *columns])
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def center_margin(config: UWMLConfig, scale: float) -> float:
    """Margin of the curve's center, cosine units, where margins are divided by ``scale`` if by anything."""
    return config.center * (1.0 if config.margin_scale == "none" else scale)


def curve_frame(
    config: UWMLConfig,
    progress_values: Sequence[float],
    grid: np.ndarray | None = None,
    scale: float = 1.0,
) -> pd.DataFrame:
    """The curve at several moments.

    Args:
        config: parameters of the curve.
        progress_values: moments in [0, 1]; NaN where unknown, which gives the curve of the end.
        grid: margins ``[n]``, cosine units; None takes ``MARGIN_GRID``.
        scale: what margins are divided by where ``config`` has a margin scale.

    Returns:
        Frame ``[margin, weight, progress, steepness]``, moments one after another.
    """
    grid = MARGIN_GRID if grid is None else np.asarray(grid, dtype=np.float64)
    progress = np.asarray(progress_values, dtype=np.float64)
    steepness = steepness_at(progress, config)
    scaled = grid if config.margin_scale == "none" else grid / scale
    rows = [curve_weight(scaled, float(kappa), config) for kappa in steepness]
    return pd.DataFrame(
        {
            "margin": np.tile(grid, len(progress)),
            "weight": np.concatenate([np.empty(0), *rows]),
            "progress": np.repeat(progress, len(grid)),
            "steepness": np.repeat(steepness, len(grid)),
        }
    )


def curves_by_epoch(
    config: UWMLConfig, epochs: pd.DataFrame, max_curves: int = 12, scale: float = 1.0
) -> pd.DataFrame:
    """The curve in the middle of each epoch, of evenly spread epochs where there are many.

    Args:
        config: parameters of the curve.
        epochs: as ``margins.epoch_progress`` gives it.
        max_curves: most epochs to show; the first and the last always are.
        scale: as for ``curve_frame``.

    Returns:
        Frame ``[epoch, margin, weight, progress, steepness]``.
    """
    at = np.unique(np.linspace(0, max(len(epochs) - 1, 0), min(len(epochs), max_curves)).round().astype(int))
    chosen = epochs.iloc[at] if len(epochs) else epochs
    frame = curve_frame(config, chosen["progress"].to_list(), _NEAR_GRID, scale)
    frame.insert(0, "epoch", np.repeat(chosen["epoch"].to_numpy(dtype=np.int64), len(_NEAR_GRID)))
    return frame
