"""A sample keeps the shares of the groups, both modalities of an item, and its items over time."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tests.support.snapshots import pair_vectors, snapshot
from uwml_core.projection.sample import sampled
from uwml_core.runlog.snapshots import Snapshot

NONE = np.empty(0, np.int64)
GROUPS = {k: "rare" if k < 10 else "common" for k in range(100)}


def shot(n: int = 100, first: int = 0) -> Snapshot:
    return snapshot(*pair_vectors(n), items=range(first, first + n))


def test_snapshot_of_no_more_items_is_left_as_it_is() -> None:
    whole = shot()
    assert sampled(whole, 100, GROUPS, NONE, 0) is whole


def test_sample_keeps_shares_and_both_modalities() -> None:
    few = sampled(shot(), 20, GROUPS, NONE, 0)
    items = few.item_ids[few.rows("image")]
    assert Counter(GROUPS[item] for item in items.tolist()) == {"rare": 2, "common": 18}
    np.testing.assert_array_equal(few.item_ids[few.rows("text")], items)
    whole = shot()
    kept = np.isin(whole.item_ids, items)
    np.testing.assert_array_equal(few.vectors, whole.vectors[kept])
    assert len(few.labels) == len(few.splits) == len(few.modality) == 40


def test_sample_without_groups_keeps_the_shares_of_the_splits() -> None:
    few = sampled(shot(), 20, {}, NONE, 0)
    assert Counter(few.splits.tolist()) == {"train": 20, "val": 20}


def test_sample_is_seeded() -> None:
    a, b, other = (set(sampled(shot(), 20, GROUPS, NONE, seed).item_ids.tolist()) for seed in (0, 0, 1))
    assert a == b
    assert a != other


def test_later_snapshot_keeps_the_items_and_fills_what_is_free() -> None:
    chosen = np.unique(sampled(shot(), 20, GROUPS, NONE, 0).item_ids)
    again = np.unique(sampled(shot(), 20, GROUPS, chosen, 0).item_ids)
    np.testing.assert_array_equal(again, chosen)
    # items 50 to 149: those below are gone
    moved_on = np.unique(sampled(shot(first=50), 20, GROUPS, chosen, 0).item_ids)
    assert len(moved_on) == 20
    assert set(chosen[chosen >= 50].tolist()) <= set(moved_on.tolist())
