"""A small least-recently-used cache that several threads may share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class BoundedCache(Generic[_Value]):
    """Keeps the ``limit`` entries that were used last.

    Example:
        >>> cache = BoundedCache[str](limit=1)
        >>> cache.put("a", "first")
        >>> cache.put("b", "second")
        >>> cache.get("a"), cache.get("b")
        (None, 'second')
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[Hashable, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> _Value | None:
        """The value of a key, or None."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def put(self, key: Hashable, value: _Value) -> None:
        """Store a value; the entry unused for longest makes room."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self._limit:
                self._entries.popitem(last=False)
