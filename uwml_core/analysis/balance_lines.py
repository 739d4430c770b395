"""Lines of the modal balance: gaps, weights and contributions to the loss over steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from uwml_core.analysis.controller_log import ControllerLog, window_means
from uwml_core.analysis.decimation import Decimation, decimate, inside, points_note, zoom
from uwml_core.analysis.step_values import names_dtype
from uwml_core.weighting import DirectionController, LoggedGaps, UWMLConfig

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
    """A quantity of both directions, and which of its points are drawn.

    Attributes:
        values: of all steps, ``[n, 2]``.
        n: what each step's values rest on, ``[n]``.
        kept: rows to draw of each direction that has any values, by its position.
    """

    values: np.ndarray
    n: np.ndarray
    kept: dict[int, Decimation]


def drawn(log: ControllerLog, values: np.ndarray, n: np.ndarray, max_points: int) -> Drawn:
    """Decimate a quantity.

    Args:
        log: the logged steps.
        values: ``[n, 2]``.
        n: what each value rests on, ``[n]``.
        max_points: most points per direction.
    """
    columns = enumerate(np.ascontiguousarray(values.T))
    kept = {
        code: decimate(log.step, value, max_points) for code, value in columns if not np.isnan(value).all()
    }
    return Drawn(values, n, kept)


@dataclass(frozen=True, kw_only=True)
class View:
    """What part of a run's steps is looked at, by lines of both directions.

    Attributes:
        log: the logged steps.
        directions: the run's directions.
        within: first and last step to draw more finely, None for all alike.
        max_points: most points per line, within that range.
    """

    log: ControllerLog
    directions: tuple[str, str]
    within: tuple[float, float] | None
    max_points: int

    def of(self, what: Drawn) -> dict[int, Decimation]:
        """Rows to draw of a quantity, by the position of the direction."""
        if self.within is None:
            return what.kept
        return {
            code: zoom(self.log.step, what.values[:, code], whole, self.within, self.max_points)
            for code, whole in what.kept.items()
        }


@dataclass(frozen=True, kw_only=True)
class Side:
    """What one controller does: the mean gap that it sees, its weights, and what follows for the loss."""

    gap: Drawn
    weight: Drawn
    contribution: Drawn
    share: Drawn


@dataclass(frozen=True, kw_only=True, eq=False)
class Moves:
    """The weights that one controller gives and what follows at each step.

    Attributes:
        window: gaps per mean.
        updates: rows at which it updates its weights, ascending.
        weight: its weights, ``[n, 2]``.
        share: as ``share_of_loss`` gives it.
    """

    window: int
    updates: np.ndarray
    weight: np.ndarray
    share: np.ndarray


def moves(log: ControllerLog, gaps: LoggedGaps, weight: np.ndarray, config: UWMLConfig) -> Moves:
    """What a controller with these weights and parameters does.

    Args:
        log: the logged steps.
        gaps: their gaps.
        weight: its weights, ``[n, 2]``.
        config: its parameters.
    """
    updates = DirectionController.from_config(config).update_rows(gaps)
    return Moves(window=config.window, updates=updates, weight=weight, share=share_of_loss(log, weight))


def side(log: ControllerLog, moved: Moves, max_points: int, known: Side | None = None) -> Side:
    """Draw what one controller does.

    Args:
        log: the logged steps.
        moved: what it does at each of them.
        max_points: most points per line.
        known: side of a controller with the same window, whose mean gaps are the same.
    """
    rows = moved.updates
    updates = np.repeat(np.arange(len(rows) + 1), np.diff(rows, prepend=0, append=len(log.step)))
    smooth = max(1, len(log.step) // 50)
    quantities = {"contribution": moved.weight * log.loss, "share": moved.share}
    return Side(
        gap=known.gap if known else drawn(log, *window_means(log.gap, moved.window), max_points),
        weight=drawn(log, moved.weight, updates, max_points),
        **{
            name: drawn(log, *window_means(values, smooth), max_points) for name, values in quantities.items()
        },
    )


def gap_and_weight_lines(raw: Drawn, before: Side, after: Side, view: View) -> Lines:
    """Gap of each step and over both windows, and the weights, of both directions."""
    lines = [("gap", "raw", raw), *_both("gap", before.gap, after.gap)]
    return _lines([*lines, *_both("weight", before.weight, after.weight)], view)


def contribution_lines(before: Side, after: Side, view: View) -> Lines:
    """What each direction adds to the loss, in its unit and in percent of it; rolling means over steps."""
    lines = _both("contribution", before.contribution, after.contribution)
    return _lines([*lines, *_both("share", before.share, after.share)], view)


def share_of_loss(log: ControllerLog, weight: np.ndarray) -> np.ndarray:
    """Part of each step's loss that each direction brings, w_d L_d / Σ w_d L_d in percent, ``[n, 2]``.

    NaN where the loss is 0 or not finite.
    """
    parts = weight * log.loss
    total = parts[:, :1] + parts[:, 1:]
    share: np.ndarray = 100.0 * parts / np.where((total != 0) & np.isfinite(total), total, np.nan)
    return share


_Line = tuple[str, str, Drawn]


def _both(quantity: str, before: Drawn, after: Drawn) -> list[_Line]:
    lines = [(quantity, "before", before), (quantity, "after", after)]
    return lines[1:] if _same(before, after) else lines


def _same(before: Drawn, after: Drawn) -> bool:
    if before is after:
        return True
    # two that differ mostly show it in the points that are drawn already, which are few
    rows = [[kept.kept.tobytes() for kept in what.kept.values()] for what in (before, after)]
    return rows[0] == rows[1] and np.array_equal(before.values, after.values, equal_nan=True)


def _lines(lines: list[_Line], view: View) -> Lines:
    parts: list[tuple[np.ndarray, ...]] = [tuple(np.empty(0) for _column in range(7))]
    shown, total, broken = 0, 0, 0
    for quantity, line, what in lines:
        codes = (QUANTITIES.index(quantity), LINES.index(line))
        for code, kept in view.of(what).items():
            columns = _columns(what, code, kept, view.log)
            parts.append((*(np.full(len(columns[0]), number) for number in (*codes, code)), *columns))
            total, broken = total + kept.total, broken + kept.nonfinite_total
            shown += len(kept.kept) if view.within is None else _count(view.log.step[kept.kept], view.within)
    return Lines(_frame(parts, view.directions), points_note(shown, total, broken, view.within))


def _count(steps: np.ndarray, within: tuple[float, float]) -> int:
    rows = inside(steps, within)
    return int(rows.stop) - int(rows.start)


def _columns(what: Drawn, code: int, kept: Decimation, log: ControllerLog) -> tuple[np.ndarray, ...]:
    rows = kept.drawn
    return log.step[rows], log.epoch[rows], what.values[rows, code], what.n[rows]


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
    return pd.Categorical.from_codes(codes.astype(np.int8), dtype=names_dtype(names))
