"""Principal components of all snapshots together: one pair of axes for the whole run, at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uwml_core.runlog.projections import PlacedSnapshot
from uwml_core.runlog.snapshots import Snapshot

Floats = NDArray[np.float64]

# Vectors that are placed at once: as many as the processor's cache holds.
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums from which mean and covariance follow; moments of parts add up.

    Attributes:
        count: vectors.
        total: their sum, float64 ``[dim]``.
        squares: sum of their outer products, float64 ``[dim, dim]``.
    """

    count: int
    total: Floats
    squares: Floats

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.count + other.count, self.total + other.total, self.squares + other.squares)


@dataclass(frozen=True, eq=False)
class Axes:
    """Where the layout's origin lies and what its two axes are.

    Attributes:
        mean: float64 ``[dim]``.
        directions: float64 ``[2, dim]``, orthonormal rows; zero where the data have no such direction.
        shares: share of the variance along each, float64 ``[2]``; 0 where there is no variance.
    """

    mean: Floats
    directions: Floats
    shares: Floats

    def place(self, vectors: NDArray[np.floating]) -> NDArray[np.float32]:
        """Coordinates ``[n, 2]`` of vectors ``[n, dim]``."""
        placed = np.empty((len(vectors), len(self.directions)), np.float32)
        # the mean last, and block by block: all at once takes ten times as long
        origin = self.directions @ self.mean
        for first in range(0, len(vectors), _BLOCK):
            block = vectors[first : first + _BLOCK].astype(np.float64)
            placed[first : first + _BLOCK] = block @ self.directions.T - origin
        return placed


def moments(vectors: NDArray[np.floating]) -> Moments:
    """Moments of vectors ``[n, dim]``, summed in float64."""
    wide = vectors.astype(np.float64)
    return Moments(len(wide), wide.sum(axis=0), wide.T @ wide)


def joint_axes(parts: Iterable[Moments]) -> Axes | None:
    """The two directions of largest variance of all parts together.

    The sign is fixed by the component of largest magnitude being positive, so equal data give equal axes.

    Args:
        parts: moments of equal dim; those of another dim than the newest are left out.

    Returns:
        The axes; None where there is no vector.
    """
    filled = [part for part in parts if part.count]
    if not filled:
        return None
    dim = len(filled[-1].total)
    fitting = [part for part in filled if len(part.total) == dim]
    merged = sum(fitting[1:], fitting[0])
    mean = merged.total / merged.count
    covariance = merged.squares / merged.count - np.outer(mean, mean)
    # singular vectors of a symmetric matrix; unlike eigh they come largest first and never negative
    directions, variances, _ = np.linalg.svd(covariance, hermitian=True)
    # below this, rounding of the sums is all there is
    floor = 1e-12 * max(float(np.trace(merged.squares)) / merged.count, 1e-300)
    kept = [_signed(directions[:, k]) * (variances[k] > floor) for k in range(min(2, dim))]
    kept += [np.zeros(dim)] * (2 - len(kept))
    total = float(np.trace(covariance))
    shares = np.array([*variances[:2], 0.0, 0.0])[:2] / total if total > floor else np.zeros(2)
    return Axes(mean, np.stack(kept), shares)


def _signed(direction: Floats) -> Floats:
    largest = direction[np.argmax(np.abs(direction))]
    return direction if largest >= 0 else -direction


def place(snapshot: Snapshot, axes: Axes) -> PlacedSnapshot:
    """Where the axes put the points of a snapshot; its vectors must have the axes' length."""
    return PlacedSnapshot(
        step=snapshot.step,
        epoch=snapshot.epoch,
        item_ids=snapshot.item_ids,
        modality=np.array(snapshot.modalities, dtype=object)[snapshot.modality],
        places=axes.place(snapshot.vectors),
    )
