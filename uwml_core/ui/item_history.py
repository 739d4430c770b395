"""One item: what it is, and what it was confused with from epoch to epoch."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from uwml_core.analysis.hard_negatives.catalogue import item_name
from uwml_core.analysis.hard_negatives.history import MOST_PLACES
from uwml_core.analysis.text import fixed, modality_name
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.ui.gallery import Tile, item_links, rows_html
from uwml_core.ui.hard_sheet import item_tile
from uwml_core.ui.point_card import choose_item, picture
from uwml_core.ui.text import element, notes

MOST_EPOCHS = 12
MAP_PAGE = "pages/explain/embedding_map.py"


def item_card(run: Run, item_id: int, items: pd.DataFrame) -> None:
    """Draw an item's picture and captions, and where to go from here.

    Args:
        run: the run.
        item_id: the item.
        items: frame of ``pictured`` that has the item, of ``catalogue`` where no item is known by its number.
    """
    with st.container(border=True, key="card-item", gap="xsmall"):
        row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
        row.html(element("h2", item_name(items, item_id), "uw-title"), width="content")
        row.button(
            _("Back to the sheet"),
            key="back-to-sheet",
            icon=":material/arrow_back:",
            type="tertiary",
            on_click=choose_item,
            args=(None,),
        )
        if item_id in items.index:
            st.html(_about(dict(items.loc[item_id]), clip="video" in run.modalities))
        elif items.empty:
            notes(_("No items were logged, so there are no pictures; log them with RunLogger.log_items."))
        else:
            notes(_("The items that were logged hold none of this number."))
        if run.has("snapshots"):
            st.page_link(
                MAP_PAGE,
                label=_("Show on the embedding map"),
                icon=":material/bubble_chart:",
                query_params={"run": run.run_id, "item": str(item_id)},
            )


def _about(row: dict[str, Any], *, clip: bool) -> str:
    captions = "".join(
        f'<p class="uw-caption" dir="auto">{html.escape(" ".join(text.split()))}</p>'
        for text in row["captions"]
    )
    facts = [str(row[name]) for name in ("group", "split") if isinstance(row[name], str) and row[name]]
    small = element("p", " · ".join(facts), "uw-note")
    shown = picture(row["thumbnail"], row["captions"][0] if row["captions"] else "")
    return f'<div class="uw-about{" clip" if clip else ""}">{shown}<div>{captions}{small}</div></div>'


def candidates_card(run: Run, found: pd.DataFrame, items: pd.DataFrame, direction: str) -> None:
    """Draw what an item was confused with, a row per epoch, the newest first.

    Args:
        run: the run.
        found: frame of ``candidates``.
        items: frame of ``pictured``.
        direction: which direction to draw.
    """
    with st.container(border=True, key=f"card-candidates-{direction}", gap="xsmall"):
        asks, answers = run.modalities if direction == run.directions[0] else run.modalities[::-1]
        title = _("Nearest wrong {answers} to its {asks}").format(
            answers=modality_name(answers), asks=modality_name(asks)
        )
        small = element("small", direction, "uw-muted")
        st.html(f'<h2 class="uw-title">{html.escape(title)} {small}</h2>')
        rows = found[found["direction"] == direction]
        epochs = rows["epoch"].unique()
        if not len(epochs):
            notes(_("Nothing logged for this direction yet."))
            return
        at = np.unique(np.linspace(0, len(epochs) - 1, min(len(epochs), MOST_EPOCHS)).round().astype(int))
        lines = _lines(rows[rows["epoch"].isin(epochs[at])], items)
        clips = "video" in run.modalities
        st.html(rows_html(lines, item_links(), least=MOST_PLACES, words=answers == "text", clips=clips))
        shown = _("{shown} of {total} epochs, evenly spread").format(shown=len(at), total=len(epochs))
        notes(_("Margin below each picture"), shown if len(at) < len(epochs) else "")


def _lines(rows: pd.DataFrame, items: pd.DataFrame) -> list[tuple[str, list[Tile]]]:
    """A line per epoch; where each epoch has one candidate, a line for several epochs."""
    if rows["place"].max() > 1:
        parts = [part for _number, part in rows.groupby("epoch", sort=False)]
    else:
        parts = [rows.iloc[start : start + MOST_PLACES] for start in range(0, len(rows), MOST_PLACES)]
    return [(_heading(part["epoch"]), _tiles(part, items)) for part in parts]


def _heading(epochs: pd.Series) -> str:
    newest, oldest = int(epochs.iloc[0]), int(epochs.iloc[-1])
    if newest != oldest:
        return _("epochs {first} to {last}").format(first=newest, last=oldest)
    return _("before training") if newest < 0 else _("epoch {epoch}").format(epoch=newest)


def _tiles(rows: pd.DataFrame, items: pd.DataFrame) -> list[Tile]:
    return [
        item_tile(items, row["negative_item_id"], row["negative_caption"], number=fixed(row["margin"], 2))
        for row in rows.to_dict("records")
    ]
