"""What a map kept of the neighborhoods that it was drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

NEIGHBORS = 15
MOST_PROBES = 500
_CHUNK = 64


@dataclass(frozen=True, kw_only=True)
class ProjectionQuality:
    """How well a map shows neighborhoods.

    Attributes:
        trustworthiness: 1 where all neighbors on the map are neighbors in the data, about 0.5 by chance;
            NaN where it is not defined.
        continuity: 1 where all neighbors in the data are neighbors on the map, about 0.5 by chance;
            NaN likewise.
        kept_share: share of the nearest neighbors in the data that are nearest on the map too; NaN likewise.
        neighbors: neighbors per point that were looked at.
        probes: points whose neighbors were looked at.
        points: points on the map.
    """

    trustworthiness: float
    continuity: float
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
    """Trustworthiness, continuity and share of kept neighbors of a map.

    With n points, k neighbors, N_i and M_i the k nearest of i in the data and on the map, r(i, j) and
    s(i, j) the place of j among the neighbors of i in the data and on the map, over the probes i:

        trustworthiness = 1 − 2 / (probes · k (2n − 3k − 1)) Σ_i Σ_{j ∈ M_i} max(0, r(i, j) − k)
        continuity      = 1 − 2 / (probes · k (2n − 3k − 1)) Σ_i Σ_{j ∈ N_i} max(0, s(i, j) − k)

    Args:
        vectors: ``[n, dim]``, unit norm; neighbors by Euclidean distance, which is the order by cosine.
        places: ``[n, 2]``.
        neighbors: k; with few points the largest below n / 2.
        most_probes: a seeded sample of that many points is looked at where there are more; None for all.
        seed: of the sample.

    Returns:
        The numbers with what they rest on; NaN with fewer than three points, or where either space has
        all of them in one place.

    Reference:
        Venna and Kaski, "Neighborhood preservation in nonlinear projection methods", ICANN 2001.
    """
    n = len(vectors)
    k = min(neighbors, (n - 1) // 2)
    told = point_quality(vectors, places, neighbors=neighbors, most_probes=most_probes, seed=seed)
    if told.empty:
        nan = float("nan")
        return ProjectionQuality(
            trustworthiness=nan, continuity=nan, kept_share=nan, neighbors=max(k, 0), probes=0, points=n
        )
    scale = 2.0 / (len(told) * k * (2 * n - 3 * k - 1))
    return ProjectionQuality(
        trustworthiness=1.0 - scale * float(told["intrusion"].sum()),
        continuity=1.0 - scale * float(told["extrusion"].sum()),
        kept_share=float(told["kept_share"].mean()),
        neighbors=k,
        probes=len(told),
        points=n,
    )


def point_quality(
    vectors: NDArray[np.floating],
    places: NDArray[np.floating],
    *,
    neighbors: int = NEIGHBORS,
    most_probes: int | None = MOST_PROBES,
    seed: int = 0,
) -> pd.DataFrame:
    """What the map kept of the neighborhood of each probe.

    Args:
        vectors, places, neighbors, most_probes, seed: as for ``projection_quality``.

    Returns:
        Frame ``[row, kept_share, intrusion, extrusion]``, a row per probe: the share of its k nearest in the
        data that are nearest on the map, and by how many places in all its neighbors on the map are too
        far in the data, those in the data too far on the map. Empty where it is not defined.
    """
    n = len(vectors)
    k = min(neighbors, (n - 1) // 2)
    rows = np.arange(n)
    if most_probes is not None and n > most_probes:
        rows = np.sort(np.random.default_rng(seed).choice(n, most_probes, replace=False))
    if k < 1 or not _spread(vectors) or not _spread(places):
        rows = rows[:0]
    parts = [_of_probes(vectors, places, rows[at : at + _CHUNK], k) for at in range(0, len(rows), _CHUNK)]
    kept, intrusion, extrusion = np.concatenate(parts, axis=1) if parts else np.empty((3, 0))
    return pd.DataFrame(
        {"row": rows, "kept_share": kept / max(k, 1), "intrusion": intrusion, "extrusion": extrusion}
    )


def _of_probes(
    vectors: NDArray[np.floating], places: NDArray[np.floating], rows: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    data, drawn = _others(vectors, rows), _others(places, rows)
    in_data = _ranks(data, np.argpartition(drawn, k - 1, axis=1)[:, :k])
    on_map = _ranks(drawn, np.argpartition(data, k - 1, axis=1)[:, :k])
    too_far = (np.maximum(rank - k, 0).sum(axis=1) for rank in (in_data, on_map))
    return np.stack([(in_data <= k).sum(axis=1), *too_far]).astype(np.float64)


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
    chosen = np.take_along_axis(distance, columns, axis=1)
    # counting a few columns is a tenth of the work of sorting whole rows
    nearer = [np.count_nonzero(distance < chosen[:, k, None], axis=1) for k in range(chosen.shape[1])]
    return np.stack(nearer, axis=1) + 1
