"""What many steps say, name by name: asking each for every column takes longer than writing the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any


class Told:
    """Values of attributes of the diagnostics of some steps, one or more.

    Args:
        holders: one object per step.
    """

    def __init__(self, holders: Sequence[Any]) -> None:
        self._holders = holders
        self._alike = side_by_side([getattr(holder, "__dict__", {}) for holder in holders])
        self._kinds = {*map(type, holders)}

    def __getitem__(self, name: str) -> Sequence[Any] | None:
        """Values of an attribute, None for a holder that lacks it; None where no holder can have it."""
        values = self._alike.get(name)
        if values is None and (self._alike == {} or any(_answers(kind, name) for kind in self._kinds)):
            values = [getattr(holder, name, None) for holder in self._holders]
        return values


def side_by_side(rows: Sequence[Mapping[str, Any]]) -> dict[str, Sequence[Any]]:
    """Mappings as one of columns; empty where they differ in their names or the order of them.

    Example:
        >>> side_by_side([{"a": 1, "b": 2}, {"a": 3, "b": 4}])
        {'a': (1, 3), 'b': (2, 4)}
        >>> side_by_side([{"a": 1}, {"b": 4}])
        {}
    """
    names = tuple(rows[0])
    if not all(tuple(row) == names for row in rows):
        return {}
    return dict(zip(names, zip(*(row.values() for row in rows), strict=True), strict=True))


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Sequence[Any]]:
    """Mappings as one of columns, None where one lacks a name.

    Example:
        >>> columns_of([{"a": 1}, {"b": 4}])
        {'a': [1, None], 'b': [None, 4]}
    """
    if alike := side_by_side(rows):
        return alike
    return {name: [row.get(name) for row in rows] for name in _names(rows)}


def _names(rows: Iterable[Mapping[str, Any]]) -> dict[str, None]:
    return dict.fromkeys(name for row in rows for name in row)


@cache
def _answers(kind: type, name: str) -> bool:
    # what answers to names that it does not list is asked for all
    return hasattr(kind, name) or hasattr(kind, "__getattr__")
