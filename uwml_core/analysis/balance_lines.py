"""Lines of the modal balance: gaps, weights and contributions to the loss over steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from uwml_core.analysis.controller_log import ControllerLog, window_means
from uwml_core.analysis.decimation import decimate
from uwml_core.analysis.nonfinite import marked
from uwml_core.analysis.text import clauses
from uwml_core.i18n import _
from uwml_core.weighting import DirectionController, UWMLConfig

QUANTITIES = ("gap", "weight", "contribution", "share")
LINES = ("raw", "before", "after")


@dataclass(frozen=True)
class Lines:
    """Several quantities over steps as they are drawn and downloaded.

    Attributes:
        frame: ``[quantity, line, direction, step, epoch, value, n]``. ``line`` is raw, before or after;
            before is left out where it equals after. ``n`` counts what a value rests on: pairs of the
            batch (raw gap), gaps in the window (mean gap), updates so far (weight), steps of the rolling
            mean (contributions).
        note: how many of how many points are shown, how many are not finite.
    """

    frame: pd.DataFrame
    note: str


@dataclass(frozen=True, eq=False)
class Drawn:
    """A quantity of both directions, decimated to what is drawn.

    Attributes:
        values: before decimation, ``[n, 2]``.
        points: of each direction that has any: position of the direction, steps, epochs, values and what
            they rest on.
        shown, total, broken: points that are drawn, that there are, and that are not finite.
    """

    values: np.ndarray
    points: tuple[tuple[np.ndarray, ...], ...]
    shown: int
    total: int
    broken: int


def drawn(log: ControllerLog, values: np.ndarray, n: np.ndarray, max_points: int) -> Drawn:
    """Decimate a quantity.

    Args:
        log: the logged steps.
        values: ``[n, 2]``.
        n: what each value rests on, ``[n]``.
        max_points: most points per direction.
    """
    points, shown, total, broken = [], 0, 0, 0
    for code, value in enumerate(np.ascontiguousarray(values.T)):
        if np.isnan(value).all():
            continue
        kept = decimate(log.step, value, max_points)
        rows = np.sort(np.concatenate([kept.kept, kept.nonfinite]))
        points.append((np.full(len(rows), code), log.step[rows], log.epoch[rows], value[rows], n[rows]))
        shown, total = shown + len(kept.kept), total + kept.total
        broken += kept.nonfinite_total
    return Drawn(values, tuple(points), shown, total, broken)


@dataclass(frozen=True, kw_only=True)
class Side:
    """What one controller does: the mean gap that it sees, its weights, and what follows for the loss."""

    gap: Drawn
    weight: Drawn
    contribution: Drawn
    share: Drawn


def side(
    log: ControllerLog, weight: np.ndarray, config: UWMLConfig, max_points: int, known: Side | None = None
) -> Side:
    """Draw what one controller does.

    Args:
        log: the logged steps.
        weight: its weights, ``[n, 2]``.
        config: its parameters.
        max_points: most points per line.
        known: side of a controller with the same window, whose mean gaps are the same.
    """
    rows = DirectionController.from_config(config).update_rows(log.gap)
    updates = np.repeat(np.arange(len(rows) + 1), np.diff(rows, prepend=0, append=len(log.step)))
    smooth = max(1, len(log.step) // 50)
    quantities = {"contribution": weight * log.loss, "share": share_of_loss(log, weight)}
    return Side(
        gap=known.gap if known else drawn(log, *window_means(log.gap, config.window), max_points),
        weight=drawn(log, weight, updates, max_points),
        **{
            name: drawn(log, *window_means(values, smooth), max_points) for name, values in quantities.items()
        },
    )


def gap_and_weight_lines(raw: Drawn, before: Side, after: Side, directions: tuple[str, str]) -> Lines:
    """Gap of each step and over both windows, and the weights, of both directions."""
    lines = [("gap", "raw", raw), *_both("gap", before.gap, after.gap)]
    return _lines([*lines, *_both("weight", before.weight, after.weight)], directions)


def contribution_lines(before: Side, after: Side, directions: tuple[str, str]) -> Lines:
    """What each direction adds to the loss, in its unit and in percent of it; rolling means over steps."""
    lines = _both("contribution", before.contribution, after.contribution)
    return _lines([*lines, *_both("share", before.share, after.share)], directions)


def share_of_loss(log: ControllerLog, weight: np.ndarray) -> np.ndarray:
    """Part of each step's loss that each direction brings, w_d L_d / Σ w_d L_d in percent, ``[n, 2]``.

    NaN where the loss is 0 or not finite.
    """
    parts = weight * log.loss
    total = parts.sum(axis=1, keepdims=True)
    share: np.ndarray = 100.0 * parts / np.where((total != 0) & np.isfinite(total), total, np.nan)
    return share


_Line = tuple[str, str, Drawn]


def _both(quantity: str, before: Drawn, after: Drawn) -> list[_Line]:
    same = before is after or np.array_equal(before.values, after.values, equal_nan=True)
    lines = [(quantity, "before", before), (quantity, "after", after)]
    return lines[1:] if same else lines


def _lines(lines: list[_Line], directions: tuple[str, str]) -> Lines:
    parts: list[tuple[np.ndarray, ...]] = [tuple(np.empty(0) for _column in range(7))]
    for quantity, line, what in lines:
        codes = (QUANTITIES.index(quantity), LINES.index(line))
        for columns in what.points:
            labels = [np.full(len(columns[0]), number) for number in codes]
            parts.append((*labels, *columns))
    shown, total, broken = (
        sum(getattr(what, name) for *_names, what in lines) for name in ("shown", "total", "broken")
    )
    text = _("{shown} of {total} points").format(shown=f"{shown:,}", total=f"{total:,}")
    return Lines(_frame(parts, directions), clauses([text, marked(broken)]))


def _frame(parts: list[tuple[np.ndarray, ...]], directions: tuple[str, str]) -> pd.DataFrame:
    quantity, line, direction, step, epoch, value, n = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    return pd.DataFrame(
        {
            "quantity": _labels(quantity, QUANTITIES),
            "line": _labels(line, LINES),
            "direction": _labels(direction, directions),
            "step": step.astype(np.int64),
            "epoch": epoch,
            "value": value,
            "n": n,
        }
    )


def _labels(codes: np.ndarray, names: tuple[str, ...]) -> Any:
    return pd.Categorical.from_codes(codes.astype(np.int8).tolist(), dtype=pd.CategoricalDtype(list(names)))
