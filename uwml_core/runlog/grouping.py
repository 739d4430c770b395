"""Rows with equal keys, and sums over them, without sorting where there is room for every key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# what an int64 holds
_MOST_PLACES = 2**62
# places for each row, above which rows are sorted
_SPARSE = 8


class Groups(NamedTuple):
    """Which group of equal keys, in the order of the keys, each row is in; of each group its rows and one."""

    of: NDArray[np.intp]
    sizes: NDArray[np.intp]
    shown: NDArray[np.intp]

    @property
    def number(self) -> int:
        """How many groups there are."""
        return len(self.shown)

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum of the values in each group, of their type."""
        # float64 holds every count of rows
        return np.bincount(self.of, values, self.number).astype(values.dtype, copy=False)

    def rows(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Rows in each group, or those of them that are chosen."""
        if chosen is None or chosen.all():
            return self.sizes
        if not chosen.any():
            return np.zeros(self.number, np.int64)
        return np.bincount(self.of[chosen], minlength=self.number)

    def least(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The smallest value in each group."""
        least = np.full(self.number, np.inf)
        np.minimum.at(least, self.of, values)
        return least


def grouped(keys: Sequence[NDArray[Any]]) -> Groups:
    """Groups of rows that agree in all keys ``[n]``, whole numbers.

    Example:
        >>> found = grouped([np.array([7, 5, 7]), np.array([0, 1, 0])])
        >>> found.of.tolist(), found.rows().tolist()
        ([1, 0, 1], [1, 2])
    """
    if not len(keys[0]):
        return Groups(*(np.empty(0, np.intp) for _ in Groups._fields))
    key = as_one(keys)
    span = int(key.max()) + 1
    if span > _SPARSE * len(key):
        _, shown, group, sizes = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        return Groups(group, sizes, shown)
    # a place for every key that there might be: many times faster than sorting
    sizes = np.bincount(key)
    row = np.empty(span, np.intp)
    row[key] = np.arange(len(key))
    there = sizes > 0
    if there.all():
        return Groups(key, sizes, row)
    return Groups((np.cumsum(there) - 1)[key], sizes[there], row[there])


def as_one(keys: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """One key that orders rows, at least one, as these do, the first before the others."""
    one, span = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        low = int(key.min())
        width = int(key.max()) - low + 1
        if width == 1:
            continue
        if span * width >= _MOST_PLACES:
            # the places of those before instead of their values
            one = np.unique(one, return_inverse=True)[1].astype(np.int64)
            span = int(one.max()) + 1
        one, span = (key - low if span == 1 else one * width + (key - low)), span * width
    return one
