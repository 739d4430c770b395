"""Lines of the modal balance: gaps, weights and contributions to the loss over steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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


def gap_and_weight_lines(
    log: ControllerLog,
    weights: Mapping[str, np.ndarray],
    configs: tuple[UWMLConfig, UWMLConfig],
    directions: tuple[str, str],
    max_points: int,
) -> Lines:
    """Gap of each step and over both windows, and the weights, of both directions.

    Args:
        log: the logged steps.
        weights: ``before`` and ``after``, each ``[n, 2]``.
        configs: the parameters in use and the ones tried.
        directions: the run's directions.
        max_points: most points per line.
    """
    lines = [_Line("gap", "raw", log.gap, log.pairs)]
    windows = {when: config.window for when, config in zip(("before", "after"), configs, strict=True)}
    means = {when: window_means(log.gap, window) for when, window in windows.items()}
    lines += [
        _Line("gap", when, *means[when]) for when in _shown({w: mean for w, (mean, _n) in means.items()})
    ]
    for when in _shown(weights):
        rows = DirectionController.from_config(configs[when == "after"]).update_rows(log.gap)
        updates = np.searchsorted(rows, np.arange(len(log.step)), side="right")
        lines.append(_Line("weight", when, weights[when], updates))
    return _decimated(lines, log, directions, max_points)


def contribution_lines(
    log: ControllerLog,
    weights: Mapping[str, np.ndarray],
    directions: tuple[str, str],
    max_points: int,
) -> Lines:
    """What each direction adds to the loss, in its unit and in percent of it; rolling means over steps.

    Args:
        log, weights, directions, max_points: as for ``gap_and_weight_lines``.
    """
    quantities = {
        "contribution": {when: weight * log.loss for when, weight in weights.items()},
        "share": {when: share_of_loss(log, weight) for when, weight in weights.items()},
    }
    window = max(1, len(log.step) // 50)
    lines = [
        _Line(quantity, when, *window_means(values[when], window))
        for quantity, values in quantities.items()
        for when in _shown(values)
    ]
    return _decimated(lines, log, directions, max_points)


def share_of_loss(log: ControllerLog, weight: np.ndarray) -> np.ndarray:
    """Part of each step's loss that each direction brings, w_d L_d / Σ w_d L_d in percent, ``[n, 2]``.

    NaN where the loss is 0 or not finite.
    """
    parts = weight * log.loss
    total = parts.sum(axis=1, keepdims=True)
    share: np.ndarray = 100.0 * parts / np.where((total != 0) & np.isfinite(total), total, np.nan)
    return share


def _shown(values: Mapping[str, np.ndarray]) -> list[str]:
    same = np.array_equal(values["before"], values["after"], equal_nan=True)
    return ["after"] if same else ["before", "after"]


class _Line(NamedTuple):
    quantity: str
    line: str
    values: np.ndarray
    n: np.ndarray


def _decimated(lines: list[_Line], log: ControllerLog, directions: tuple[str, str], max_points: int) -> Lines:
    parts: list[tuple[np.ndarray, ...]] = [tuple(np.empty(0) for _column in range(7))]
    shown, total, bad = 0, 0, 0
    for line in lines:
        for code, value in enumerate(line.values.T):
            if np.isnan(value).all():
                continue
            kept = decimate(log.step, value, max_points)
            rows = np.sort(np.concatenate([kept.kept, kept.nonfinite]))
            codes = (QUANTITIES.index(line.quantity), LINES.index(line.line), code)
            labels = [np.full(len(rows), number) for number in codes]
            parts.append((*labels, log.step[rows], log.epoch[rows], value[rows], line.n[rows]))
            shown, total, bad = shown + len(kept.kept), total + kept.total, bad + kept.nonfinite_total
    text = _("{shown} of {total} points").format(shown=f"{shown:,}", total=f"{total:,}")
    return Lines(_frame(parts, directions), clauses([text, marked(bad)]))


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
