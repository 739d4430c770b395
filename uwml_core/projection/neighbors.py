"""Exact nearest neighbors by matrix product, in chunks that fit the memory."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

# Similarities at a time: 64 MiB of float32, however many points there are.
_CELLS = 2**24


def nearest(
    vectors: NDArray[np.float32], neighbors: int, metric: str = "cosine"
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Nearest neighbors of unit vectors, each point being its own first.

    Args:
        vectors: float32 ``[n, dim]``, unit norm.
        neighbors: how many per point, itself included, at most n.
        metric: ``cosine`` (1 − similarity) or ``euclidean`` (the chord).

    Returns:
        Rows int32 ``[n, neighbors]`` and distances float32 ``[n, neighbors]``, ascending.
    """
    everything = torch.from_numpy(vectors)
    chunk = max(1, _CELLS // len(vectors))
    rows, distances = [], []
    for start in range(0, len(vectors), chunk):
        similarity = everything[start : start + chunk] @ everything.T
        own = torch.arange(len(similarity))
        # above any cosine: a duplicate must not come before the point itself
        similarity[own, start + own] = 2.0
        values, index = similarity.topk(neighbors, dim=1)
        values[:, 0] = 1.0
        distance = (1.0 - values).clamp_min(0.0)
        distances.append(distance if metric == "cosine" else (2.0 * distance).sqrt())
        rows.append(index.to(torch.int32))
    return torch.cat(rows).numpy(), torch.cat(distances).numpy()
