"""Arrays of any library to NumPy, many in one transfer.

A copy from an accelerator waits for everything that was queued before it, so a flush makes one copy per
column and not one per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

_USUAL = np.dtype(np.int64)


def host(array: Any) -> NDArray[Any]:
    """NumPy view or copy of an array; tensors are detached and brought to the host."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
    return np.asarray(array)


def flat(array: Any) -> Any:
    """All values of an array of any library in one row."""
    return array.reshape(-1) if hasattr(array, "reshape") else np.asarray(array).reshape(-1)


def joined(arrays: Sequence[Any], axis: int) -> NDArray[Any]:
    """Arrays side by side along an axis as one NumPy array."""
    if all(hasattr(array, "detach") for array in arrays):
        return host(array_namespace(arrays[0]).concat(list(arrays), axis=axis))
    if not all(type(array) is np.ndarray for array in arrays):
        arrays = [host(array) for array in arrays]
    return np.concatenate(arrays, axis=axis)


def stacked(values: Sequence[Any], width: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Optional vectors ``[width]``, one per step, as float64 ``[steps, width]`` and which were given."""
    given = np.array([value is not None for value in values], dtype=np.bool_)
    result = np.full((len(values), width), np.nan)
    present = [value for value in values if value is not None]
    if present:
        rows = array_namespace(present[0]).stack(present) if hasattr(present[0], "shape") else present
        result[given] = host(rows)
    return result, given


def scalar_values(values: Sequence[Any]) -> list[Any]:
    """Numbers, or tensors of one element, as Python numbers; None stays None."""
    tensors = [(index, value) for index, value in enumerate(values) if hasattr(value, "detach")]
    result = list(values)
    if tensors:
        flat = [value.reshape(()) for _, value in tensors]
        for (index, _), number in zip(
            tensors, host(array_namespace(*flat).stack(flat)).tolist(), strict=True
        ):
            result[index] = number
    return result


def kept(values: Any) -> Any:
    """What the writer thread may read later: a tensor itself, a copy of anything else."""
    if getattr(values, "dtype", None) is _USUAL:
        # in a cold cache they cost half of what a new array does
        return values.tobytes()
    return values if hasattr(values, "detach") else np.array(values)


def kept_together(values: Sequence[Any]) -> tuple[NDArray[Any], list[int]]:
    """What ``kept`` was given, side by side, and the length of each."""
    if all(type(one) is bytes for one in values):
        return np.frombuffer(b"".join(values), _USUAL), [len(one) // _USUAL.itemsize for one in values]
    arrays = [np.frombuffer(one, _USUAL) if type(one) is bytes else one for one in values]
    return joined(arrays, 0), [int(array.shape[0]) for array in arrays]


def integers(values: Any, dtype: Any, name: str) -> NDArray[Any]:
    """Copy of whole numbers as an array ``[n]`` of a smaller integer type.

    Raises:
        ValueError: naming the argument, if they are not one row of whole numbers or do not fit.
    """
    array = host(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} has shape {array.shape} and type {array.dtype}; expected one whole number per pair"
        )
    limits = np.iinfo(dtype)
    if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
        raise ValueError(
            f"{name} runs from {array.min()} to {array.max()}; expected {limits.min} to {limits.max}"
        )
    return array.astype(dtype)
