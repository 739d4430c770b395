"""Rows with equal keys, and sums over them, without sorting where there is room for every key."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

# what an int64 holds
_MOST_PLACES = 2**62
# places for each row, above which rows are sorted
_SPARSE = 8

# least value of a key and how many there are from it to the greatest
_Span = tuple[int, int]


class Groups:
    """Which rows agree in all keys; the groups are in the order of the keys, the first before the others.

    Args:
        keys: whole numbers ``[n]`` each.

    Example:
        >>> found = Groups([np.array([7, 5, 7]), np.array([0, 1, 0])])
        >>> found.key_columns(), found.rows().tolist(), found.total(np.array([1.0, 2.0, 4.0])).tolist()
        ([array([5, 7]), array([1, 0])], [1, 2], [2.0, 5.0])
    """

    def __init__(self, keys: Sequence[NDArray[Any]]) -> None:
        self._keys = keys
        one, self._spans = _packed(keys)
        self._places = int(one.max(initial=-1)) + 1
        self._dense = self._places <= _SPARSE * len(one) and self._spans is not None
        if self._dense:
            # a place for every key that there might be: many times faster than sorting
            self._of, sizes = one, np.bincount(one)
            self._there = slice(None) if sizes.all() else np.flatnonzero(sizes)
            self.sizes: NDArray[np.intp] = sizes[self._there]
        else:
            _, self._first, self._of, self.sizes = np.unique(
                one, return_index=True, return_inverse=True, return_counts=True
            )
            self._places, self._there = len(self.sizes), slice(None)

    @property
    def number(self) -> int:
        """How many groups there are."""
        return len(self.sizes)

    def key_columns(self) -> list[NDArray[Any]]:
        """Keys of each group."""
        if not self._dense:
            return [key[self.shown] for key in self._keys]
        return _unpacked(np.arange(self._places)[self._there], self._spans or ())

    @cached_property
    def shown(self) -> NDArray[np.intp]:
        """A row of each group."""
        if not self._dense:
            return self._first
        row = np.zeros(self._places, np.intp)
        row[self._of] = np.arange(len(self._of))
        return row[self._there]

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum of the values in each group, of their type."""
        # float64 holds every count of rows
        total = np.bincount(self._of, values, self._places)[self._there]
        return total.astype(values.dtype, copy=False)

    def rows(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Rows in each group, or those of them that are chosen."""
        if chosen is None or chosen.all():
            return self.sizes
        if not chosen.any():
            return np.zeros(self.number, np.int64)
        return np.bincount(self._of[chosen], minlength=self._places)[self._there]

    def least(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The smallest value in each group."""
        least = np.full(self._places, np.inf)
        np.minimum.at(least, self._of, values)
        return least[self._there]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """A value of each group for each of its rows."""
        every = np.zeros(self._places, values.dtype)
        every[self._there] = values
        return every[self._of]


def as_one(keys: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """One key that orders rows, at least one, as these do, the first before the others."""
    return _packed(keys)[0]


def _packed(keys: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], list[_Span] | None]:
    """One key, and what it is made of; None where that is more than an int64 holds."""
    one, span = np.zeros(len(keys[0]), np.int64), 1
    if not len(one):
        return one, [(0, 1)] * len(keys)
    spans: list[_Span] | None = []
    for key in keys:
        low = int(key.min())
        width = int(key.max()) - low + 1
        if span * width >= _MOST_PLACES:
            # the places of those before instead of their values
            one, spans = np.unique(one, return_inverse=True)[1].astype(np.int64), None
            span = int(one.max()) + 1
        if spans is not None:
            spans.append((low, width))
        if width > 1:
            one, span = (key - low if span == 1 else one * width + (key - low)), span * width
    return one, spans


def _unpacked(one: NDArray[np.int64], spans: Sequence[_Span]) -> list[NDArray[np.int64]]:
    keys = []
    for low, width in reversed(spans):
        one, key = (one, np.zeros_like(one)) if width == 1 else np.divmod(one, width)
        keys.append(key + low)
    return keys[::-1]
