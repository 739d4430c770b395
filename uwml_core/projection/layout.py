"""The chain of UMAP layouts: each snapshot starts from where the one before ended."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uwml_core.projection.alignment import align
from uwml_core.projection.neighbors import nearest
from uwml_core.projection.parameters import ProjectionParameters
from uwml_core.projection.pca import joint_axes, moments
from uwml_core.runlog.projections import PlacedSnapshot
from uwml_core.runlog.snapshots import Snapshot

# UMAP's customary size of a start layout, its largest coordinate.
_START_SIZE = 10.0
_EPOCHS = 100
# With fewer points there are no neighbors to keep together.
_FEWEST = 5
# Vectors that differ by less differ by rounding: float16 digits of a unit vector end near 1e-3.
_SAME = 1e-6


def place_by_pca(snapshot: Snapshot) -> NDArray[np.float32]:
    """Coordinates ``[n, 2]`` along the snapshot's own principal components, largest coordinate 10."""
    axes = joint_axes([moments(snapshot.vectors)])
    if axes is None:
        return np.zeros((0, 2), np.float32)
    placed = axes.place(snapshot.vectors)
    largest = float(np.abs(placed).max())
    return placed * np.float32(_START_SIZE / largest) if largest > 0 else placed


def next_layout(
    snapshot: Snapshot, before: PlacedSnapshot | None, parameters: ProjectionParameters
) -> PlacedSnapshot:
    """Lay a snapshot out, starting from the layout before and turned onto it.

    Without a layout before the start are the principal components. A snapshot of fewer than five points,
    or of points that are all the same, stays at its start.

    Args:
        snapshot: both modalities together.
        before: layout of the previous snapshot.
        parameters: of UMAP.

    Returns:
        The layout, the same at every call.
    """
    names = np.array(snapshot.modalities, dtype=object)[snapshot.modality]
    start = place_by_pca(snapshot)
    known = np.zeros(len(start), bool)
    if before is not None and len(before.places):
        start, known = _carry_over(start, snapshot.item_ids, names, before)
    if len(start) < _FEWEST or np.ptp(snapshot.vectors, axis=0).max() < _SAME:
        places = start
    else:
        places = _umap(snapshot.vectors, start, parameters)
        places = align(places, start, known).astype(np.float32)
    return PlacedSnapshot(
        step=snapshot.step, epoch=snapshot.epoch, item_ids=snapshot.item_ids, modality=names, places=places
    )


def _carry_over(
    start: NDArray[np.float32],
    item_ids: NDArray[np.int64],
    names: NDArray[np.object_],
    before: PlacedSnapshot,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Start of the known points is where they were; new ones come by their principal components."""
    place_of = dict(
        zip(zip(before.modality, before.item_ids.tolist(), strict=True), before.places, strict=True)
    )
    keys = list(zip(names, item_ids.tolist(), strict=True))
    known = np.array([key in place_of for key in keys], dtype=bool)
    carried = np.array([place_of.get(key, place) for key, place in zip(keys, start, strict=True)])
    if not known.all():
        carried[~known] = align(start, carried, known)[~known]
    return carried.astype(np.float32).reshape(-1, 2), known


def _umap(
    vectors: NDArray[np.float32], start: NDArray[np.float32], parameters: ProjectionParameters
) -> NDArray[np.float32]:
    neighbors = min(parameters.neighbors, len(vectors) - 1)
    rows, distances = nearest(vectors, neighbors, parameters.metric)
    reducer = _umap_class()(
        n_neighbors=neighbors,
        min_dist=parameters.min_dist,
        metric=parameters.metric,
        n_epochs=_EPOCHS,
        init=start,
        random_state=parameters.seed,
        n_jobs=1,
        precomputed_knn=(rows, distances),
    )
    with warnings.catch_warnings():
        # exact neighbors come without a search index, which only transform() would need
        warnings.filterwarnings("ignore", "precomputed_knn", category=UserWarning)
        placed: NDArray[np.float32] = reducer.fit_transform(vectors)
    return placed


def _umap_class() -> Any:
    with warnings.catch_warnings():
        # umap looks for a library of which only its parametric variant has need
        warnings.filterwarnings("ignore", "Tensorflow not installed", category=ImportWarning)
        # takes seconds to load and, the first time, to compile
        from umap import UMAP
    return UMAP
