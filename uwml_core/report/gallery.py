"""Queries with their right answer and their hardest negatives, as pictures in words."""

from __future__ import annotations

import base64
from typing import Any

import pandas as pd

from uwml_core.analysis.hard_negatives.catalogue import caption_text
from uwml_core.analysis.hard_negatives.facts import main_fact
from uwml_core.analysis.hard_negatives.order import ordered
from uwml_core.analysis.text import fixed
from uwml_core.i18n import _
from uwml_core.report.markup import Html, tag
from uwml_core.report.source import Source

MOST_QUERIES = 12
MOST_WRONG = 3
_LONGEST = 160


def gallery(source: Source, confusions: pd.DataFrame, order: str) -> Html:
    """The first queries of a question, each with its worst candidates.

    Args:
        source: the run.
        confusions: what the question found.
        order: one of ``order.ORDERS``.
    """
    shown = ordered(confusions, order).page(1, MOST_QUERIES)
    entries = [_entry(source, rows) for _anchor, rows in shown.groupby("anchor", sort=True)]
    return tag("div", *entries, class_="gallery clips" if "video" in source.modalities else "gallery")


def _entry(source: Source, rows: pd.DataFrame) -> Html:
    found: list[dict[str, Any]] = [{str(k): v for k, v in row.items()} for row in rows.to_dict("records")]
    first, direction = found[0], str(found[0]["direction"])
    place = ("first", "second")[source.directions.index(direction)]
    head = tag("header", tag("b", direction, class_=place), tag("span", main_fact(first)))
    own = _tile(source, first["item_id"], first["caption"], _("right answer"), class_="right")
    wrong = [
        _tile(source, row["negative_item_id"], row["negative_caption"], _margin(row["margin"]))
        for row in found[:MOST_WRONG]
    ]
    return tag("article", head, tag("ul", own, *wrong))


def _margin(value: float) -> str:
    return _("margin {value}").format(value=fixed(value, 2))


def _tile(source: Source, item: int, caption: int, number: str, class_: str | None = None) -> Html:
    text = " ".join(caption_text(source.catalogue, int(item), int(caption)).split())
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    words = tag("span", text, dir="auto", class_="caption")
    return tag("li", *_picture(source, int(item), text), words, tag("small", number), class_=class_)


def _picture(source: Source, item: int, text: str) -> list[Html]:
    if not source.pictures:
        return []
    thumbnail = source.catalogue["thumbnail"].get(item)
    if not isinstance(thumbnail, bytes) or not thumbnail:
        return [tag("span", class_="empty")]
    data = base64.b64encode(thumbnail).decode()
    return [tag("img", src=f"data:image/webp;base64,{data}", alt=text)]
