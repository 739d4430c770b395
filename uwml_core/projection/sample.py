"""A part of the items that stands for all: stratified, seeded, the same from snapshot to snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from uwml_core.runlog.snapshots import Snapshot

Items = NDArray[np.int64]


def sampled(snapshot: Snapshot, most: int, strata: Mapping[int, str], chosen: Items, seed: int) -> Snapshot:
    """A snapshot with at most so many items, each with all modalities that it has.

    Those that were chosen before come first, where the snapshot still has them; free places are filled by an
    even walk through the others, stratum by stratum, in random order within each.

    Args:
        snapshot: any.
        most: items to keep.
        strata: what each item belongs to; the split where it is not said.
        chosen: items of the layout before.
        seed: of the order.

    Returns:
        The snapshot itself where it has no more items than that.
    """
    items, first = np.unique(snapshot.item_ids, return_index=True)
    if len(items) <= most:
        return snapshot
    splits = snapshot.splits[first].tolist()
    of = np.array([strata.get(item, split) for item, split in zip(items.tolist(), splits, strict=True)])
    again = np.isin(items, chosen)
    known, others = (
        items[part][_even(of[part], room, seed)]
        for part, room in ((again, most), (~again, most - int(again.sum())))
    )
    kept = np.isin(snapshot.item_ids, np.concatenate([known, others]))
    return replace(
        snapshot,
        modality=snapshot.modality[kept],
        item_ids=snapshot.item_ids[kept],
        labels=snapshot.labels[kept],
        splits=snapshot.splits[kept],
        vectors=snapshot.vectors[kept],
    )


def _even(strata: NDArray[np.str_], most: int, seed: int) -> NDArray[np.int64]:
    """Positions of at most so many, whose shares of the strata are those of all within one item."""
    if len(strata) <= most:
        return np.arange(len(strata))
    order = np.lexsort((np.random.default_rng(seed).permutation(len(strata)), strata))
    return order[np.arange(max(most, 0)) * len(strata) // max(most, 1)]
