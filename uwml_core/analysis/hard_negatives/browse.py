"""Filter and export confusions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from uwml_core.analysis.bands import BAND_NAMES, band_of
from uwml_core.analysis.hard_negatives.catalogue import caption_texts, matching
from uwml_core.i18n import _

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
    return confusions if keep.all() else confusions[keep]


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
        "margin": _("Lowest margin first"),
        "often": _("Most often first"),
        "newest": _("Newest first"),
        "weight": _("Highest weight first"),
        "likeness": _("Most alike first"),
        "growth": _("Largest growth first"),
    }
    return labels[order]
