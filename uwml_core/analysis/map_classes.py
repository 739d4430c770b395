"""What the colours of the embedding map tell apart: a class per point and the classes' names."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from uwml_core.analysis.bands import BAND_EDGES, BAND_NAMES, band_label, band_of
from uwml_core.analysis.text import modality_name
from uwml_core.i18n import _

COLOR_BY = ("modality", "group", "margin", "rank")
# More groups than this cannot be told apart by colour.
MOST_GROUPS = 9
_RANK_EDGES = (1.0, 5.0, 10.0)


def point_classes(
    points: pd.DataFrame, color_by: str, modalities: tuple[str, str]
) -> tuple[NDArray[np.int64], list[str]]:
    """Class of each point.

    Args:
        points: frame of ``map_points``.
        color_by: one of ``COLOR_BY``.
        modalities: names of both.

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
    if color_by == "margin":
        return band_of(points["margin"].to_numpy(np.float64)).astype(np.int64), _band_names()
    if color_by == "rank":
        return _rank_class(points["rank"].to_numpy(np.float64)), [
            _("rank 1"), _("rank 2 to 5"), _("rank 6 to 10"), _("rank above 10")
        ]  # fmt: skip
    raise ValueError(f"color_by={color_by!r} is unknown; choose one of {', '.join(COLOR_BY)}")


def _codes(values: pd.Series, names: list[str]) -> NDArray[np.int64]:
    place = {name: code for code, name in enumerate(names)}
    return np.array([place.get(value, -1) for value in values], dtype=np.int64)


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


def _band_names() -> list[str]:
    low, middle, high = (f"{edge:g}" for edge in BAND_EDGES)
    ranges = (f"< {low}", f"{low}–{middle}", f"{middle}–{high}", f"≥ {high}")
    return [f"{band_label(name)} {span}" for name, span in zip(BAND_NAMES, ranges, strict=True)]


def _rank_class(rank: NDArray[np.float64]) -> NDArray[np.int64]:
    codes = np.searchsorted(_RANK_EDGES, rank, side="left").astype(np.int64)
    codes[np.isnan(rank)] = -1
    return codes
