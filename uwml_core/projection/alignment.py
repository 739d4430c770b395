"""Turn one layout onto another, so that what moves on the map is what moved in the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def align(
    moving: NDArray[np.floating], fixed: NDArray[np.floating], common: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Rotate, mirror and shift a layout so that it lies as close as possible to another (Procrustes).

    The size is kept: distances within the layout do not change.

    Args:
        moving: ``[n, 2]``, the layout to turn.
        fixed: ``[n, 2]``, where its points were.
        common: which points have a place in ``fixed``; all of them when None. Without any the layout
            stays as it is.

    Returns:
        float64 ``[n, 2]``.

    Reference:
        Schönemann, "A generalized solution of the orthogonal Procrustes problem", 1966.

    Example:
        >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
        >>> bool(np.allclose(align(square @ [[0.0, 1.0], [-1.0, 0.0]] + 5.0, square), square))
        True
    """
    known = np.ones(len(moving), bool) if common is None else common
    if not known.any():
        return np.asarray(moving, dtype=np.float64)
    here, there = moving[known].astype(np.float64), fixed[known].astype(np.float64)
    middle, target = here.mean(axis=0), there.mean(axis=0)
    left, _, right = np.linalg.svd((here - middle).T @ (there - target))
    aligned: NDArray[np.float64] = (moving - middle) @ (left @ right) + target
    return aligned
