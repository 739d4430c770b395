"""Small least-recently-used caches that several threads may share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


def _one(value: object) -> int:
    return 1


class BoundedCache(Generic[_Value]):
    """Keeps the entries that were used last, as many as weigh no more than ``limit`` together.

    Args:
        limit: most that the entries may weigh.
        weigh: weight of an entry, such as ``weight.bytes_of``; without it every entry weighs 1.

    Example:
        >>> cache = BoundedCache[str](limit=1)
        >>> cache.put("a", "first")
        >>> cache.put("b", "second")
        >>> cache.get("a"), cache.get("b")
        (None, 'second')
    """

    def __init__(self, limit: int, weigh: Callable[[_Value], int] = _one) -> None:
        self.limit = limit
        self._weigh = weigh
        self._entries: OrderedDict[Hashable, tuple[_Value, int]] = OrderedDict()
        self._weight = 0
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def weight(self) -> int:
        """What the entries weigh together."""
        return self._weight

    def get(self, key: Hashable) -> _Value | None:
        """The value of a key, or None."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Hashable, value: _Value) -> None:
        """Store a value; the entries unused for longest make room, and one that is too heavy is not kept."""
        weight = self._weigh(value)
        with self._lock:
            self._weight += weight - self._entries.pop(key, (None, 0))[1]
            self._entries[key] = (value, weight)
            while self._weight > self.limit:
                self._weight -= self._entries.popitem(last=False)[1][1]

    def get_or_make(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """The value of a key; of several threads that miss it one makes it and the others wait.

        Args:
            key: identifies the value.
            make: makes it, never None; what it raises is raised here, and nothing is kept then.
        """
        value = self.get(key)
        if value is not None:
            return value
        with self._lock:
            gate = self._making.setdefault(key, threading.Lock())
        with gate:
            value = self.get(key)
            if value is None:
                try:
                    value = make()
                    self.put(key, value)
                finally:
                    with self._lock:
                        self._making.pop(key, None)
        return value
