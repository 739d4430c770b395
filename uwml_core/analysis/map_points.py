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
_KEY = ["modality", "item_id"]


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
    names = np.array(snapshot.modalities, dtype=object)[snapshot.modality]
    points = pd.DataFrame(
        {
            "item_id": snapshot.item_ids,
            "modality": names,
            "label": snapshot.labels,
            "split": snapshot.splits,
            "margin": strength["margin"].to_numpy(),
            "rank": strength["rank"].to_numpy(),
        }
    )
    points[["x", "y"]] = places_of(snapshot, layout)
    points = points[np.isfinite(points["x"]) & np.isfinite(points["y"])].reset_index(drop=True)
    told = describe_items(points["item_id"].to_numpy(), items)
    points["group"], points["caption"] = told["group"].to_numpy(), told["caption"].to_numpy()
    points["step"], points["epoch"] = snapshot.step, snapshot.epoch
    ordered: pd.DataFrame = points[list(POINT_COLUMNS)]
    return ordered


def places_of(snapshot: Snapshot, layout: pd.DataFrame) -> NDArray[np.float32]:
    """Place of each point of a snapshot, float32 ``[n, 2]``; NaN where the layout has none."""
    mine = layout.loc[layout["step"] == snapshot.step, [*_KEY, "x", "y"]].drop_duplicates(_KEY)
    places = np.full((len(snapshot.item_ids), 2), np.nan, np.float32)
    for name in snapshot.modalities:
        rows = snapshot.rows(name)
        placed = mine[mine["modality"] == name].set_index("item_id")[["x", "y"]]
        places[rows] = placed.reindex(snapshot.item_ids[rows]).to_numpy(np.float32)
    return places


def describe_items(item_ids: NDArray[np.int64], items: pd.DataFrame | None) -> pd.DataFrame:
    """Group and first caption of items.

    Args:
        item_ids: which ones, in which order.
        items: frame of the table ``items``, or of this function; None where they were not logged.

    Returns:
        Frame ``[item_id, group, caption]``, a row per given id, with empty texts where they are not known.
    """
    told = pd.DataFrame({"item_id": item_ids, "group": "", "caption": ""}).astype(
        {"group": object, "caption": object}
    )
    if items is None or items.empty:
        return told
    known = items.drop_duplicates("item_id").set_index("item_id")
    found = known.reindex(item_ids)
    if "caption" in found:
        return found[["group", "caption"]].fillna("").astype(object).reset_index()
    told["group"] = [group if isinstance(group, str) and group.strip() else "" for group in found["group"]]
    told["caption"] = [first_caption(captions) for captions in found["captions"]]
    return told


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


def map_range(layout: pd.DataFrame) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges of both axes that hold every point of every snapshot, with a little air around them.

    Returns:
        ((left, right), (bottom, top)); −1 to 1 where there is no finite point.
    """
    left, right = _reach(layout["x"])
    bottom, top = _reach(layout["y"])
    return (left, right), (bottom, top)


def _reach(values: pd.Series) -> tuple[float, float]:
    finite = values.to_numpy(np.float64)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return -1.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    air = 0.04 * (high - low) or 1.0
    return low - air, high + air
