"""The points that the visitor drew around: statistics, pictures, table; the area lives in the address."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from uwml_core.analysis.map_selection import (
    area_of,
    area_text,
    inside,
    parse_area,
    selected_groups,
    selection_statistics,
)
from uwml_core.analysis.text import fixed, modality_name, percent
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.runlog.snapshots import Snapshot
from uwml_core.ui.card import table_html, to_csv
from uwml_core.ui.gallery import Link, item_links
from uwml_core.ui.hard_read import pictured
from uwml_core.ui.map_told import strength_of
from uwml_core.ui.point_card import picture
from uwml_core.ui.sheet_clicks import follow_clicks
from uwml_core.ui.text import element, note, notes

AREA, AREA_AT = "area", "area_at"
_MOST_PICTURES, _MOST_GROUPS, _MOST_ROWS = 40, 4, 1_000


def area_step() -> int | None:
    """Step of the snapshot on whose map the address has an area; None without one."""
    text = st.query_params.get(AREA_AT, "")
    digits = text.removeprefix("-")
    fits = digits.isascii() and digits.isdecimal() and len(digits) < 16
    return int(text) if fits and st.query_params.get(AREA) else None


def choose_area(numbers: Sequence[float], step: int) -> None:
    """Put an area of a snapshot's map into the address, or, without corners, take it out."""
    area = area_of(numbers)
    if area is None:
        st.query_params.pop(AREA, None)
        st.query_params.pop(AREA_AT, None)
    else:
        st.query_params[AREA], st.query_params[AREA_AT] = area_text(area), str(step)


def selected_points(places: Callable[[int], pd.DataFrame]) -> pd.DataFrame | None:
    """Points inside the address's area, ``[item_id, modality]``; None where nothing is selected.

    They stay selected at other snapshots, wherever they went.

    Args:
        places: tells where the points of a snapshot lie, by its step.
    """
    area, step = parse_area(st.query_params.get(AREA, "")), area_step()
    if area is None or step is None:
        return None
    there = places(step)
    return there.loc[inside(there, area), ["item_id", "modality"]]


def selection_card(run: Run, snapshot: Snapshot, points: pd.DataFrame, selected: pd.DataFrame | None) -> None:
    """Draw what the selected points have in common, their pictures and their table.

    Args:
        run: the run.
        snapshot: the one that is shown.
        points: frame of ``map_points``.
        selected: rows of it; None where nothing is selected.
    """
    with st.container(border=True, key="card-selection", gap="xsmall"):
        if selected is None:
            st.html(element("h2", _("Selected points"), "uw-title"))
            note(_("Draw around points on the map, freely or with a box, to see what they have in common."))
            return
        told, compared = strength_of(run, snapshot.step, selected)
        _head(told)
        if selected.empty:
            note(_("No point of this map is in the selection."))
            return
        st.html(table_html(_statistics(told, snapshot.named(run.modalities))))
        notes(_sampled(told, compared), _groups(told, points))
        _pictures(run, told)
        st.dataframe(_table(told.head(_MOST_ROWS)), height=210, hide_index=True, key="selected-rows")
        if len(told) > _MOST_ROWS:
            text = _("The first {n} of {total} points; the CSV has all")
            note(text.format(n=f"{_MOST_ROWS:,}", total=f"{len(told):,}"))


def _head(told: pd.DataFrame) -> None:
    head = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    title = _("Selected points: {n}").format(n=f"{len(told):,}")
    head.html(element("h2", title, "uw-title"), width="content")
    buttons = head.container(horizontal=True, gap="small", width="content")
    buttons.download_button(
        "CSV", lambda: to_csv(told), file_name="selected.csv", mime="text/csv", key="csv-selected",
        type="tertiary", icon=":material/download:", on_click="ignore",
        help=_("Download the selected points"), disabled=told.empty,
    )  # fmt: skip
    buttons.button(
        _("Clear"), icon=":material/close:", type="tertiary", key="clear-selection",
        on_click=choose_area, args=((), 0),
    )  # fmt: skip


def _statistics(told: pd.DataFrame, modalities: tuple[str, str]) -> list[list[str]]:
    rows = [["", "n", _("Margin, mean ± sd"), "R@1, %"]]
    for row in selection_statistics(told, modalities).to_dict("records"):
        spread = "" if pd.isna(row["margin_sd"]) else f" ± {fixed(row['margin_sd'], 3)}"
        name = _("Both") if pd.isna(row["modality"]) else modality_name(str(row["modality"]))
        recall = percent(row["recall_at_1"], 1).removesuffix(" %")
        rows.append([name, f"{row['n']:,}", fixed(row["margin"], 3) + spread, recall])
    return rows


def _sampled(told: pd.DataFrame, compared: int) -> str:
    if compared >= len(told):
        return _("Margin and R@1 among the items of the snapshot")
    text = _("Margin and R@1 among the items of the snapshot, of {n} of {total} selected points")
    return text.format(n=f"{compared:,}", total=f"{len(told):,}")


def _groups(told: pd.DataFrame, points: pd.DataFrame) -> str:
    groups = selected_groups(told, points).head(_MOST_GROUPS)
    text = _("{group} {share} (of all {all})")
    parts = [
        text.format(group=row["group"], share=percent(row["share"]), all=percent(row["share_of_all"]))
        for row in groups.to_dict("records")
    ]
    return ", ".join(parts)


def _pictures(run: Run, told: pd.DataFrame) -> None:
    if not run.has("items"):
        return
    follow_clicks()
    items = told.drop_duplicates("item_id").head(_MOST_PICTURES)
    known = pictured(run, items["item_id"])
    link = item_links()
    picks = "".join(_pick(row, known, link) for row in items.to_dict("records"))
    css_class = "uw-sheet uw-picks clips" if "video" in run.modalities else "uw-sheet uw-picks"
    st.html(f'<div class="{css_class}">{picks}</div>')
    total = told["item_id"].nunique()
    if total > len(items):
        text = _("{n} of {total} items pictured")
        note(text.format(n=f"{len(items):,}", total=f"{total:,}"))


def _pick(row: dict[Any, Any], known: pd.DataFrame, link: Link) -> str:
    item = int(row["item_id"])
    thumbnail = known["thumbnail"].get(item)
    shown = picture(thumbnail, str(row["caption"]))
    title = element("span", str(row["caption"]), "uw-cut") if not isinstance(thumbnail, bytes) else ""
    address, caption = html.escape(link(item)), html.escape(str(row["caption"]))
    return f'<a href="{address}" target="_self" title="{caption}">{shown}{title}</a>'


def _table(told: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in ("weight", "kept_share") if name in told]
    frame = told[["item_id", "modality", "margin", "rank", *columns, "caption", "group"]]
    return frame.round(dict.fromkeys(("margin", *columns), 3) | {"rank": np.int64(1)})
