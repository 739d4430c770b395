"""Fewer points for the screen without losing a spike."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from uwml_core.analysis.nonfinite import marked, split_finite
from uwml_core.analysis.text import clauses
from uwml_core.i18n import _, ngettext


@dataclass(frozen=True)
class Decimation:
    """Which rows of a series are drawn.

    Attributes:
        kept: row indices of finite points, ascending, int64.
        nonfinite: row indices of points that are NaN or infinite, thinned to one per stretch, ascending.
        total: rows of the series.
        nonfinite_total: rows that are not finite, before thinning.
    """

    kept: np.ndarray
    nonfinite: np.ndarray
    total: int
    nonfinite_total: int

    @property
    def drawn(self) -> np.ndarray:
        """All of them, ascending."""
        return np.sort(np.concatenate([self.kept, self.nonfinite]))


def decimate(x: np.ndarray, y: np.ndarray, max_points: int = 2000) -> Decimation:
    """Keep first, last, each stretch's minimum and maximum, and the sharpest one-step spikes.

    Minimum and maximum alone lose the lower of two spikes that fall into one stretch, so a quarter of
    the points goes to the rows that stick out most from both of their neighbours.

    Args:
        x: ascending positions ``[n]``; a row whose position is not finite is never kept.
        y: values ``[n]``, NaN and infinities allowed.
        max_points: most finite points to keep, >= 8.

    Returns:
        The rows to draw; all of them when there are at most ``max_points``.

    Raises:
        ValueError: if the lengths differ or ``max_points`` is below 8.

    Example:
        >>> y = np.zeros(10_000); y[1234] = 1.0
        >>> 1234 in decimate(np.arange(10_000), y, max_points=100).kept
        True
    """
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} rows and y has {len(y)}; expected equal lengths")
    if max_points < 8:
        raise ValueError(f"max_points={max_points} is too few; expected at least 8")
    y = np.asarray(y, dtype=np.float64)
    finite, other = split_finite(y if x.dtype.kind in "iu" else y + 0.0 * np.asarray(x, dtype=np.float64))
    kept = finite
    if len(finite) > max_points:
        kept = finite[_extremes(y[finite], max_points)] if len(other) else _extremes(y, max_points)
    return Decimation(kept, _thin(other, max_points // 4), len(y), len(other))


def _extremes(y: np.ndarray, max_points: int) -> np.ndarray:
    spikes = max_points // 4
    rows = _stretches(len(y), (max_points - spikes - 2) // 2)
    block, at = y.take(rows), np.arange(len(rows))
    kept = np.zeros(len(y), dtype=bool)
    kept[[0, -1]] = kept[rows[at, block.argmin(axis=1)]] = kept[rows[at, block.argmax(axis=1)]] = True
    kept[_sharpest(y, spikes)] = True
    # to sort and compare the rows would take three times as long
    return np.flatnonzero(kept)


# the charts of a page thin series of one length
@lru_cache(maxsize=2)
def _stretches(total: int, count: int) -> np.ndarray:
    """Rows of each stretch, ``[count, most]``; a shorter one repeats its last."""
    edges = np.linspace(0, total, count + 1).astype(np.int64)
    width = int(np.diff(edges).max())
    return np.asarray(np.minimum(edges[:-1, None] + np.arange(width), edges[1:, None] - 1))


def _sharpest(y: np.ndarray, count: int) -> Any:
    change = np.diff(y)
    falls, size = np.signbit(change), np.abs(change)
    height = np.minimum(size[:-1], size[1:])
    # without the many that are no spike, among which the search for the highest would take five times as long
    spikes = np.flatnonzero((falls[:-1] != falls[1:]) & (height > 0))
    if len(spikes) > count:
        spikes = spikes[np.argpartition(height[spikes], len(spikes) - count)[-count:]]
    return spikes + 1


def _thin(rows: np.ndarray, most: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return rows[np.unique(np.linspace(0, len(rows) - 1, most).astype(np.int64))]


def inside(steps: np.ndarray, within: tuple[float, float]) -> slice:
    """Rows whose step lies within a range, both edges included.

    Args:
        steps: ascending, ``[n]``.
        within: first and last step to include.
    """
    first, after = np.searchsorted(steps, within[0]), np.searchsorted(steps, within[1], side="right")
    return slice(int(first), int(after))


def zoom(
    x: np.ndarray, y: np.ndarray, whole: Decimation, within: tuple[float, float], max_points: int = 2000
) -> Decimation:
    """Decimate a part of a series as finely as the whole; what lies around it stays as it is.

    Args:
        x: ascending positions ``[n]``.
        y: values ``[n]``.
        whole: the decimation of all of it.
        within: smallest and largest position of the part.
        max_points: most finite points to keep within it.

    Returns:
        The rows to draw; ``total`` and ``nonfinite_total`` count those of the part.
    """
    rows = inside(x, within)
    fine = decimate(x[rows], y[rows], max_points)
    kept, nonfinite = (
        np.sort(np.concatenate([outer[(outer < rows.start) | (outer >= rows.stop)], rows.start + inner]))
        for outer, inner in ((whole.kept, fine.kept), (whole.nonfinite, fine.nonfinite))
    )
    return Decimation(kept, nonfinite, fine.total, fine.nonfinite_total)


def points_note(shown: int, total: int, nonfinite: int, within: tuple[float, float] | None = None) -> str:
    """How many of how many points are shown, and how many are not finite.

    Args:
        shown: points that are drawn.
        total: points that there are.
        nonfinite: those that are not finite.
        within: the steps that all of this counts; None for all of them.

    Returns:
        The note; empty where there is no point at all.
    """
    if not total and within is None:
        return ""
    counts = {"shown": f"{shown:,}", "total": f"{total:,}"}
    if within is None:
        text = ngettext("{shown} of {total} point", "{shown} of {total} points", total).format(**counts)
    else:
        text = ngettext("{shown} of {total} point in {steps}", "{shown} of {total} points in {steps}", total)
        text = text.format(**counts, steps=steps_text(within))
    return clauses([text, marked(nonfinite)])


def steps_text(within: tuple[float, float]) -> str:
    """Name of a range of steps: the first and the last whole step in it."""
    first, last = max(0, math.ceil(within[0])), math.floor(within[1])
    return _("steps {first} to {last}").format(first=f"{first:,}", last=f"{max(first, last):,}")


@dataclass(frozen=True)
class SeriesView:
    """A series as it is drawn and downloaded, and what was left out of it.

    Attributes:
        frame: rows to draw, points that are not finite included, in the order of the series.
        shown: finite points in ``frame``.
        total: rows of the whole series.
        nonfinite: rows of the whole series that are not finite.
        within: the steps that the three numbers are about; None for all of them.
    """

    frame: pd.DataFrame
    shown: int
    total: int
    nonfinite: int
    within: tuple[float, float] | None = None

    @property
    def note(self) -> str:
        """How many of how many points are shown, and how many are not finite."""
        return points_note(self.shown, self.total, self.nonfinite, self.within)


def decimate_series(series: pd.DataFrame, max_points: int = 2000) -> SeriesView:
    """Decimate a tidy series, each direction on its own.

    Args:
        series: frame with ``step``, ``value`` and a categorical ``direction`` (null = the total), rows of
            a direction together and in step order, as ``training.step_series`` gives it.
        max_points: most finite points per direction.

    Returns:
        The view.
    """
    codes = series["direction"].cat.codes.to_numpy()
    x, y = series["step"].to_numpy(), series["value"].to_numpy(dtype=np.float64)
    kept, shown, nonfinite = [np.empty(0, np.int64)], 0, 0
    starts = np.flatnonzero(np.diff(codes, prepend=-2)).tolist()
    for start, stop in itertools.pairwise([*starts, len(codes)]):
        part = decimate(x[start:stop], y[start:stop], max_points)
        kept += [start + part.drawn]
        shown, nonfinite = shown + len(part.kept), nonfinite + part.nonfinite_total
    frame = series.iloc[np.concatenate(kept)].reset_index(drop=True)
    return SeriesView(frame, shown, len(series), nonfinite)


def zoom_series(
    whole: SeriesView, part: pd.DataFrame, within: tuple[float, float], max_points: int = 2000
) -> SeriesView:
    """Draw the part of a series within a range of steps as finely as the whole.

    Args:
        whole: the series as it is drawn in whole; it stays as it is around the range.
        part: the series within the range, as for ``decimate_series``.
        within: first and last step of the range.
        max_points: most finite points per direction within it.
    """
    fine = decimate_series(part, max_points)
    around = whole.frame[~whole.frame["step"].between(*within)]
    frame = pd.concat([around, fine.frame], ignore_index=True) if len(fine.frame) else around
    order = np.lexsort((frame["step"], frame["direction"].cat.codes))
    frame = frame.iloc[order].reset_index(drop=True)
    return SeriesView(frame, fine.shown, fine.total, fine.nonfinite, within)
