"""How many bytes a value holds, roughly, so that caches can be bounded by what they take."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

# Objects of a column or list that are looked at; the others are taken to be like these.
_LOOKED_AT = 256
_SMALL = (str, bytes, int, float, type(None))
_ARROW = (pa.Table, pa.RecordBatch, pa.ChunkedArray, pa.Array)


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
    if not isinstance(value, _SMALL):
        if id(value) in seen:
            return 0
        seen.add(id(value))
    # one level only: an object may name its parent, its class or half of a library
    known = _known_parts(value)
    if known is None:
        known, enter = ([list(vars(value).values())] if enter and _plain(value) else []), False
    return _own(value) + sum(_alike(part, seen, enter) for part in known)


def _own(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return 64 + int(value.nbytes)
    if isinstance(value, _ARROW):
        return int(value.get_total_buffer_size())
    if isinstance(value, pd.Series) and value.dtype != object:
        return int(value.array.nbytes)
    return int(value.memory_usage(deep=False)) if isinstance(value, pd.Index) else sys.getsizeof(value, 64)


def _known_parts(value: Any) -> list[Any] | None:
    """Lists of what a value consists of, each list of things that are alike; None for an unknown object."""
    parts: list[Any] | None = [] if isinstance(value, (*_SMALL, *_ARROW, pd.Index)) else None
    if isinstance(value, np.ndarray):
        parts = [value.ravel()] if value.dtype == object else []
    elif isinstance(value, pd.Series):
        parts = [[value.to_numpy()]] if value.dtype == object else []
    elif isinstance(value, pd.DataFrame):
        parts = [[value.index, *(value.iloc[:, place] for place in range(value.shape[1]))]]
    elif isinstance(value, Mapping):
        parts = [list(value), list(value.values())]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = [list(value)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [[getattr(value, field.name) for field in dataclasses.fields(value)]]
    return parts


def _plain(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value)


def _alike(values: Any, seen: set[int], enter: bool) -> int:
    """Bytes of all, where there are many as if all were like some of them."""
    total = len(values)
    looked_at = values[:: max(1, total // _LOOKED_AT)]
    return int(sum(_bytes(value, seen, enter) for value in looked_at) / max(1, len(looked_at)) * total)
