"""How far the embeddings of the same items move from one snapshot to the next."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from uwml_core.runlog.reader import Run

MOST_SNAPSHOTS = 12
MOST_ITEMS = 200
COLUMNS = ("step", "epoch", "modality", "similarity", "n")

_Vectors = dict[str, tuple[np.ndarray, np.ndarray]]


def drift_frame(run: Run) -> pd.DataFrame:
    """Mean cosine of an item's embedding to its own at the snapshot before.

    Returns:
        One row per snapshot but the first and modality, of the last ``MOST_SNAPSHOTS``: ``step`` and
        ``epoch`` of the later one, ``similarity``, and ``n`` items, at most ``MOST_ITEMS``.
    """
    columns = ["step", "epoch", "item_id", "modality", "embedding"]
    # one file per snapshot: earlier ones than are looked at are not opened
    first = sorted({part.last for part in run.parts("snapshots")})[-MOST_SNAPSHOTS:][:1]
    known = run.map_each(
        "snapshots", lambda part: _vectors if first and part.last >= first[0] else None, columns=columns
    )
    rows = []
    for before, after in pairwise(known):
        for modality in before[2].keys() & after[2].keys():
            cosine = _cosines(before[2][modality], after[2][modality])
            if len(cosine):
                rows.append((after[0], after[1], modality, float(cosine.mean()), len(cosine)))
    return pd.DataFrame(rows, columns=list(COLUMNS)).sort_values(["step", "modality"], ignore_index=True)


def _vectors(rows: pa.Table) -> tuple[int, int, _Vectors]:
    """Step, epoch and of each modality the first items with their embeddings."""
    found: _Vectors = {}
    if not rows.num_rows:
        return -1, -1, found
    item, kind = rows["item_id"].to_numpy(), rows["modality"].cast(pa.string())
    for modality in pc.unique(kind).drop_null().to_pylist():
        # the few that are looked at are found before the embeddings are touched
        mine = np.flatnonzero(pc.equal(kind, modality).fill_null(False).to_numpy())
        mine = mine[np.argsort(item[mine], kind="stable")[:MOST_ITEMS]]
        flat = (
            rows["embedding"].take(pa.array(mine)).combine_chunks().flatten().to_numpy(zero_copy_only=False)
        )
        found[modality] = item[mine], flat.astype(np.float64).reshape(len(mine), -1)
    step, epoch = rows["step"][0].as_py(), rows["epoch"][0].as_py()
    return -1 if step is None else step, -1 if epoch is None else epoch, found


def _cosines(before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    shared, one, two = np.intersect1d(before[0], after[0], return_indices=True)
    first, second = before[1][one], after[1][two]
    if not len(shared) or first.shape != second.shape:
        return np.empty(0)
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products: np.ndarray = (first * second).sum(axis=1) / np.where(norms > 0, norms, np.nan)
    return np.asarray(products[np.isfinite(products)])
