"""The chain of layouts: each goes on from the one before and moves a point as far as its data moved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uwml_core.projection.alignment import align
from uwml_core.projection.motion import Floats, motion, ways
from uwml_core.projection.neighbors import nearest
from uwml_core.projection.optimizer import arrange, neighbor_graph
from uwml_core.projection.parameters import ProjectionParameters
from uwml_core.projection.pca import joint_axes, moments
from uwml_core.runlog.projection_facts import SnapshotFacts
from uwml_core.runlog.projections import PlacedSnapshot
from uwml_core.runlog.snapshots import Snapshot

# UMAP's customary size of a start layout, its largest coordinate.
_START_SIZE = 10.0
# A start of its own has further to go than one that goes on, which large steps would only shake.
_EPOCHS_AT_START, _EPOCHS = 200, 100
_RATE_AT_START, _RATE = 1.0, 0.3
# With fewer points there are no neighbors to keep together.
_FEWEST = 5
# Vectors that differ by less differ by rounding: float16 digits of a unit vector end near 1e-3.
_SAME = 1e-6
# Points without a place from before start apart: where two coincide no gradient parts them.
_APART = 1e-3
_REACH = 3.0
# Of the distance to the neighbors: next to nothing, but more than rounding.
_JITTER = 0.05


@dataclass(frozen=True, kw_only=True, eq=False)
class Laid:
    """A snapshot on the map, with what the next one is compared with.

    Attributes:
        placed: where its points lie.
        vectors: float32 ``[n, dim]``, in the same order.
        gaps: mean distance to the neighbors in the data, float64 ``[n]``.
        facts: what became of it.
    """

    placed: PlacedSnapshot
    vectors: NDArray[np.float32]
    gaps: Floats
    facts: SnapshotFacts

    @property
    def goes_on(self) -> bool:
        """Whether the next snapshot may start from here."""
        return self.facts.goes_on


@dataclass(frozen=True, kw_only=True, eq=False)
class _Data:
    """Vectors with their neighbors, all ``[n, ...]``; without neighbors where the points are too few."""

    vectors: NDArray[np.float32]
    rows: NDArray[np.int32]
    distances: NDArray[np.float32]
    gaps: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class _Come:
    """How points came here from the layout before.

    Attributes:
        rows: row of each there, -1 where it has none, ``[n]``.
        moved: ways in the data as shares of the distance to the neighbors, ``[n]``, infinite likewise.
        outcome: see ``SnapshotFacts``.
    """

    rows: NDArray[np.int64]
    moved: Floats
    outcome: str


def place_by_pca(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Coordinates ``[n, 2]`` of vectors along their own principal components, largest coordinate 10."""
    axes = joint_axes([moments(vectors)])
    if axes is None:
        return np.zeros((0, 2), np.float32)
    placed = axes.place(vectors)
    largest = float(np.abs(placed).max())
    return placed * np.float32(_START_SIZE / largest) if largest > 0 else placed


def next_layout(snapshot: Snapshot, before: Laid | None, parameters: ProjectionParameters) -> Laid:
    """Lay a snapshot out, going on from the layout before.

    A point that did not move in the data stays exactly where it was; one that moved as far as its neighbors
    are away, or further, moves as in UMAP; in between its reach on the map grows with the way in the data.
    How ways are measured: ``projection.motion``. Without a layout before the start are the principal
    components, and so it ends for fewer than five points or points that are all the same.

    Args:
        snapshot: both modalities together.
        before: the previous layout, one that ``goes_on``.
        parameters: of UMAP.

    Returns:
        The layout, the same at every call; ``facts.outcome`` says what it is.
    """
    data = _with_neighbors(snapshot.vectors, parameters)
    names = np.array(snapshot.modalities, dtype=object)[snapshot.modality]
    rows = _rows_before(names, snapshot.item_ids, before)
    moved = _moved(data, rows, before)
    come = _Come(rows=rows, moved=moved, outcome=_outcome(snapshot.vectors, rows, moved, before))
    places = _places(data, come, before, parameters)
    placed = PlacedSnapshot(
        step=snapshot.step, epoch=snapshot.epoch, item_ids=snapshot.item_ids, modality=names, places=places
    )
    facts = _facts(snapshot, come, before, places)
    return Laid(placed=placed, vectors=snapshot.vectors, gaps=data.gaps, facts=facts)


def taken_up(
    placed: PlacedSnapshot, snapshot: Snapshot, facts: SnapshotFacts, parameters: ProjectionParameters
) -> Laid:
    """A layout that was kept, as ``next_layout`` gave it; the snapshot has exactly its points."""
    data = _with_neighbors(snapshot.vectors, parameters)
    return Laid(placed=placed, vectors=snapshot.vectors, gaps=data.gaps, facts=facts)


def noise_floor(laid: Laid, parameters: ProjectionParameters) -> float | None:
    """Median way on the map, as a share of its radius, of points whose data hardly moved.

    The snapshot is laid out once more from its own layout, each vector moved by a twentieth of the distance
    to its neighbors in a random direction.

    Returns:
        The share; None where the layout is none that goes on.
    """
    if not laid.goes_on:
        return None
    random = np.random.default_rng(parameters.seed)
    step = random.normal(size=laid.vectors.shape)
    step *= (_JITTER * laid.gaps / np.linalg.norm(step, axis=1))[:, None]
    vectors = laid.vectors + step
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    data = _with_neighbors(vectors.astype(np.float32), parameters)
    rows = np.arange(len(vectors))
    moved = _moved(data, rows, laid)
    places = _umap(data, laid.placed.places, moved, parameters)
    return _median_way(laid.placed.places, places)


def _with_neighbors(vectors: NDArray[np.float32], parameters: ProjectionParameters) -> _Data:
    if len(vectors) < _FEWEST:
        none = np.zeros((len(vectors), 0))
        return _Data(
            vectors=vectors,
            rows=none.astype(np.int32),
            distances=none.astype(np.float32),
            gaps=np.zeros(len(vectors)),
        )
    rows, distances = nearest(vectors, min(parameters.neighbors, len(vectors) - 1), parameters.metric)
    wide = distances[:, 1:].astype(np.float64)
    gaps = (np.sqrt(2.0 * wide) if parameters.metric == "cosine" else wide).mean(axis=1)
    return _Data(vectors=vectors, rows=rows, distances=distances, gaps=gaps)


def _rows_before(
    names: NDArray[np.object_], item_ids: NDArray[np.int64], before: Laid | None
) -> NDArray[np.int64]:
    """Row of each point in the layout before, -1 where it has none."""
    if before is None:
        return np.full(len(item_ids), -1, np.int64)
    keys = zip(before.placed.modality, before.placed.item_ids.tolist(), strict=True)
    row_of = {key: row for row, key in enumerate(keys)}
    found = (row_of.get(key, -1) for key in zip(names, item_ids.tolist(), strict=True))
    return np.fromiter(found, np.int64, len(item_ids))


def _moved(data: _Data, rows: NDArray[np.int64], before: Laid | None) -> Floats:
    """Ways ``[n]`` as shares of the distance to the neighbors; infinite where there was no place."""
    known, moved = rows >= 0, np.full(len(rows), np.inf)
    if before is not None and known.any():
        way = ways(before.vectors[rows[known]], data.vectors[known])
        moved[known] = motion(way, before.gaps[rows[known]], data.gaps[known])
    return moved


def _outcome(
    vectors: NDArray[np.float32], rows: NDArray[np.int64], moved: Floats, before: Laid | None
) -> str:
    if not len(vectors):
        return "empty"
    if len(vectors) < _FEWEST:
        return "few"
    if np.ptp(vectors, axis=0).max() < _SAME:
        return "same"
    if before is None:
        return "start"
    if (rows < 0).all():
        return "new"
    return "moved" if moved.any() else "still"


def _places(
    data: _Data, come: _Come, before: Laid | None, parameters: ProjectionParameters
) -> NDArray[np.float32]:
    own = place_by_pca(data.vectors)
    if come.outcome in ("empty", "few", "same"):
        return own
    if before is None or come.outcome == "new":
        return _umap(data, _apart(own, parameters.seed), come.moved, parameters)
    if come.outcome == "still":
        return before.placed.places[come.rows]
    return _umap(data, _starts(data, come, before, own, parameters), come.moved, parameters)


def _umap(
    data: _Data, start: NDArray[np.float32], moved: Floats, parameters: ProjectionParameters
) -> NDArray[np.float32]:
    fresh = bool(np.isinf(moved).all())
    return arrange(
        neighbor_graph(data.rows, data.distances, parameters.metric),
        start,
        _reach(data, start, moved),
        epochs=_EPOCHS_AT_START if fresh else _EPOCHS,
        rate=_RATE_AT_START if fresh else _RATE,
        min_dist=parameters.min_dist,
        seed=parameters.seed,
    )


def _reach(data: _Data, start: NDArray[np.float32], moved: Floats) -> Floats:
    """How far points may go on the map: not at all where the data rest, anywhere from a full way on.

    A way of the share m of the distance to the neighbors is a reach of 3 m / (1 - m) of the distance to the
    same neighbors on the map. That is large for a point whose neighbors now lie elsewhere, so many small
    ways in one direction do arrive.
    """
    apart = np.linalg.norm(start[data.rows[:, 1:]] - start[:, None], axis=2)
    part = np.where(moved < 1.0, moved, 0.0)
    return np.where(moved < 1.0, _REACH * part / (1.0 - part) * np.median(apart, axis=1), np.inf)


def _starts(
    data: _Data, come: _Come, before: Laid, own: NDArray[np.float32], parameters: ProjectionParameters
) -> NDArray[np.float32]:
    """Where each point was; of what went a full way or is new, the middle of its neighbors that did not.

    What has no such neighbor keeps its place, or its principal components, turned to fit. A point that goes
    along with most of its neighbors keeps its place too: they move together.
    """
    new, rests = come.rows < 0, come.moved < 1.0
    start = before.placed.places[come.rows]
    start[new] = align(own, start, ~new)[new]
    graph: Any = neighbor_graph(data.rows, data.distances, parameters.metric).tocsr()
    weight, all_weight = (np.asarray(part.sum(axis=1)).reshape(-1) for part in (graph[:, rests], graph))
    goes = ~rests & (weight > np.where(new, 0.0, 0.5 * all_weight))
    middle = graph[goes][:, rests] @ start[rests] / weight[goes, None]
    start[goes] = _apart(middle, parameters.seed)
    return start.astype(np.float32)


def _apart(places: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    noise = np.random.default_rng(seed).normal(size=places.shape)
    return (places + _APART * noise).astype(np.float32)


def _facts(
    snapshot: Snapshot, come: _Come, before: Laid | None, places: NDArray[np.float32]
) -> SnapshotFacts:
    known = come.rows >= 0
    told = SnapshotFacts(
        step=snapshot.step,
        epoch=snapshot.epoch,
        outcome=come.outcome,
        points=len(known),
        left_out=snapshot.left_out,
        dimension=snapshot.vectors.shape[1],
        new=0 if before is None else int((~known).sum()),
    )
    if before is None:
        return told
    lacking = set(before.placed.modality) - {snapshot.modalities[k] for k in snapshot.modality}
    told = replace(told, missing=tuple(sorted(lacking)), dimension_before=before.vectors.shape[1])
    if come.outcome not in ("moved", "still"):
        return told
    way = _median_way(before.placed.places[come.rows[known]], places[known])
    return replace(told, data_motion=float(np.median(come.moved[known])), map_motion=way)


def _median_way(before: NDArray[np.float32], now: NDArray[np.float32]) -> float | None:
    """As a share of the root mean square distance from the middle; None where all lie in one place."""
    radius = float(np.sqrt(np.var(now.astype(np.float64), axis=0).sum()))
    return float(np.median(np.linalg.norm(now - before, axis=1))) / radius if radius > 0 else None
