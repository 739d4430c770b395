"""The chosen item: its picture and captions, and what it is nearest to across the gap."""

from __future__ import annotations

import base64
import html
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.analysis.map_points import first_caption
from uwml_core.analysis.text import fixed, modality_name
from uwml_core.i18n import _, ngettext
from uwml_core.runlog.reader import Run
from uwml_core.ui.hard_read import pictured
from uwml_core.ui.text import element, note, section

ITEM = "item"
HISTORY_PAGE = "pages/explain/hard_negatives.py"


def chosen_item() -> int | None:
    """Item that the address names; None without one."""
    asked = st.query_params.get(ITEM, "")
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else None


def choose_item(item_id: int | None) -> None:
    """Name an item in the address, or none."""
    if item_id is None:
        st.query_params.pop(ITEM, None)
    else:
        st.query_params[ITEM] = str(item_id)


def point_card(run: Run, item_id: int | None, neighbors: pd.DataFrame, strength: pd.DataFrame) -> None:
    """Draw the card of the chosen item.

    Args:
        run: the chosen run.
        item_id: the item; None draws what to do.
        neighbors: frame of ``neighbors_across`` for the item.
        strength: ``[modality, margin, rank]`` of its points.
    """
    with st.container(border=True, key="card-point", gap="xsmall"):
        if item_id is None:
            section(_("Chosen item"))
            note(_("Click a point to see its picture, its captions and its true neighbors."))
            return
        head = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
        head.html(element("h2", _("Item {item}").format(item=item_id), "uw-title"), width="content")
        head.button(
            _("Clear"),
            icon=":material/close:",
            type="tertiary",
            key="clear-item",
            on_click=choose_item,
            args=(None,),
        )
        if neighbors.empty:
            note(_("Item {item} has no point in this snapshot.").format(item=item_id))
            return
        shown = [item_id, *neighbors["item_id"]]
        known = pictured(run, shown) if run.has("items") else None
        css_class = "uw-clips" if "video" in run.modalities else "uw-pictures"
        body = _item(item_id, strength, known) + _neighbors(neighbors, known)
        st.html(f'<div class="{css_class}">{body}</div>')
        st.page_link(
            HISTORY_PAGE,
            label=_("Its hardest negatives over the epochs"),
            icon=":material/arrow_forward:",
            query_params={"run": run.run_id, ITEM: str(item_id)},
        )
        if known is None:
            note(_("No items were logged, so there are no pictures; log them with RunLogger.log_items."))


def _item(item_id: int, strength: pd.DataFrame, known: pd.DataFrame | None) -> str:
    row = _row(item_id, known)
    captions = row.get("captions")
    texts = [] if captions is None else [str(text) for text in captions]
    lines = [f'<p class="uw-caption" dir="auto">{html.escape(text)}</p>' for text in texts[:3]]
    if more := max(0, len(texts) - 3):
        text = ngettext("and {n} more caption", "and {n} more captions", more).format(n=more)
        lines.append(element("p", text, "uw-note"))
    facts = [str(row[name]) for name in ("group", "split") if isinstance(row.get(name), str) and row[name]]
    lines.append(element("p", " · ".join(facts), "uw-note"))
    for point in strength.to_dict("records"):
        text = _("{modality}: margin {margin}, rank {rank}").format(
            modality=modality_name(point["modality"]),
            margin=fixed(point["margin"], 3),
            rank=_rank(point["rank"]),
        )
        lines.append(element("p", text, "uw-note"))
    shown = picture(row.get("thumbnail"), texts[0] if texts else "") if row else ""
    return f'<div class="uw-item">{shown}<div>{"".join(lines)}</div></div>'


def _neighbors(neighbors: pd.DataFrame, known: pd.DataFrame | None) -> str:
    parts = []
    for query, rows in neighbors.groupby("query_modality", sort=False):
        other, n = modality_name(str(rows["modality"].iloc[0])), int(rows["n"].iloc[0])
        title = _("Nearest {other} to its {query}, of {n}").format(
            other=other, query=modality_name(str(query)), n=f"{n:,}"
        )
        cells = "".join(_neighbor(row, known) for _index, row in rows.iterrows())
        parts.append(element("h3", title, "uw-near-title") + f'<ol class="uw-near">{cells}</ol>')
    return "".join(parts)


def _neighbor(row: pd.Series, known: pd.DataFrame | None) -> str:
    item = _row(int(row["item_id"]), known)
    caption = first_caption(item.get("captions")) or _("item {item}").format(item=row["item_id"])
    mark = "right" if row["is_positive"] else ""
    place = f"{row['place']:,}. "
    cosine = element("span", fixed(row["similarity"], 3), "uw-cosine")
    what = _("its own") if row["is_own"] else _("same label") if row["is_positive"] else ""
    label = element("span", what, "uw-own") if what else ""
    text = f'<span class="uw-cut">{place}<bdi>{html.escape(caption)}</bdi></span>'
    shown = picture(item.get("thumbnail"), "") if item else ""
    return f'<li class="{mark}">{shown}{text}{label}{cosine}</li>'


def _rank(rank: float) -> str:
    return fixed(rank, 0 if float(rank).is_integer() else 1)


def _row(item_id: int, known: pd.DataFrame | None) -> dict[str, Any]:
    if known is None or item_id not in known.index:
        return {}
    return {str(name): value for name, value in known.loc[item_id].items()}


def picture(thumbnail: object, text: str) -> str:
    """An image element of a logged thumbnail, an empty frame where there is none.

    Args:
        thumbnail: WebP bytes or nothing.
        text: what a screen reader says.
    """
    if not isinstance(thumbnail, bytes) or not thumbnail:
        return '<span class="uw-thumb"></span>'
    data = base64.b64encode(thumbnail).decode()
    return f'<img class="uw-thumb" alt="{html.escape(text)}" src="data:image/webp;base64,{data}">'
