"""Points inside an area that was drawn on the map: which ones, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from uwml_core.analysis.pair_strength import pair_strength
from uwml_core.runlog.snapshots import Snapshot

Area = NDArray[np.float64]

MOST_CORNERS = 64
SELECTION_COLUMNS = ("modality", "n", "margin", "margin_sd", "margin_n", "recall_at_1", "rank_n")
_LONGEST = 40 * MOST_CORNERS


def area_of(numbers: Iterable[float]) -> Area | None:
    """Corners of an area, float64 ``[corners, 2]``.

    Args:
        numbers: x and y of each corner in turn.

    Returns:
        The corners, of many every k-th; None where these are fewer than three, or not finite.

    Example:
        >>> area_of([0, 0, 1, 0, 1, 1]).tolist()
        [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    """
    values = np.array(list(numbers), np.float64)
    if len(values) < 6 or len(values) % 2 or not np.isfinite(values).all():
        return None
    corners = values.reshape(-1, 2)
    return corners[:: -(-len(corners) // MOST_CORNERS)]


def area_text(area: Area) -> str:
    """An area as a short text for an address.

    Example:
        >>> area_text(np.array([[0.0, 1.23456], [-2.5, 0.0], [1.0, 1.0]]))
        '0_1.235_-2.5_0_1_1'
    """
    return "_".join(f"{value:.4g}" for value in area.ravel())


def parse_area(text: str) -> Area | None:
    """Inverse of ``area_text``; None for anything else."""
    if not text.isascii() or len(text) > _LONGEST:
        return None
    try:
        return area_of(float(part) for part in text.split("_"))
    except ValueError:
        return None


def inside(points: pd.DataFrame, area: Area) -> NDArray[np.bool_]:
    """Which points lie inside an area, by the even-odd rule; bool ``[n]``.

    Args:
        points: frame with ``x`` and ``y``.
        area: corners, the last joined to the first.
    """
    x, y = points["x"].to_numpy(np.float64), points["y"].to_numpy(np.float64)
    low, high = area.min(axis=0), area.max(axis=0)
    near = np.flatnonzero((x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1]))
    odd = np.zeros(len(near), bool)
    for (x0, y0), (x1, y1) in zip(area, np.roll(area, -1, axis=0), strict=True):
        crosses = (y0 > y[near]) != (y1 > y[near])
        rise = (y1 - y0) or 1.0
        odd ^= crosses & (x[near] < x0 + (x1 - x0) * (y[near] - y0) / rise)
    found = np.zeros(len(x), bool)
    found[near[odd]] = True
    return found


def keep_selected(points: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """Those points of a snapshot that were chosen in another one, in the order of ``points``.

    Args:
        points: frame of ``map_points``.
        chosen: frame ``[item_id, modality]``.
    """
    kept = np.zeros(len(points), bool)
    for name, mine in chosen.groupby("modality", observed=True)["item_id"]:
        kept |= (points["modality"] == name).to_numpy() & points["item_id"].isin(mine).to_numpy()
    return points[kept]


def selection_statistics(selected: pd.DataFrame, modalities: tuple[str, str]) -> pd.DataFrame:
    """What the selected points have in common, by modality and together.

    Args:
        selected: rows of a frame of ``map_points``; points without margin or rank are left out and counted.
        modalities: names of both.

    Returns:
        Frame ``[modality, n, margin, margin_sd, margin_n, recall_at_1, rank_n]``: mean and sample standard
        deviation of the margin, and the share of points that find their counterpart first; the last row,
        with modality null, is over both.
    """
    rows = [_statistics(selected[selected["modality"] == name], name) for name in modalities]
    return pd.DataFrame([*rows, _statistics(selected, None)], columns=list(SELECTION_COLUMNS))


def _statistics(points: pd.DataFrame, name: str | None) -> tuple[object, ...]:
    margin, rank = (points[column].dropna().to_numpy(np.float64) for column in ("margin", "rank"))
    nan = float("nan")
    return (
        name,
        len(points),
        float(margin.mean()) if len(margin) else nan,
        float(margin.std(ddof=1)) if len(margin) > 1 else nan,
        len(margin),
        float(np.mean(rank <= 1)) if len(rank) else nan,
        len(rank),
    )


def selected_groups(selected: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """How often each group is among the selected points, and how often it would be by chance.

    Args:
        selected: rows of ``points``.
        points: frame of ``map_points``.

    Returns:
        Frame ``[group, n, share, share_of_all]``, the most frequent first, without the points of no group.
    """
    counts, whole = (frame.loc[frame["group"] != "", "group"].value_counts() for frame in (selected, points))
    frame = pd.DataFrame({"group": counts.index.astype(object), "n": counts.to_numpy(np.int64)})
    frame["share"] = frame["n"] / max(len(selected), 1)
    frame["share_of_all"] = whole.reindex(frame["group"]).to_numpy(np.float64) / max(len(points), 1)
    return frame.sort_values(["n", "group"], ascending=[False, True], kind="stable", ignore_index=True)


def rows_of_points(snapshot: Snapshot, points: pd.DataFrame) -> NDArray[np.int64]:
    """Rows of a snapshot that some points of its map are; −1 where it has no such point.

    Args:
        snapshot: the snapshot.
        points: frame ``[item_id, modality]``.
    """
    found = np.full(len(points), -1, np.int64)
    for name in snapshot.modalities:
        rows, mine = snapshot.rows(name), (points["modality"] == name).to_numpy()
        place = pd.Index(snapshot.item_ids[rows]).get_indexer(pd.Index(points.loc[mine, "item_id"]))
        found[mine] = np.where(place >= 0, rows[place], -1)
    return found


def with_strength(
    snapshot: Snapshot, points: pd.DataFrame, modalities: tuple[str, str], most: int, seed: int = 0
) -> tuple[pd.DataFrame, int]:
    """Points with margin and rank among all candidates of their snapshot, of many points those of a sample.

    Args:
        snapshot: the snapshot.
        points: rows of a frame of ``map_points``.
        modalities: names of both.
        most: points that are compared with all candidates.
        seed: of the sample.

    Returns:
        The points with margin and rank, NaN for those not in the sample, and how many are in it.
    """
    rows = rows_of_points(snapshot, points)
    asked = np.arange(len(points))
    if len(asked) > most:
        asked = np.sort(np.random.default_rng(seed).choice(asked, most, replace=False))
    strength = pair_strength(snapshot, modalities, rows[asked])
    told = points.assign(margin=np.nan, rank=np.nan)
    for name in ("margin", "rank"):
        values = told[name].to_numpy(copy=True)
        values[asked] = strength[name].to_numpy()[rows[asked]]
        told[name] = values
    return told, len(asked)
