"""What a map kept of the neighborhoods that it was drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEIGHBORS = 15
MOST_PROBES = 500
_CHUNK = 256


@dataclass(frozen=True, kw_only=True)
class ProjectionQuality:
    """How well a map shows neighborhoods.

    Attributes:
        trustworthiness: 1 where all neighbors on the map are neighbors in the data, about 0.5 by chance;
            NaN where it is not defined.
        kept_share: share of the nearest neighbors in the data that are nearest on the map too; NaN likewise.
        neighbors: neighbors per point that were looked at.
        probes: points whose neighbors were looked at.
        points: points on the map.
    """

    trustworthiness: float
    kept_share: float
    neighbors: int
    probes: int
    points: int


def projection_quality(
    vectors: NDArray[np.floating],
    places: NDArray[np.floating],
    *,
    neighbors: int = NEIGHBORS,
    most_probes: int | None = MOST_PROBES,
    seed: int = 0,
) -> ProjectionQuality:
    """Trustworthiness and share of kept neighbors of a map.

    With n points, k neighbors, r(i, j) the place of j among the neighbors of i in the data and M_i the k
    nearest of i on the map, over the probes i:

        trustworthiness = 1 − 2 / (probes · k (2n − 3k − 1)) Σ_i Σ_{j ∈ M_i} max(0, r(i, j) − k)

    Args:
        vectors: ``[n, dim]``, unit norm; neighbors by Euclidean distance, which is the order by cosine.
        places: ``[n, 2]``.
        neighbors: k; with few points the largest below n / 2.
        most_probes: a seeded sample of that many points is looked at where there are more; None for all.
        seed: of the sample.

    Returns:
        Both numbers with what they rest on; NaN with fewer than three points, or where either space has
        all of them in one place.

    Reference:
        Venna and Kaski, "Neighborhood preservation in nonlinear projection methods", ICANN 2001.
    """
    n = len(vectors)
    k = min(neighbors, (n - 1) // 2)
    probes = np.arange(n)
    if most_probes is not None and n > most_probes:
        probes = np.sort(np.random.default_rng(seed).choice(n, most_probes, replace=False))
    if k < 1 or not _spread(vectors) or not _spread(places):
        nan = float("nan")
        return ProjectionQuality(trustworthiness=nan, kept_share=nan, neighbors=max(k, 0), probes=0, points=n)
    worse, kept = 0.0, 0
    for start in range(0, len(probes), _CHUNK):
        part = probes[start : start + _CHUNK]
        here, there = _others(vectors, part), _others(places, part)
        near = np.argpartition(there, k - 1, axis=1)[:, :k]
        rank = _ranks(here, near)
        worse += float(np.maximum(rank - k, 0).sum())
        kept += int((rank <= k).sum())
    scale = 2.0 / (len(probes) * k * (2 * n - 3 * k - 1))
    return ProjectionQuality(
        trustworthiness=1.0 - scale * worse,
        kept_share=kept / (len(probes) * k),
        neighbors=k,
        probes=len(probes),
        points=n,
    )


def _spread(points: NDArray[np.floating]) -> bool:
    return bool(np.ptp(points, axis=0).max() > 0)


def _others(points: NDArray[np.floating], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Squared distances ``[rows, n]``, infinite to the point itself."""
    wide = points.astype(np.float64)
    squares = np.sum(wide * wide, axis=1)
    distance: NDArray[np.float64] = squares[rows, None] + squares[None, :] - 2.0 * (wide[rows] @ wide.T)
    distance[np.arange(len(rows)), rows] = np.inf
    return distance


def _ranks(distance: NDArray[np.float64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of each column among the distances of its row, the nearest being 1; ties share the best."""
    ordered = np.sort(distance, axis=1)
    chosen = np.take_along_axis(distance, columns, axis=1)
    found = [np.searchsorted(row, values) for row, values in zip(ordered, chosen, strict=True)]
    return np.asarray(found) + 1
