"""UMAP's own optimisation, each point within its reach of where it was."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

# One pass over the edges that are due: umap moves nothing in its first round, everything in its second.
_ROUNDS = 2
# Which gives five negative samples in that pass, umap's own number: int((1 - 1 / 6.5) * 6.5).
_NEGATIVES = 6.5
_SPREAD = 1.0


def umap_module(name: str) -> Any:
    """A module of umap, which takes seconds to load and, the first time, to compile."""
    with warnings.catch_warnings():
        # it looks for a library of which only its parametric variant has need
        warnings.filterwarnings("ignore", "Tensorflow not installed", category=ImportWarning)
        return importlib.import_module(f"umap.{name}")


def neighbor_graph(rows: NDArray[np.int32], distances: NDArray[np.float32], metric: str) -> Any:
    """UMAP's weighted graph of neighbors, symmetric, a scipy matrix ``[n, n]``.

    Args:
        rows, distances: of ``nearest``, ``[n, neighbors]``.
        metric: that of the distances.
    """
    graph, _sigmas, _rhos = umap_module("umap_").fuzzy_simplicial_set(
        np.empty((len(rows), 0), np.float32),
        rows.shape[1],
        # with given neighbors nothing is random
        np.random.RandomState(0),
        metric,
        knn_indices=rows,
        knn_dists=distances,
    )
    return graph.tocoo()


def arrange(
    graph: Any,
    start: NDArray[np.float32],
    reach: NDArray[np.floating],
    *,
    epochs: int,
    rate: float,
    min_dist: float,
    seed: int,
) -> NDArray[np.float32]:
    """Move points along UMAP's gradient, each within its reach of where it was.

    After each epoch a point that went further is pulled back to the edge of its reach. With an infinite
    reach it moves as in UMAP, with none it stays exactly: what moves is laid out among what stays.

    Args:
        graph: of ``neighbor_graph``.
        start: ``[n, 2]``; unlike ``UMAP(init=...)`` this keeps its size and shape.
        reach: ``[n]``, in the map's unit.
        epochs: passes; an edge of weight w is due in the share w of them, the heaviest in all.
        rate: of learning at first; it falls to 0.
        min_dist: least distance of points.
        seed: of the negative samples and of when edges are due.

    Returns:
        float32 ``[n, 2]``, the same at every call.

    Reference:
        McInnes et al., "UMAP", 2018, by umap-learn's own optimizer.
    """
    random, curve = np.random.RandomState(seed), _curve(min_dist)
    often = graph.data / graph.data.max()
    lively = (often * epochs >= 1.0) & ((reach[graph.row] > 0) | (reach[graph.col] > 0))
    edges = np.stack([graph.row[lively], graph.col[lively]]).astype(np.int32)
    often, phase = often[lively].astype(np.float64), random.random_sample(int(lively.sum()))
    places = start
    for epoch in range(epochs):
        due = np.floor((epoch + 1) * often + phase) > np.floor(epoch * often + phase)
        moved = _pass(places, edges[:, due], rate * (1.0 - epoch / epochs), curve, random)
        places = _within(start, moved, reach)
    return places


def _pass(
    places: NDArray[np.float32],
    edges: NDArray[np.int32],
    rate: float,
    curve: tuple[float, float],
    random: np.random.RandomState,
) -> NDArray[np.float32]:
    """One epoch of umap's optimiser over these edges."""
    moved = places.astype(np.float32, order="C", copy=True)
    state = random.randint(-(2**31) + 1, 2**31 - 1, 3).astype(np.int64)
    head, tail = np.ascontiguousarray(edges[0]), np.ascontiguousarray(edges[1])
    umap_module("layouts").optimize_layout_euclidean(
        moved,
        moved,
        head,
        tail,
        _ROUNDS,
        len(moved),
        np.ones(len(head)),
        *curve,
        state,
        initial_alpha=rate,
        negative_sample_rate=_NEGATIVES,
        move_other=True,
    )
    return moved


def _within(
    start: NDArray[np.float32], moved: NDArray[np.float32], reach: NDArray[np.floating]
) -> NDArray[np.float32]:
    way = np.linalg.norm(moved - start, axis=1)
    share = np.minimum(1.0, reach / np.maximum(way, 1e-12)).astype(np.float32)
    held: NDArray[np.float32] = start + share[:, None] * (moved - start)
    return held


@functools.lru_cache(maxsize=64)
def _curve(min_dist: float) -> tuple[float, float]:
    a, b = umap_module("umap_").find_ab_params(_SPREAD, min_dist)
    return float(a), float(b)
