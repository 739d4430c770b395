"""Margin and rank of every point of a snapshot among the candidates of the same snapshot."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from uwml_core.runlog.snapshots import Snapshot

_CHUNK = 1024

Floats = NDArray[np.float64]


def pair_strength(
    snapshot: Snapshot, modalities: tuple[str, str], wanted: NDArray[np.int64] | None = None
) -> pd.DataFrame:
    """How clearly each point finds its counterpart across the gap.

    Candidates are all points of the other modality; those of equal label are positives. The margin is
    the cosine to the item's own counterpart minus that to the most similar negative. The rank is that of
    the best positive as in the table ``ranks``: 1 + negatives above it + negatives tied with it / (1 +
    positives tied there).

    Args:
        snapshot: both modalities.
        modalities: their names.
        wanted: rows of the points that are asked about, among all candidates; None for all.

    Returns:
        Frame ``[margin, rank]`` in float64, a row per point of the snapshot; NaN where the item has no
        counterpart or was not asked about, the margin also without a negative.
    """
    margin = np.full(len(snapshot.item_ids), np.nan)
    rank = margin.copy()
    first, second = (snapshot.rows(name) for name in modalities)
    for queries, candidates in ((first, second), (second, first)):
        asked = queries if wanted is None else np.intersect1d(queries, wanted)
        for start in range(0, len(asked), _CHUNK):
            rows = asked[start : start + _CHUNK]
            margin[rows], rank[rows] = _strength(snapshot, rows, candidates)
    return pd.DataFrame({"margin": margin, "rank": rank})


def _strength(
    snapshot: Snapshot, queries: NDArray[np.int64], candidates: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    if not len(candidates):
        return np.full(len(queries), np.nan), np.full(len(queries), np.nan)
    vectors = snapshot.vectors
    similarity = vectors[queries].astype(np.float64) @ vectors[candidates].astype(np.float64).T
    row, column, paired = _counterparts(snapshot.item_ids[queries], snapshot.item_ids[candidates])
    right_row, right_column = _positives(snapshot.labels[queries], snapshot.labels[candidates], row, column)
    right = similarity[right_row, right_column]
    best = np.full(len(queries), -np.inf)
    np.maximum.at(best, right_row, right)
    positives = np.bincount(right_row[right == best[right_row]], minlength=len(queries))
    positive = np.full(len(queries), np.nan)
    positive[row] = similarity[row, column]
    similarity[right_row, right_column] = -np.inf
    hardest = similarity.max(axis=1)
    above = np.count_nonzero(similarity > best[:, None], axis=1)
    tied = np.count_nonzero(similarity == best[:, None], axis=1)
    rank = np.where(paired, 1.0 + above + tied / (1.0 + positives), np.nan)
    margin = positive - np.where(np.isfinite(hardest), hardest, np.nan)
    return margin, rank


def _positives(
    labels: NDArray[np.int64],
    others: NDArray[np.int64],
    row: NDArray[np.int64],
    column: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the pairs that belong together: counterparts, and those of equal label."""
    known = others[others >= 0]
    if len(np.unique(known)) == len(known) and np.array_equal(labels[row], others[column]):
        # whose labels meet are counterparts, but for queries without one
        alone = np.setdiff1d(np.arange(len(labels)), row)
        if not np.isin(labels[alone], known).any():
            return row, column
    # a query without a label has none in common with a candidate without one
    same = labels[:, None] == np.where(others >= 0, others, -2)[None, :]
    same[row, column] = True
    found = np.nonzero(same)
    return found[0], found[1]


def _counterparts(
    items: NDArray[np.int64], others: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Rows that have a counterpart, its column, and which rows these are."""
    _, row, column = np.intersect1d(items, others, assume_unique=True, return_indices=True)
    paired = np.zeros(len(items), bool)
    paired[row] = True
    return row, column, paired
