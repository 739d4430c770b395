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
    """Confusions anchor by anchor; only those that are looked at are put in order.

    Attributes:
        confusions: what was ordered.
        rows: positions in it, those of an anchor together, ``[rows]``.
        starts: where each anchor begins among them, and their end, ``[anchors + 1]``.
        anchors: anchors in order, ``[anchors]``.
        keys: what decides within an anchor, the first before the next, ``[rows]`` each.
    """

    confusions: pd.DataFrame = field(repr=False)
    rows: np.ndarray = field(repr=False)
    starts: np.ndarray = field(repr=False)
    anchors: np.ndarray = field(repr=False)
    keys: tuple[np.ndarray, ...] = field(repr=False)

    def pages(self, size: int) -> int:
        """Pages of ``size`` anchors, at least one."""
        return max(1, -(-len(self.anchors) // size))

    def page(self, page: int, size: int) -> pd.DataFrame:
        """Confusions of the anchors on a page.

        Args:
            page: counted from 1.
            size: anchors per page.

        Returns:
            Their rows in order with ``anchor``: 0 for the first direction and item of all, 1 for the next.
        """
        return self._of_anchors((page - 1) * size, page * size)

    def frame(self) -> pd.DataFrame:
        """All confusions, as ``page`` gives some."""
        return self._of_anchors(0, len(self.anchors))

    def _of_anchors(self, first: int, end: int) -> pd.DataFrame:
        chosen = self.anchors[first:end]
        begin, count = self.starts[chosen], np.diff(self.starts)[chosen]
        anchor = first + np.repeat(np.arange(len(chosen)), count)
        place = np.arange(len(anchor)) + np.repeat(begin - (np.cumsum(count) - count), count)
        # lexsort puts NaN last, and equal ones as they were
        order = np.lexsort((*(key[place] for key in reversed(self.keys)), anchor))
        taken: pd.DataFrame = self.confusions.iloc[self.rows[place[order]]]
        return taken.assign(anchor=anchor[order]).reset_index(drop=True)


def ordered(confusions: pd.DataFrame, order: str) -> Ordered:
    """Confusions by an order, those of one anchor together, its first one deciding where it stands.

    Args:
        confusions: what any of the questions found.
        order: one of ``ORDERS``; equal ones follow by margin, then as they were, anchors by direction and
            item.

    Raises:
        ValueError: if there is no such order.
    """
    if order not in ORDERS:
        raise ValueError(f"order={order!r} is unknown; choose one of {', '.join(ORDERS)}")
    column, ascending = ORDERS[order]
    rows, starts = _by_anchor(confusions)
    names = ["margin"] if column == "margin" else [column, "margin"]
    keys = [confusions[name].to_numpy(dtype=np.float64)[rows] for name in names]
    keys[0] = keys[0] if ascending else -keys[0]
    return Ordered(
        confusions=confusions,
        rows=rows,
        starts=starts,
        anchors=np.lexsort(_first_of_each(keys, starts)[::-1]),
        keys=tuple(keys),
    )


def _by_anchor(confusions: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Positions of rows, those of a direction and item together, and where each of these begins."""
    direction = confusions["direction"].astype("category").cat.codes.to_numpy().astype(np.int64)
    key = (direction << 32) | confusions["item_id"].to_numpy(dtype=np.int64)
    rows = np.arange(len(key))
    if not (key[1:] >= key[:-1]).all():
        rows = np.argsort(key, kind="stable")
    changed = np.flatnonzero(np.diff(key[rows], prepend=-1)) if len(key) else rows
    return rows, np.append(changed, len(key))


def _first_of_each(keys: list[np.ndarray], starts: np.ndarray) -> list[np.ndarray]:
    """Of each anchor the keys of its first row, NaN last."""
    begin, count = starts[:-1], np.diff(starts)
    first: list[np.ndarray] = []
    candidate = np.ones(len(keys[0]), dtype=bool)
    for key in keys:
        best = np.fmin.reduceat(np.where(candidate, key, np.nan), begin) if len(begin) else key
        spread = np.repeat(best, count)
        candidate &= (key == spread) | np.isnan(spread)
        first.append(best)
    return first
