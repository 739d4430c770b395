"""Confusions in an order, anchor by anchor, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

# Column that each order looks at, and whether small values come first.
ORDERS = {
    "margin": ("margin", True),
    "often": ("n", False),
    "newest": ("last_epoch", False),
    "weight": ("weight", False),
    "likeness": ("likeness", False),
    "growth": ("growth", False),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Ordered:
    """Confusions in an order; only those that are looked at are taken out of their frame.

    Attributes:
        confusions: what was ordered.
        rows: positions in it, in order, ``[rows]``.
        anchor: whose each of them is, ascending: 0 for the first direction and item, 1 for the next.
    """

    confusions: pd.DataFrame = field(repr=False)
    rows: np.ndarray = field(repr=False)
    anchor: np.ndarray = field(repr=False)

    @property
    def anchors(self) -> int:
        """How many anchors there are."""
        return int(self.anchor[-1]) + 1 if len(self.anchor) else 0

    def pages(self, size: int) -> int:
        """Pages of ``size`` anchors, at least one."""
        return max(1, -(-self.anchors // size))

    def page(self, page: int, size: int) -> pd.DataFrame:
        """Confusions of the anchors on a page, with ``anchor``.

        Args:
            page: counted from 1.
            size: anchors per page.
        """
        first, end = np.searchsorted(self.anchor, [(page - 1) * size, page * size])
        return self._taken(slice(first, end))

    def frame(self) -> pd.DataFrame:
        """All confusions, with ``anchor``."""
        return self._taken(slice(None))

    def _taken(self, which: slice) -> pd.DataFrame:
        taken = self.confusions.iloc[self.rows[which]]
        return taken.assign(anchor=self.anchor[which]).reset_index(drop=True)


def ordered(confusions: pd.DataFrame, order: str) -> Ordered:
    """Confusions by an order, those of one anchor together, its first one deciding where it stands.

    Args:
        confusions: what any of the questions found.
        order: one of ``ORDERS``; equal ones follow by margin, then as they were.

    Raises:
        ValueError: if there is no such order.
    """
    if order not in ORDERS:
        raise ValueError(f"order={order!r} is unknown; choose one of {', '.join(ORDERS)}")
    column, ascending = ORDERS[order]
    rows = _ascending(confusions["margin"].to_numpy(dtype=np.float64))
    if column != "margin":
        value = confusions[column].to_numpy(dtype=np.float64)[rows]
        # NaN comes last, whichever way the others go
        rows = rows[np.argsort(value if ascending else -value, kind="stable")]
    anchor = _anchors(confusions)
    # assigned from behind, so that what stands first stays
    first = np.empty(int(anchor.max(initial=-1)) + 1, np.int64)
    first[anchor[rows[::-1]]] = np.arange(len(rows))[::-1]
    number = np.empty_like(first)
    number[np.argsort(first)] = np.arange(len(first))
    number = number[anchor[rows]]
    together = np.argsort(number * max(1, len(rows)) + np.arange(len(rows)))
    return Ordered(confusions=confusions, rows=rows[together], anchor=number[together])


def _ascending(values: np.ndarray) -> np.ndarray:
    """Positions of values in ascending order, NaN last; equal ones as they were.

    Several times as fast as a stable sort where few are equal.
    """
    order = np.argsort(values)
    ranked = values[order]
    equal = (ranked[1:] == ranked[:-1]) | np.isnan(ranked[:-1])
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal)) if len(order) else order
    run = np.cumsum(~np.append(False, equal))[tied] if len(order) else order
    order[tied] = order[tied][np.lexsort((order[tied], run))]
    return order


def _anchors(confusions: pd.DataFrame) -> np.ndarray:
    """A number for each row's direction and item, ``[rows]``, counted from 0."""
    direction = confusions["direction"]
    other = (direction != direction.iloc[0]).to_numpy() if len(direction) else np.empty(0, bool)
    key = (other.astype(np.int64) << 32) | confusions["item_id"].to_numpy(dtype=np.int64)
    if (key[1:] >= key[:-1]).all():
        # as they are gathered; saves a sort
        return np.cumsum(np.append(False, key[1:] != key[:-1])[: len(key)])
    return np.unique(key, return_inverse=True)[1]
