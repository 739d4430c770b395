"""How many bytes a value holds, roughly, so that caches can be bounded by what they take."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

# Objects of a column or list that are looked at; the others are taken to be like these.
_LOOKED_AT = 256
_SMALL = frozenset({str, bytes, int, float, bool, type(None)})
_ARROW = (pa.Table, pa.RecordBatch, pa.ChunkedArray, pa.Array)
# what an index takes besides its values once something was looked up in it, as a multiple of them
_LOOK_UP = 2

_Parts: TypeAlias = "list[Any] | None"
"""Lists of what a value consists of, each of things that are alike; None for an unknown object."""


def bytes_of(value: Any) -> int:
    """Bytes that a value holds: its arrays and texts, within frames, containers and plain objects.

    What several values share is counted with each of them, so the sum over a cache is rather too high.

    Args:
        value: anything; of an object that is not known the attributes count, but not those of objects in it.

    Example:
        >>> import numpy as np
        >>> 8_000 <= bytes_of({"a": np.zeros(1000)}) < 9_000
        True
    """
    return _bytes(value, set(), True)


def _bytes(value: Any, seen: set[int], enter: bool) -> int:
    kind: Any = type(value)
    # most values by far, and the only ones that are too many to look into
    if kind in _SMALL:
        return sys.getsizeof(value)
    if id(value) in seen:
        return 0
    seen.add(id(value))
    own, parts = _way(kind)(value)
    # one level only: an object may name its parent, its class or half of a library
    if parts is None:
        parts, enter = ([list(vars(value).values())] if enter and _plain(value) else []), False
    return own + sum(_alike(part, seen, enter) for part in parts)


def _alike(values: Any, seen: set[int], enter: bool) -> int:
    """Bytes of all, where there are many as if all were like some of them."""
    total = len(values)
    if total <= _LOOKED_AT:
        return sum([_bytes(value, seen, enter) for value in values])
    looked_at = values[:: total // _LOOKED_AT]
    return int(sum([_bytes(value, seen, enter) for value in looked_at]) / len(looked_at) * total)


def _plain(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value)


@lru_cache(maxsize=4096)
def _way(kind: Any) -> Callable[[Any], tuple[int, _Parts]]:
    """How values of a type are looked at: their own bytes, and what they consist of."""
    return next((way for known, way in _WAYS if issubclass(kind, known)), _object)


def _array(value: np.ndarray) -> tuple[int, _Parts]:
    return 64 + int(value.nbytes), [value.ravel()] if value.dtype == object else []


def _frame(value: pd.DataFrame) -> tuple[int, _Parts]:
    kinds = value.dtypes.tolist()
    plain = [isinstance(kind, np.dtype) and not kind.hasobject for kind in kinds]
    own = sum(kind.itemsize for kind, known in zip(kinds, plain, strict=True) if known) * len(value)
    # to take a column out of a frame costs more than all the rest
    others = [value.iloc[:, place] for place, known in enumerate(plain) if not known]
    return own + 64 * len(kinds), [[value.index, *others]]


def _values(value: Any) -> tuple[int, _Parts]:
    """A series or one of pandas' own arrays."""
    return (64, [[value.to_numpy()]]) if value.dtype == object else (64 + int(value.nbytes), [])


def _object(value: Any) -> tuple[int, _Parts]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return sys.getsizeof(value, 64), [[getattr(value, field.name) for field in dataclasses.fields(value)]]
    return sys.getsizeof(value, 64), None


_WAYS: tuple[tuple[Any, Callable[[Any], tuple[int, _Parts]]], ...] = (
    ((*_SMALL,), lambda value: (sys.getsizeof(value), [])),
    (_ARROW, lambda value: (int(value.get_total_buffer_size()), [])),
    (np.ndarray, _array),
    (pd.DataFrame, _frame),
    (pd.RangeIndex, lambda value: (sys.getsizeof(value, 64), [])),
    (pd.Index, lambda value: ((1 + _LOOK_UP) * int(value.nbytes), [])),
    ((pd.Series, pd.api.extensions.ExtensionArray), _values),
    (Mapping, lambda value: (sys.getsizeof(value), [list(value), list(value.values())])),
    ((list, tuple, set, frozenset), lambda value: (sys.getsizeof(value), [list(value)])),
)
