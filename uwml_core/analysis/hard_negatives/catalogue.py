"""Items by their number: captions, group, picture."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from uwml_core.i18n import _

TEXTS = ("item_key", "label", "group", "split", "captions")
COLUMNS = (*TEXTS, "thumbnail")
Known: TypeAlias = "pd.DataFrame | Mapping[str, Mapping[int, Any]]"
"""A frame of ``catalogue``, or each of its columns by item, which is looked up many times as fast."""


def catalogue(items: pd.DataFrame | None) -> pd.DataFrame:
    """Items indexed by ``item_id``.

    Args:
        items: frame of ``Run.items()``, with or without pictures or captions; None where the run did not log
            them.

    Returns:
        Frame with those of ``COLUMNS`` that were given; ``group`` is empty where there is none, ``captions``
        are tuples. Without rows for None.
    """
    if items is None:
        return pd.DataFrame(columns=list(COLUMNS), index=pd.Index([], dtype="int64", name="item_id"))
    frame = items.drop_duplicates("item_id").set_index("item_id").sort_index()
    frame["group"] = frame["group"].fillna("").astype(object)
    frame["item_key"] = frame["item_key"].fillna("").astype(object)
    captions = frame["captions"].tolist() if "captions" in frame else []
    if not _ready(captions):
        frame["captions"] = [_texts(texts) for texts in captions]
    return frame[[name for name in COLUMNS if name in frame]]


def _ready(captions: list[Any]) -> bool:
    """Whether all are tuples of texts, which is told many times faster than item by item."""
    return {*map(type, captions)} <= {tuple} and None not in itertools.chain.from_iterable(captions)


def _texts(captions: Iterable[str | None] | None) -> tuple[str, ...]:
    return () if captions is None else tuple(text for text in captions if text is not None)


def groups_in(items: pd.DataFrame) -> list[str]:
    """Groups that occur, sorted; blank ones are none."""
    return sorted(name for name in set(items["group"]) if name.strip())


def caption_text(items: Known, item_id: int, caption: int = 0) -> str:
    """One caption of an item; its first one where that number is unknown, its name where there are no words.

    Args:
        items: frame of ``catalogue``.
        item_id: the item.
        caption: index within the item.
    """
    texts = items["captions"].get(item_id, ())
    if not len(texts):
        return item_name(items, item_id)
    text = str(texts[caption] if 0 <= caption < len(texts) else texts[0])
    return text if text.strip() else item_name(items, item_id)


def caption_texts(items: pd.DataFrame, item_ids: Sequence[int], captions: Sequence[int]) -> list[str]:
    """``caption_text`` of several items."""
    known = items["captions"].to_dict()
    texts = []
    for item_id, caption in zip(item_ids, captions, strict=True):
        own = known.get(item_id, ())
        text = own[caption] if 0 <= caption < len(own) else ""
        texts.append(text if text.strip() else caption_text(items, item_id, caption))
    return texts


def item_name(items: Known, item_id: int) -> str:
    """The data's own name of an item, or its number."""
    key = items["item_key"].get(item_id)
    return str(key) if str(key or "").strip() else _("item {number}").format(number=item_id)


def matching(items: pd.DataFrame, text: str) -> pd.Index:
    """Items whose key or captions contain a text, large and small letters alike; all for an empty text."""
    wanted = " ".join(text.split()).casefold()
    if not wanted:
        return items.index
    told = zip(items["item_key"], items["captions"], strict=True)
    said = [wanted in "\n".join([key, *captions]).casefold() for key, captions in told]
    return items.index[np.array(said, dtype=bool)]
