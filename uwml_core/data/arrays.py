"""Arrays that another program saved as .npy: embeddings, similarities, whole numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uwml_core.data.errors import DataError

_CHUNK = 4096
_FLOATS = (2, 4, 8)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]


def read_embeddings(path: Path) -> Floats:
    """Unit-norm rows of a file of embeddings.

    Args:
        path: .npy of float16, float32 or float64 ``[rows, dim]``, of any lengths above 0.

    Returns:
        float32 ``[rows, dim]``, float64 for float64.

    Raises:
        DataError: for another kind of file, shape or type, and for rows that are not finite or zero.
    """
    stored = _floats(path, "[rows, dim]")
    vectors = np.empty(stored.shape, np.float64 if stored.dtype.itemsize == 8 else np.float32)
    for start in range(0, len(stored), _CHUNK):
        part = stored[start : start + _CHUNK].astype(np.float64)
        # by the largest entry first, so that squares neither overflow nor vanish
        largest = np.abs(part).max(axis=1, keepdims=True)
        _check_finite(path, part, start)
        _refuse_rows(
            path, start, np.asarray(largest[:, 0] == 0), "is zero; expected an embedding with a direction"
        )
        part /= largest
        vectors[start : start + _CHUNK] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def read_similarities(path: Path) -> Floats:
    """A memory-mapped matrix of similarities, checked but not copied.

    Args:
        path: .npy of float16, float32 or float64 ``[images, texts]``.

    Raises:
        DataError: for another kind of file, shape or type, and for rows that are not finite.
    """
    stored = _floats(path, "[images, texts]")
    for start in range(0, len(stored), _CHUNK // 8):
        _check_finite(path, stored[start : start + _CHUNK // 8], start)
    return stored


def open_floats(path: Path) -> Floats:
    """A memory-mapped array of features, its values unchecked: checking would read gigabytes.

    Args:
        path: .npy of float16, float32 or float64 ``[rows, D]`` or ``[rows, regions, D]``.

    Raises:
        DataError: for another kind of file, shape or type.
    """
    return _floats(path, "[rows, D] or [rows, regions, D]", dimensions=(2, 3))


def read_integers(path: Path, meaning: str, limit: int | None = None) -> Ints:
    """Whole numbers ``[n]`` of a .npy file.

    Args:
        path: the file.
        meaning: what each of them is, for messages.
        limit: they must lie below it, and not below 0; None takes what fits in int32.

    Raises:
        DataError: for another kind of file, shape or type, or a number out of range.
    """
    stored = _load(path)
    if stored.ndim != 1 or stored.dtype.kind not in "iu":
        raise DataError(
            path.name,
            f"has shape {list(stored.shape)} and type {stored.dtype}; expected whole numbers [n], {meaning}",
        )
    low, high = (0, limit) if limit is not None else (-(2**31), 2**31)
    outside = np.flatnonzero((stored < low) | (stored >= high))
    if len(outside):
        problem = f"is {stored[outside[0]]}, not {meaning}; expected {low} to {high - 1}"
        raise DataError(path.name, problem, row=int(outside[0]))
    return np.asarray(stored, dtype=np.int64)


def _floats(path: Path, shape: str, dimensions: tuple[int, ...] = (2,)) -> Floats:
    stored = _load(path)
    if stored.ndim not in dimensions or 0 in stored.shape:
        raise DataError(path.name, f"has shape {list(stored.shape)}; expected {shape}, none of them 0")
    if stored.dtype.kind != "f" or stored.dtype.itemsize not in _FLOATS:
        raise DataError(path.name, f"has type {stored.dtype}; expected float16, float32 or float64")
    return stored


def _load(path: Path) -> npt.NDArray[Any]:
    # takes plain arrays alone: objects would be unpickled, which runs whatever code their maker put in
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError as error:
        raise DataError(str(path), "does not exist; expected a .npy file") from error
    except (ValueError, OSError, EOFError) as error:
        raise DataError(path.name, "cannot be read; expected a whole .npy file of plain numbers") from error


def _check_finite(path: Path, part: Floats, start: int) -> None:
    wrong = np.logical_not(np.isfinite(part)).any(axis=1)
    _refuse_rows(path, start, np.asarray(wrong), "is not finite; expected numbers throughout")


def _refuse_rows(path: Path, start: int, wrong: npt.NDArray[np.bool_], problem: str) -> None:
    if wrong.any():
        raise DataError(path.name, problem, row=start + int(wrong.argmax()))
