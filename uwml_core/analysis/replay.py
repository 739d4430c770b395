"""Logged pairs made ready for a replay with other parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.columns import direction_codes, numbers
from uwml_core.analysis.curves import curve_weight, steepness_at
from uwml_core.analysis.step_groups import StepGroups, group_rows
from uwml_core.weighting import UWMLConfig, combined_weight, stage_factor


@dataclass(frozen=True, kw_only=True)
class LoggedPairs:
    """Rows that have a weight, grouped by step and direction.

    Attributes:
        groups: the grouping of the rows.
        margin, pair_loss, weight, gradient_share: as logged, ``[rows]``.
        progress, temperature: of each group's step, float64 ``[groups]``; NaN where not logged.
        direction_weight, margin_scale: of each group's step and direction, float64 ``[groups]``; NaN
            where not logged.
        left_out: rows of each direction without a weight or a finite margin, ``[directions]``.
        weighed: whether any weight was logged; each row counts as 1 where none was.
    """

    groups: StepGroups
    margin: np.ndarray
    pair_loss: np.ndarray
    weight: np.ndarray
    gradient_share: np.ndarray
    progress: np.ndarray
    temperature: np.ndarray
    direction_weight: np.ndarray
    margin_scale: np.ndarray
    left_out: np.ndarray
    weighed: bool


def logged_pairs(pairs: pa.Table, steps: pd.DataFrame, directions: tuple[str, str]) -> LoggedPairs:
    """Take the rows that a replay can use.

    Args:
        pairs: rows of the table ``pairs`` with ``selection.PREVIEW_COLUMNS``, whole steps.
        steps: frame of the table ``steps`` with step, progress and temperature, and for each direction
            direction_weight and margin_scale; rows of ``pairs`` whose step is not among them are ignored.
        directions: the run's directions; rows of others are ignored.

    Returns:
        The usable rows. A weight of 0, null or NaN and a margin that is not finite leave a row out. Where
        no row has a weight, none having been logged, each counts as 1.
    """
    step, code = numbers(pairs, "step"), direction_codes(pairs, directions)
    margin, weight = numbers(pairs, "margin"), numbers(pairs, "weight")
    weighed = not pairs.num_rows or pairs["weight"].null_count < pairs.num_rows
    if not weighed:
        weight = np.ones_like(margin)
    ours = (code >= 0) & _among(step, steps["step"].to_numpy())
    usable = ours & np.isfinite(margin) & np.isfinite(weight) & (weight > 0)
    left_out = np.bincount(code[ours & ~usable], minlength=len(directions))
    rows = slice(None) if usable.all() else np.flatnonzero(usable)
    groups, order = group_rows(step[rows].astype(np.int64), code[rows])
    if order is not None:
        rows = np.arange(len(step))[rows][order]
    return LoggedPairs(
        groups=groups,
        margin=margin[rows],
        pair_loss=numbers(pairs, "pair_loss")[rows],
        weight=weight[rows],
        gradient_share=numbers(pairs, "gradient_share")[rows],
        progress=_of_step(steps, "progress", groups.step),
        temperature=_of_step(steps, "temperature", groups.step),
        direction_weight=_of_direction(steps, "direction_weight", groups, directions),
        margin_scale=_of_direction(steps, "margin_scale", groups, directions),
        left_out=left_out,
        weighed=weighed,
    )


def _among(step: np.ndarray, known: np.ndarray) -> np.ndarray:
    # Rows of a step stand together, so one look-up per stretch does for all of them.
    starts = np.flatnonzero(np.diff(step, prepend=np.nan) != 0)
    lengths = np.diff(np.append(starts, len(step)))
    return np.repeat(np.isin(step[starts], known), lengths)


def _of_step(steps: pd.DataFrame, name: str, step: np.ndarray) -> np.ndarray:
    if name not in steps.columns or not len(step):
        return np.full(len(step), np.nan)
    known = steps["step"].to_numpy()
    order = np.argsort(known, kind="stable")
    values = steps[name].to_numpy(dtype=np.float64, na_value=np.nan)
    found: np.ndarray = values[order[np.searchsorted(known, step, sorter=order)]]
    return found


def _of_direction(
    steps: pd.DataFrame, name: str, groups: StepGroups, directions: tuple[str, str]
) -> np.ndarray:
    first, second = (_of_step(steps, f"{name}_{direction}", groups.step) for direction in directions)
    return np.where(groups.direction == 0, first, second)


def replayed_weight(logged: LoggedPairs, config: UWMLConfig) -> np.ndarray:
    """Relative weight that ``config`` would have given each row at its step, ``[rows]``.

    The steepness follows from the step's logged progress, as in the loss; direction weights and margin
    scales are the logged ones. NaN where ``config`` needs one that was not logged.
    """
    groups, margin = logged.groups, logged.margin

    def of_rows(values: np.ndarray) -> np.ndarray:
        return groups.spread(values).astype(margin.dtype)

    steepness = steepness_at(logged.progress, config)
    known = np.ones(len(margin), dtype=bool)
    if config.margin_scale != "none":
        margin = margin / of_rows(logged.margin_scale)
        known &= np.isfinite(margin)
    weight = curve_weight(margin, of_rows(steepness), config)
    if config.combination == "add":
        factor = stage_factor(steepness, config.steepness_start, config.steepness_end)
        of_direction = of_rows(logged.direction_weight)
        known &= np.isfinite(of_direction)
        weight = combined_weight(weight, of_direction, of_rows(np.broadcast_to(factor, steepness.shape)))
    relative = groups.relative_weight(weight, config.max_weight)
    return relative if known.all() else np.where(known, relative, np.nan)
