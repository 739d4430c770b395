"""What the colours of the embedding map tell apart: a class per point and the classes' names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from uwml_core.analysis.bands import BAND_EDGES, BAND_NAMES, band_label, band_of
from uwml_core.analysis.text import modality_name
from uwml_core.i18n import _

COLOR_BY = ("modality", "group", "margin", "rank", "weight", "phase", "kept")
# More groups than this cannot be told apart by colour.
MOST_GROUPS = 9
_RANK_EDGES = (1.0, 5.0, 10.0)
# Of the weight relative to the mean of its step, and of the share of kept neighbors.
_WEIGHT_EDGES = (0.5, 1.0, 1.5)
_KEPT_EDGES = (0.25, 0.5, 0.75)


def point_classes(
    points: pd.DataFrame, color_by: str, modalities: tuple[str, str], phases: Sequence[str] = ()
) -> tuple[NDArray[np.int64], list[str]]:
    """Class of each point.

    Args:
        points: frame of ``map_points``; with ``weight``, ``phase`` or ``kept_share`` where it is asked for.
        color_by: one of ``COLOR_BY``.
        modalities: names of both.
        phases: names of the run's phases, in order.

    Returns:
        int64 ``[n]``, position in the names, −1 where the point has no such property; and the names, for
        groups the most frequent ones by name, then one for the rest where there are more.

    Raises:
        ValueError: if ``color_by`` is unknown.

    Example:
        >>> frame = pd.DataFrame({"margin": [-0.1, 0.3, float("nan")]})
        >>> point_classes(frame, "margin", ("image", "text"))[0].tolist()
        [0, 3, -1]
    """
    if color_by == "modality":
        return _codes(points["modality"], list(modalities)), [modality_name(name) for name in modalities]
    if color_by == "group":
        return _groups(points["group"])
    if color_by == "phase":
        return _codes(points["phase"], list(phases)), list(phases)
    if color_by not in COLOR_BY:
        raise ValueError(f"color_by={color_by!r} is unknown; choose one of {', '.join(COLOR_BY)}")
    return _bands(points, color_by), _band_names(color_by)


def _bands(points: pd.DataFrame, color_by: str) -> NDArray[np.int64]:
    if color_by == "margin":
        return band_of(points["margin"].to_numpy(np.float64)).astype(np.int64)
    if color_by == "rank":
        return _band(points["rank"], _RANK_EDGES, "left")
    column, edges = ("weight", _WEIGHT_EDGES) if color_by == "weight" else ("kept_share", _KEPT_EDGES)
    return _band(points[column], edges, "right")


def _band(values: pd.Series, edges: Sequence[float], side: Literal["left", "right"]) -> NDArray[np.int64]:
    """How many edges lie below a value, or, of side ``right``, at it too; −1 where it is NaN."""
    wide = values.to_numpy(np.float64)
    codes, known = np.full(len(wide), -1, np.int64), ~np.isnan(wide)
    codes[known] = np.searchsorted(edges, wide[known], side=side)
    return codes


def _codes(values: pd.Series, names: list[str]) -> NDArray[np.int64]:
    # a comparison per name: to look each value up in a dictionary takes three times as long
    texts, codes = values.to_numpy(object), np.full(len(values), -1, np.int64)
    for code, name in enumerate(names):
        codes[texts == name] = code
    return codes


def _groups(groups: pd.Series) -> tuple[NDArray[np.int64], list[str]]:
    counts = groups[groups != ""].value_counts()
    # of equally frequent ones the first by name, so that the choice does not depend on the order of rows
    ordered = sorted(counts.index, key=lambda name: (-int(counts[name]), name))
    named = sorted(ordered[:MOST_GROUPS])
    codes = _codes(groups, named)
    if len(ordered) > MOST_GROUPS:
        codes[(codes < 0) & (groups != "").to_numpy()] = len(named)
        named = [*named, _("other groups")]
    return codes, named


def _band_names(color_by: str) -> list[str]:
    if color_by == "rank":
        return [_("rank 1"), _("rank 2 to 5"), _("rank 6 to 10"), _("rank above 10")]
    if color_by == "weight":
        return [_("weight < 0.5"), _("weight 0.5–1"), _("weight 1–1.5"), _("weight ≥ 1.5")]
    if color_by == "kept":
        return [_("kept < 25 %"), _("kept 25–50 %"), _("kept 50–75 %"), _("kept ≥ 75 %")]
    low, middle, high = (f"{edge:g}" for edge in BAND_EDGES)
    ranges = (f"< {low}", f"{low}–{middle}", f"{middle}–{high}", f"≥ {high}")
    return [f"{band_label(name)} {span}" for name, span in zip(BAND_NAMES, ranges, strict=True)]
