"""Filter, sort, page and export confusions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from uwml_core.analysis.bands import BAND_NAMES, band_of
from uwml_core.analysis.hard_negatives.catalogue import caption_texts, matching
from uwml_core.i18n import _

# Column that each order looks at, and whether small values come first.
ORDERS = {
    "margin": ("margin", True),
    "often": ("n", False),
    "newest": ("last_epoch", False),
    "weight": ("weight", False),
    "likeness": ("likeness", False),
    "growth": ("growth", False),
}
EXPORTED = (
    "direction",
    "item_id",
    "item_key",
    "split",
    "caption",
    "negative_item_id",
    "negative_item_key",
    "negative_caption",
    "margin",
    "n",
    "first_epoch",
    "last_epoch",
)
# What whoever labels fills in.
NEW_LABEL = "new_label"
_OPTIONAL = ("weight", "likeness", "reason", "growth", "encounters", "met", "mean_margin")


@dataclass(frozen=True, kw_only=True)
class SheetFilter:
    """What a visitor wants to see; None and an empty text mean everything.

    Attributes:
        direction: retrieval direction.
        band: name of a margin band.
        group: group of the anchor.
        text: part of the key or a caption of the anchor or of the wrong candidate.
    """

    direction: str | None = None
    band: str | None = None
    group: str | None = None
    text: str = ""


def select(confusions: pd.DataFrame, items: pd.DataFrame, wanted: SheetFilter) -> pd.DataFrame:
    """Confusions that pass a filter.

    Args:
        confusions: what any of the questions found.
        items: frame of ``catalogue``.
        wanted: the filter.
    """
    keep = np.ones(len(confusions), dtype=bool)
    if wanted.direction is not None:
        keep &= (confusions["direction"] == wanted.direction).to_numpy()
    if wanted.band is not None:
        bands = band_of(confusions["margin"].to_numpy(dtype=np.float64))
        keep &= bands == BAND_NAMES.index(wanted.band)
    if wanted.group is not None:
        keep &= confusions["item_id"].isin(items.index[items["group"] == wanted.group]).to_numpy()
    if wanted.text.strip():
        found = matching(items, wanted.text)
        either = confusions["item_id"].isin(found) | confusions["negative_item_id"].isin(found)
        keep &= either.to_numpy()
    return confusions[keep]


def sort(confusions: pd.DataFrame, order: str) -> pd.DataFrame:
    """Confusions by an order, those of one anchor together, its first one deciding where it stands.

    Args:
        confusions: what any of the questions found.
        order: one of ``ORDERS``; equal ones follow by margin, then as they were.

    Returns:
        The same rows with ``anchor``, 0 for the first direction and item, 1 for the next.

    Raises:
        ValueError: if there is no such order.
    """
    if order not in ORDERS:
        raise ValueError(f"order={order!r} is unknown; choose one of {', '.join(ORDERS)}")
    column, ascending = ORDERS[order]
    value = confusions[column].to_numpy(dtype=np.float64)
    ties = () if column == "margin" else (confusions["margin"].to_numpy(dtype=np.float64),)
    # lexsort puts NaN last, whichever way the others go
    first = np.lexsort((*ties, value if ascending else -value))
    direction = pd.factorize(confusions["direction"])[0].astype(np.int64)
    anchor_key = (direction << 32) | confusions["item_id"].to_numpy(dtype=np.int64)
    anchor = pd.factorize(anchor_key[first])[0]
    together = np.argsort(anchor, kind="stable")
    return confusions.iloc[first[together]].assign(anchor=anchor[together]).reset_index(drop=True)


def page_count(ordered: pd.DataFrame, size: int) -> int:
    """Pages of ``size`` anchors, at least one."""
    anchors = int(ordered["anchor"].max()) + 1 if len(ordered) else 0
    return max(1, -(-anchors // size))


def page_of(ordered: pd.DataFrame, page: int, size: int) -> pd.DataFrame:
    """Confusions of the anchors on a page.

    Args:
        ordered: frame of ``sort``.
        page: counted from 1.
        size: anchors per page.
    """
    return ordered[ordered["anchor"].between((page - 1) * size, page * size - 1)]


def export(confusions: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Table to relabel from: keys and captions in words beside the ids, and an empty column to fill in.

    Args:
        confusions: what was selected, in the order to export.
        items: frame of ``catalogue``.
    """
    own, other = confusions["item_id"], confusions["negative_item_id"]
    frame = confusions.assign(
        item_key=own.map(items["item_key"]),
        split=own.map(items["split"]),
        negative_item_key=other.map(items["item_key"]),
        caption=caption_texts(items, own.tolist(), confusions["caption"].tolist()),
        negative_caption=caption_texts(items, other.tolist(), confusions["negative_caption"].tolist()),
    )
    shown = frame[[*EXPORTED, *(name for name in _OPTIONAL if name in frame)]].reset_index(drop=True)
    return shown.assign(**{NEW_LABEL: ""})


def order_label(order: str) -> str:
    """What an order is called on the screen."""
    labels = {
        "margin": _("lowest margin first"),
        "often": _("most often first"),
        "newest": _("newest first"),
        "weight": _("highest weight first"),
        "likeness": _("most alike first"),
        "growth": _("largest growth first"),
    }
    return labels[order]
