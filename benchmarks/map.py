"""Layouts over time: the map's own method beside plain UMAP, its chain and AlignedUMAP.

Run: python -m benchmarks.map [--items 2000] [--snapshots 5] [--methods ours chain ...] [--run DIR]

Data of known motion, in a space that turns at random from snapshot to snapshot: in each step every vector
moves by a twentieth of the distance to its neighbors, in one step a tenth of the items jump to another
concept, and the last step repeats the snapshot before it. With ``--run`` the last snapshots of a run, whose
motion is not known. Processor seconds of this process; each method first lays out something small, so that
numba has compiled. All methods but AlignedUMAP and plain UMAP get exact neighbors. AlignedUMAP looks two
snapshots back and forth, less than it does by itself, which makes it faster. Each row is printed as soon as
it is there, the slowest method last.

Columns: processor seconds; load of the machine meanwhile (its one-minute mean); trustworthiness and share of
kept 15-neighbors, mean over the snapshots after the first; then median ways on the map as shares of its
radius: of points that moved by a twentieth (noise), of those that jumped, of all where nothing moved
(frozen), of all (data of a run); rank correlation of ways on the map with ways in the data.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from uwml_core.analysis.projection_quality import projection_quality
from uwml_core.projection.alignment import align
from uwml_core.projection.layout import Laid, next_layout, place_by_pca
from uwml_core.projection.motion import ways
from uwml_core.projection.neighbors import nearest
from uwml_core.projection.optimizer import umap_module
from uwml_core.projection.parameters import ProjectionParameters
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.snapshots import Snapshot, read_snapshot, snapshot_steps

Vectors = NDArray[np.float32]
Places = NDArray[np.floating]
NEIGHBORS, SEED, CONCEPTS, DIM = 15, 42, 40, 128
JITTER = 0.05


@dataclass(frozen=True, eq=False)
class Data:
    """Vectors of each snapshot, image rows before text rows; which points jump in which step."""

    vectors: Sequence[Vectors]
    jumpers: NDArray[np.bool_] | None = None
    jump_step: int = 2


def synthetic(items: int, snapshots: int) -> Data:
    """Clustered pairs with a gap between the modalities and known motion."""
    random = np.random.default_rng(0)
    centers, concept = random.normal(size=(CONCEPTS, DIM)), random.integers(CONCEPTS, size=items)
    own, gap = 0.5 * random.normal(size=(items, DIM)), 0.5 * random.normal(size=DIM)
    noise = 0.25 * random.normal(size=(2, items, DIM))
    who = random.choice(items, items // 10, replace=False)
    other = concept.copy()
    other[who] = (concept[who] + random.integers(1, CONCEPTS, size=len(who))) % CONCEPTS
    sides = np.array([-0.5, 0.5])[:, None, None] * gap
    first, jumped = ((centers[which] + own + noise + sides).reshape(-1, DIM) for which in (concept, other))
    jump, vectors = 2, [_unit(first)]
    for step in range(1, snapshots):
        frozen = step == snapshots - 1 and step > jump
        now = vectors[-1] if frozen else _jittered(vectors[-1], random)
        if step == jump:
            rows = np.concatenate([who, items + who])
            now[rows] = _unit(jumped)[rows]
        vectors.append(_unit(now))
    turned = [_unit((v @ _turn(random)).astype(np.float16).astype(np.float64)) for v in vectors]
    return Data(turned, np.tile(other != concept, 2), jump)


def _unit(vectors: Places) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _turn(random: np.random.Generator) -> NDArray[np.float64]:
    return np.linalg.qr(random.normal(size=(DIM, DIM)))[0]


def _jittered(vectors: Vectors, random: np.random.Generator) -> Vectors:
    _rows, distances = nearest(vectors, NEIGHBORS, "euclidean")
    step = random.normal(size=vectors.shape)
    step *= (JITTER * distances[:, 1:].mean(axis=1) / np.linalg.norm(step, axis=1))[:, None]
    return _unit(vectors + step)


def of_run(folder: Path, items: int, snapshots: int) -> Data:
    """The last snapshots of a run, of the same so many items."""
    run = open_run(folder)
    found = [read_snapshot(run, step) for step, _epoch in snapshot_steps(run)[-snapshots:]]
    shots = [shot for shot in found if shot is not None]
    known = np.unique(shots[-1].item_ids)
    chosen = np.random.default_rng(0).permutation(known)[:items]
    return Data([shot.vectors[np.isin(shot.item_ids, chosen)] for shot in shots])


def _snapshot(vectors: Vectors, step: int) -> Snapshot:
    items = np.tile(np.arange(len(vectors) // 2), 2)
    return Snapshot(
        step=step,
        epoch=step,
        modalities=("image", "text"),
        modality=np.repeat([0, 1], len(vectors) // 2),
        item_ids=items,
        labels=items,
        splits=np.full(len(vectors), "train", dtype=object),
        vectors=vectors,
        left_out=0,
    )


def ours(vectors: Sequence[Vectors]) -> list[Places]:
    """What ``uwml project`` does."""
    laid: list[Laid] = []
    for step, of_step in enumerate(vectors):
        before = laid[-1] if laid else None
        laid.append(next_layout(_snapshot(of_step, step), before, ProjectionParameters(seed=SEED)))
    return [one.placed.places for one in laid]


def chain(vectors: Sequence[Vectors]) -> list[Places]:
    """UMAP from the layout before, turned onto it."""
    placed: list[Places] = [place_by_pca(vectors[0])]
    for of_step in vectors:
        known = nearest(of_step, NEIGHBORS)
        layout = _umap(n_epochs=100, init=placed[-1], precomputed_knn=known).fit_transform(of_step)
        placed.append(align(layout, placed[-1]).astype(np.float32) if len(placed) > 1 else layout)
    return placed[1:]


def plain(vectors: Sequence[Vectors]) -> list[Places]:
    """UMAP as it comes, of each snapshot alone."""
    return [_umap().fit_transform(of_step) for of_step in vectors]


def aligned(vectors: Sequence[Vectors]) -> list[Places]:
    """AlignedUMAP over all snapshots."""
    same = {k: k for k in range(len(vectors[0]))}
    mapper = umap_module("aligned_umap").AlignedUMAP(
        n_neighbors=NEIGHBORS, metric="cosine", random_state=SEED, alignment_window_size=2
    )
    return list(mapper.fit(list(vectors), relations=[same] * (len(vectors) - 1)).embeddings_)


def _umap(**settings: object) -> Any:
    return umap_module("umap_").UMAP(
        n_neighbors=NEIGHBORS, metric="cosine", random_state=SEED, n_jobs=1, **settings
    )


METHODS: dict[str, Callable[[Sequence[Vectors]], list[Places]]] = {
    "ours": ours,
    "chain": chain,
    "plain": plain,
    "aligned": aligned,
}


def measured(method: str, data: Data) -> dict[str, float]:
    """One row of the table."""
    warm = [vectors[:: max(1, len(vectors) // 100)] for vectors in data.vectors[:2]]
    METHODS[method]([vectors[: len(vectors) // 2 * 2] for vectors in warm])
    if method in ("plain", "aligned"):
        # which umap itself begins to use from 4,096 points on
        umap_module("umap_").nearest_neighbors(
            warm[0], NEIGHBORS, "cosine", {}, False, np.random.RandomState(SEED)
        )
    began = time.process_time()
    placed = METHODS[method](data.vectors)
    row = {"cpu_s": time.process_time() - began, "load": os.getloadavg()[0]}
    quality = [projection_quality(v, p) for v, p in zip(data.vectors[1:], placed[1:], strict=True)]
    row["trust"] = float(np.mean([one.trustworthiness for one in quality]))
    row["kept15"] = float(np.mean([one.kept_share for one in quality]))
    return row | _motion(data, placed)


def _motion(data: Data, placed: Sequence[Places]) -> dict[str, float]:
    on_map = [_ways(a, b) for a, b in itertools.pairwise(placed)]
    in_data = [ways(a, b) for a, b in itertools.pairwise(data.vectors)]
    if data.jumpers is None:
        correlations = [
            pd.Series(m).corr(pd.Series(d), "spearman") for m, d in zip(on_map, in_data, strict=True)
        ]
        return {"all": float(np.median(on_map)), "rank_corr": float(np.mean(correlations))}
    jump = on_map[data.jump_step - 1]
    return {
        "noise": float(np.median(np.concatenate([on_map[0], jump[~data.jumpers]]))),
        "jumped": float(np.median(jump[data.jumpers])),
        "frozen": float(np.median(on_map[-1])),
    }


def _ways(before: Places, now: Places) -> Places:
    radius = np.sqrt(np.var(np.asarray(now, np.float64), axis=0).sum())
    # the whole map may be turned for nothing, which plain UMAP does
    way: Places = np.linalg.norm(align(np.asarray(now), before) - before, axis=1) / radius
    return way


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--snapshots", type=int, default=5)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--run", type=Path, help="folder of a run; synthetic data without it")
    given = parser.parse_args()
    # as `uwml project` is started by the app
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    data = (
        of_run(given.run, given.items, given.snapshots)
        if given.run
        else synthetic(given.items, given.snapshots)
    )
    print(
        f"{given.run or 'synthetic'}: {len(data.vectors)} snapshots of {len(data.vectors[0])} points",
        flush=True,
    )
    for method in given.methods:
        row = measured(method, data)
        told = "  ".join(f"{name} {value:.3f}" for name, value in row.items())
        print(f"{method:8} {told}", flush=True)


if __name__ == "__main__":
    main()
