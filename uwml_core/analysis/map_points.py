"""The points of the embedding map as one tidy frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from uwml_core.runlog.snapshots import Snapshot

POINT_COLUMNS = (
    "x", "y", "item_id", "modality", "group", "caption", "label", "split", "margin", "rank", "step", "epoch",
)  # fmt: skip


def map_points(
    snapshot: Snapshot, layout: pd.DataFrame, strength: pd.DataFrame, items: pd.DataFrame | None
) -> pd.DataFrame:
    """Everything that is drawn or told about the points of one snapshot.

    Args:
        snapshot: the snapshot.
        layout: frame ``[step, item_id, modality, x, y]``, also of other snapshots.
        strength: frame of ``pair_strength`` for this snapshot.
        items: frame of the table ``items``; None where they were not logged.

    Returns:
        Frame with ``POINT_COLUMNS``, a row per point that has a place; ``group`` and ``caption`` are
        empty texts where they are not known.
    """
    places = places_of(snapshot, layout)
    rows = np.flatnonzero(np.isfinite(places).all(axis=1))
    items_here = snapshot.item_ids[rows]
    told = describe_items(items_here, items)
    names = np.array(snapshot.modalities, dtype=object)[snapshot.modality[rows]]
    columns = {
        "x": places[rows, 0], "y": places[rows, 1], "item_id": items_here, "modality": _texts(names),
        "group": told["group"], "caption": told["caption"], "label": snapshot.labels[rows],
        "split": _texts(snapshot.splits[rows]), "margin": strength["margin"].to_numpy()[rows],
        "rank": strength["rank"].to_numpy()[rows], "step": snapshot.step, "epoch": snapshot.epoch,
    }  # fmt: skip
    return pd.DataFrame(columns, columns=list(POINT_COLUMNS), index=range(len(rows)))


def _texts(values: NDArray[np.object_]) -> pd.Series:
    # kept as they are: pandas would look at each, and pack it for each that is asked for later
    return pd.Series(values, dtype=object)


def places_of(snapshot: Snapshot, layout: pd.DataFrame) -> NDArray[np.float32]:
    """Place of each point of a snapshot, float32 ``[n, 2]``; NaN where the layout has none."""
    here, items = layout["step"].to_numpy() == snapshot.step, layout["item_id"].to_numpy(np.int64)
    where = [layout[name].to_numpy(np.float32) for name in ("x", "y")]
    places = np.full((len(snapshot.item_ids), 2), np.nan, np.float32)
    for name in snapshot.modalities:
        rows, placed = snapshot.rows(name), np.flatnonzero(here & (layout["modality"] == name).to_numpy())
        first, found = _first_rows(items[placed], snapshot.item_ids[rows])
        for axis, values in enumerate(where):
            places[rows[found], axis] = values[placed[first]]
    return places


def _first_rows(
    known: NDArray[np.int64], asked: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of those asked for that are known the first row among the known, and the positions of those."""
    ids, rows = np.unique(known, return_index=True)
    at = np.searchsorted(ids, asked)
    found = np.flatnonzero(at < len(ids))
    found = found[ids[at[found]] == asked[found]]
    return rows[at[found]], found


def describe_items(item_ids: NDArray[np.int64], items: pd.DataFrame | None) -> pd.DataFrame:
    """Group and first caption of items.

    Args:
        item_ids: which ones, in which order.
        items: frame of the table ``items``, or of this function; None where they were not logged.

    Returns:
        Frame ``[item_id, group, caption]``, a row per given id, with empty texts where they are not known.
    """
    group, caption = (np.full(len(item_ids), "", object) for _ in range(2))
    if items is not None and len(items):
        rows, found = _first_rows(items["item_id"].to_numpy(np.int64), item_ids)
        groups = items["group"].to_numpy(object)[rows]
        if "caption" in items:
            group[found], caption[found] = groups, items["caption"].to_numpy(object)[rows]
        else:
            group[found] = [name if isinstance(name, str) and name.strip() else "" for name in groups]
            caption[found] = [first_caption(captions) for captions in items["captions"].to_numpy()[rows]]
    return pd.DataFrame({"item_id": item_ids, "group": _texts(group), "caption": _texts(caption)})


def first_caption(captions: object) -> str:
    """First of an item's captions; an empty text where it has none."""
    if isinstance(captions, (list, tuple, np.ndarray)) and len(captions):
        return str(captions[0] or "")
    return ""


def of_split(points: pd.DataFrame, split: str | None) -> pd.DataFrame:
    """Points of one split; all of them when None."""
    return points if split is None else points[points["split"] == split].reset_index(drop=True)


def worst_pairs(points: pd.DataFrame, modalities: tuple[str, str], most: int) -> pd.DataFrame:
    """Pairs with the lowest margin, the mean of both directions.

    Args:
        points: frame of ``map_points``.
        modalities: names of both.
        most: how many pairs at most.

    Returns:
        Frame ``[item_id, caption, margin, x_0, y_0, x_1, y_1]``, the worst first.
    """
    return pair_lines(points, modalities).nsmallest(most, "margin").reset_index(drop=True)


def pair_lines(
    points: pd.DataFrame, modalities: tuple[str, str], item_ids: Sequence[int] | None = None
) -> pd.DataFrame:
    """Both places of each item that has two; of some items where they are named.

    Returns:
        Frame ``[item_id, caption, margin, x_0, y_0, x_1, y_1]``.
    """
    chosen = points if item_ids is None else points[points["item_id"].isin(list(item_ids))]
    columns = ["item_id", "caption", "margin", "x", "y"]
    first, second = (chosen.loc[chosen["modality"] == name, columns] for name in modalities)
    both = first.merge(second.drop(columns="caption"), on="item_id", suffixes=("_0", "_1"))
    both["margin"] = (both["margin_0"] + both["margin_1"]) / 2.0
    return both[["item_id", "caption", "margin", "x_0", "y_0", "x_1", "y_1"]]


def map_range(*layouts: pd.DataFrame) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges of both axes that hold every point of every snapshot, with a little air around them.

    Args:
        *layouts: frames with ``x`` and ``y``.

    Returns:
        ((left, right), (bottom, top)); −1 to 1 where there is no finite point.
    """
    across, up = ([layout[name].to_numpy(np.float64) for layout in layouts] for name in ("x", "y"))
    return _reach(across), _reach(up)


def _reach(parts: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    known = [finite for part in parts if len(finite := part[np.isfinite(part)])]
    if not known:
        return -1.0, 1.0
    low, high = float(min(part.min() for part in known)), float(max(part.max() for part in known))
    air = 0.04 * (high - low) or 1.0
    return low - air, high + air
