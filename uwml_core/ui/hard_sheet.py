"""The sheet of findings: filters in the address, one page of entries, ids to relabel as CSV."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.analysis.hard_negatives import browse
from uwml_core.analysis.hard_negatives.catalogue import Known, caption_text, item_name
from uwml_core.analysis.hard_negatives.facts import all_facts, main_fact
from uwml_core.analysis.hard_negatives.order import Ordered, ordered
from uwml_core.analysis.text import fixed
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _, ngettext
from uwml_core.runlog.reader import Run
from uwml_core.ui.card import to_csv
from uwml_core.ui.gallery import Entry, Tile, contact_sheet
from uwml_core.ui.hard_questions import Findings
from uwml_core.ui.hard_read import catalogue, outline, pictured
from uwml_core.ui.kept import version_of
from uwml_core.ui.shared import shared
from uwml_core.ui.text import element, note

PAGE_SIZE = 24
MOST_WRONG = 3
_PAGE, _ASKED = "page", "_asked_of_sheet"
_MOST_BUTTONS, _BUTTON_PX = 7, 44


def sheet(run: Run, found: Findings, wanted: browse.SheetFilter, order: str, theme: Theme) -> None:
    """Draw the findings that pass the filter.

    Args:
        run: the run.
        found: findings of a question, with confusions.
        wanted: the filter.
        order: one of ``order.ORDERS``.
        theme: colours.
    """
    if found.confusions is None or found.confusions.empty:
        return
    items = catalogue(run) if wanted.text.strip() else outline(run)
    asked = (version_of(run), found.question, found.epoch, wanted, order)
    chosen = _chosen(str(run.path), asked, _found=found.confusions, _items=items)
    page = _count_row(chosen, run, (found.question, wanted, order))
    if not len(chosen.rows):
        note(_("Nothing passes the filter."))
        return
    entries = _entries(chosen.page(page, PAGE_SIZE), run, theme)
    if items.empty:
        note(_("No items were logged, so there are no pictures; log them with RunLogger.log_items."))
    contact_sheet(entries, clips="video" in run.modalities)


@shared
def _chosen(
    path: str,
    asked: tuple[Hashable, str, int | None, browse.SheetFilter, str],
    *,
    _found: pd.DataFrame,
    _items: pd.DataFrame,
) -> Ordered:
    *_about, wanted, order = asked
    return ordered(browse.select(_found, _items, wanted), order)


def _count_row(chosen: Ordered, run: Run, asked: Hashable) -> int:
    """Draw how much there is, its CSV and the pages; returns the page."""
    anchors, pages = len(chosen.anchors), chosen.pages(PAGE_SIZE)
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    text = ngettext("{n} query, {wrong} wrong candidates", "{n} queries, {wrong} wrong candidates", anchors)
    left = row.container(horizontal=True, vertical_alignment="center", width="content")
    left.html(
        element("p", text.format(n=f"{anchors:,}", wrong=f"{len(chosen.rows):,}"), "uw-note"), width="content"
    )
    left.download_button(
        _("Ids to relabel"), lambda: to_csv(browse.export(chosen.frame(), catalogue(run))),
        file_name="relabel.csv", mime="text/csv", key="csv-relabel", type="tertiary",
        icon=":material/download:", on_click="ignore",
        help=_("Download all that passes the filter as CSV, keys and captions beside the ids"),
        disabled=not anchors,
    )  # fmt: skip
    _back_to_first(asked, pages)
    with row:
        # as wide as its buttons: beside others it would take less, and leave out the second of two
        width = _BUTTON_PX * (min(pages, _MOST_BUTTONS) + 2)
        return int(st.pagination(pages, key=_PAGE, bind="query-params", width=width)) if pages > 1 else 1


def _back_to_first(asked: Hashable, pages: int) -> None:
    """Turn to the first page when something else is asked for, or the page does not exist any more."""
    before = st.session_state.get(_ASKED, asked)
    st.session_state[_ASKED] = asked
    if _PAGE in st.session_state and (before != asked or st.session_state[_PAGE] > pages):
        st.session_state[_PAGE] = 1


def _entries(shown: pd.DataFrame, run: Run, theme: Theme) -> list[Entry]:
    drawn = shown.groupby("anchor").head(MOST_WRONG)
    frame = pictured(run, [*drawn["item_id"], *drawn["negative_item_id"]])
    items: dict[str, dict[Any, Any]] = {str(name): column.to_dict() for name, column in frame.items()}
    asks = dict(zip(run.directions, run.modalities, strict=True))
    rows: list[dict[str, Any]] = [{str(k): v for k, v in row.items()} for row in shown.to_dict("records")]
    return [
        _entry(list(found), items, asks, theme)
        for _anchor, found in itertools.groupby(rows, key=lambda row: row["anchor"])
    ]


def _entry(found: list[dict[str, Any]], items: Known, asks: dict[str, str], theme: Theme) -> Entry:
    first = found[0]
    direction = str(first["direction"])
    one, other = asks
    caption = int(first["caption"])
    own = item_tile(items, int(first["item_id"]), caption)
    wrong = [
        item_tile(
            items,
            int(row["negative_item_id"]),
            int(row["negative_caption"]),
            number=fixed(row["margin"], 2),
            hover=all_facts(row),
        )
        for row in found[:MOST_WRONG]
    ]
    return Entry(
        direction=direction,
        color=theme.direction(direction, (one, other)),
        fact=main_fact(first),
        own=own,
        wrong=wrong,
        more=max(len(found) - MOST_WRONG, 0),
        asks_in_words=asks[direction] == "text",
    )


def item_tile(
    items: Known, item_id: int, caption: int, *, number: str = "", hover: Sequence[str] = ()
) -> Tile:
    """An item as it stands on a sheet.

    Args:
        items: frame of ``pictured``, or its columns by item.
        item_id, caption: which item, and which of its captions.
        number, hover: as for ``Tile``.
    """
    about = [text for text in (item_name(items, item_id), items["group"].get(item_id)) if text]
    return Tile(
        item_id=item_id,
        caption=caption_text(items, item_id, caption),
        thumbnail=items["thumbnail"].get(item_id) if "thumbnail" in items else None,
        number=number,
        hover=[" · ".join(about), *hover],
    )
