"""What one item is nearest to across the gap, in the space it was embedded in."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from uwml_core.runlog.snapshots import Snapshot

NEIGHBOR_COLUMNS = (
    "query_modality", "modality", "place", "item_id", "similarity", "is_own", "is_positive", "n",
)  # fmt: skip


def neighbors_across(
    snapshot: Snapshot, modalities: tuple[str, str], item_id: int, most: int = 5
) -> pd.DataFrame:
    """Nearest points of the other modality for each point of an item, and where its counterpart stands.

    Args:
        snapshot: the snapshot.
        modalities: names of both.
        item_id: the item.
        most: how many neighbors.

    Returns:
        Frame ``[query_modality, modality, place, item_id, similarity, is_own, is_positive, n]``: of each
        query the nearest first, then the item's own counterpart where it is not among them. ``place`` counts
        from 1, of equal cosines the lower item first; ``n`` counts the candidates. Empty where the item
        is not in the snapshot.
    """
    rows = [
        row
        for query, other in (modalities, modalities[::-1])
        for row in _neighbors(snapshot, query, other, item_id, most)
    ]
    return pd.DataFrame(rows, columns=list(NEIGHBOR_COLUMNS))


def _neighbors(
    snapshot: Snapshot, query: str, other: str, item_id: int, most: int
) -> list[tuple[object, ...]]:
    points, candidates = snapshot.rows(query), snapshot.rows(other)
    points = points[snapshot.item_ids[points] == item_id]
    if not len(points) or not len(candidates):
        return []
    point = points[0]
    similarity = snapshot.vectors[candidates].astype(np.float64) @ snapshot.vectors[point].astype(np.float64)
    items, label = snapshot.item_ids[candidates], snapshot.labels[point]
    own = items == item_id
    positive = own | ((snapshot.labels[candidates] == label) & (label >= 0))
    # only the nearest are put in order, which of twenty thousand takes longer than to compare them
    least = np.partition(similarity, -most)[-most] if len(items) > most else -np.inf
    near = np.flatnonzero(similarity >= least)
    shown = near[np.lexsort((items[near], -similarity[near]))][:most]
    shown = np.concatenate([shown, np.setdiff1d(np.flatnonzero(own), shown)])
    places = [_place(similarity, items, row) for row in shown]
    values = (items, similarity, own, positive)
    return [
        (query, other, place, *(column[row].item() for column in values), len(items))
        for place, row in zip(places, shown, strict=True)
    ]


def _place(similarity: NDArray[np.float64], items: NDArray[np.int64], row: np.int64) -> int:
    level = similarity == similarity[row]
    return 1 + int(
        np.count_nonzero(similarity > similarity[row]) + np.count_nonzero(items[level] < items[row])
    )
