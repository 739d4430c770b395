"""The part of the map page that answers clicks: search, lines, the chosen item, the selected points.

A fragment of its own: what it draws over the map is sent without the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from uwml_core.analysis.caption_search import items_saying
from uwml_core.analysis.map_points import describe_items, pair_lines, worst_pairs
from uwml_core.analysis.map_selection import keep_selected
from uwml_core.analysis.map_trails import trails
from uwml_core.figures.map_colors import class_colors
from uwml_core.figures.map_overlay import map_overlay as overlay_figure
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _, ngettext
from uwml_core.runlog.reader import Run
from uwml_core.runlog.snapshots import Snapshot
from uwml_core.ui.choice import choice
from uwml_core.ui.frame import apply_language
from uwml_core.ui.later import await_later
from uwml_core.ui.layout_choice import MapLayout
from uwml_core.ui.map_card import OVERLAY
from uwml_core.ui.map_controls import ColoredPoints, MapView
from uwml_core.ui.map_overlay import map_overlay
from uwml_core.ui.map_texts import texts_of
from uwml_core.ui.map_told import item_told, pair_strengths, phases_of
from uwml_core.ui.point_card import choose_item, chosen_item, point_card
from uwml_core.ui.selection_card import choose_area, selected_points, selection_card
from uwml_core.ui.text import note
from uwml_core.ui.views import remember_view

WORST_PAIRS = 40
# More lines than these cannot be followed by eye.
MOST_LINKS, MOST_TRAILS = 200, 20
_MOST_LISTED = 50


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """What is read.

    Attributes:
        run, snapshot, layout: what the map shows.
        shown: its points.
        view: how they are coloured.
        modalities: names of both.
        theme: colours.
    """

    run: Run
    snapshot: Snapshot
    layout: MapLayout
    shown: ColoredPoints
    view: MapView
    modalities: tuple[str, str]
    theme: Theme


def map_reading(reading: Reading) -> None:
    """Draw the controls of what lies over the map, the chosen item, and the selected points."""

    @st.fragment
    def body() -> None:
        apply_language()
        _draw(reading)
        remember_view()
        await_later()

    body()


def _draw(reading: Reading) -> None:
    run, points, item = reading.run, reading.shown.points, chosen_item()
    area_rows = selected_points(reading.layout.at)
    selected = None if area_rows is None else keep_selected(points, area_rows)
    with st.container(border=True, key="card-find", gap="small"):
        found = _search(run, points["item_id"])
        links = _links(reading, item, selected)
        paths = _trails(reading, item, selected)
    by = "phase" if reading.view.color_by == "phase" else "modality"
    names = list(dict.fromkeys(phases_of(run)["phase"])) if by == "phase" else list(reading.modalities)
    figure = overlay_figure(
        reading.theme,
        links=links,
        found=points[points["item_id"].isin(found)] if len(found) else None,
        chosen=None if item is None else points[points["item_id"] == item],
        trails=paths,
        trail_by=by,
        trail_colors=dict(zip(names, class_colors(by, len(names), reading.theme), strict=True)),
    )
    point_card(run, item, *item_told(run, reading.snapshot.step, item))
    selection_card(run, reading.snapshot, points, selected)
    map_overlay(
        OVERLAY,
        figure,
        selected=None
        if selected is None or selected.empty
        else _places(points, selected, reading.modalities),
        quiet=len(found) > 0 and selected is None,
        on_click=lambda numbers: choose_item(int(numbers[0])),
        on_select=lambda numbers: choose_area(numbers, reading.snapshot.step),
    )


def _places(
    points: pd.DataFrame, selected: pd.DataFrame | None, modalities: tuple[str, str]
) -> list[NDArray[np.int64]] | None:
    """Positions of the selected points in the map's traces, which are the modalities that have points."""
    if selected is None or selected.empty:
        return None
    chosen = points.index.isin(selected.index)
    of_traces = [chosen[(points["modality"] == name).to_numpy()] for name in modalities]
    return [np.flatnonzero(rows) for rows in of_traces if len(rows)]


def _search(run: Run, of_points: pd.Series) -> NDArray[np.int64]:
    text = st.text_input(
        _("Search captions"), key="find", type="search", bind="query-params", icon=":material/search:",
        placeholder=_("Search"),
        disabled=not run.has("items"),
        help=None if run.has("items") else _("No items were logged; log them with RunLogger.log_items"),
    )  # fmt: skip
    if not text:
        return np.empty(0, np.int64)
    on_map = np.unique(of_points.to_numpy(np.int64))
    items = texts_of(run, on_map)
    found = items_saying(items, text)
    text = ngettext("{n} of {total} item matches", "{n} of {total} items match", len(on_map))
    note(text.format(n=f"{len(found):,}", total=f"{len(on_map):,}"))
    if len(found):
        listed = found[:_MOST_LISTED]
        captions = dict(zip(listed.tolist(), describe_items(listed, items)["caption"], strict=True))
        st.selectbox(
            _("Show one"), list(captions), index=None, format_func=lambda item: captions[item],
            key="found-item", on_change=_show_found, label_visibility="collapsed",
            placeholder=_("Show one of them"),
        )  # fmt: skip
    return found


def _show_found() -> None:
    item = st.session_state["found-item"]
    if item is not None:
        choose_item(item)


def _links(reading: Reading, item: int | None, selected: pd.DataFrame | None) -> pd.DataFrame | None:
    names = {
        "chosen": _("Of the chosen item"),
        "selection": _("Of the selected points"),
        "worst": _("The {n} of lowest margin").format(n=WORST_PAIRS),
    }
    asked = choice(_("Join pairs"), "links", list(names), "chosen", names.__getitem__)
    points, modalities = reading.shown.points, reading.modalities
    if asked == "selection":
        return _of_selection(points, selected, modalities)
    if asked == "worst":
        return _worst(reading)
    return None if item is None else pair_lines(points, modalities, [item])


def _of_selection(
    points: pd.DataFrame, selected: pd.DataFrame | None, modalities: tuple[str, str]
) -> pd.DataFrame | None:
    if selected is None:
        note(_("No points are selected; draw around some on the map."))
        return None
    items = np.unique(selected["item_id"].to_numpy(np.int64))
    if len(items) > MOST_LINKS:
        text = _("{n} of {total} pairs are joined")
        note(text.format(n=f"{MOST_LINKS:,}", total=f"{len(items):,}"))
    return pair_lines(points, modalities, items[:MOST_LINKS].tolist())


def _worst(reading: Reading) -> pd.DataFrame | None:
    points = reading.shown.points
    if points["margin"].isna().all():
        strength = pair_strengths(reading.run, reading.snapshot.step, wanted=True)
        if strength is None:
            note(_("Margins and ranks are being computed."))
            return None
        st.rerun(scope="app")
    return worst_pairs(points, reading.modalities, WORST_PAIRS)


def _trails(reading: Reading, item: int | None, selected: pd.DataFrame | None) -> pd.DataFrame | None:
    asked = st.toggle(
        _("Trails"), key="trails", bind="query-params",
        help=_("The way of the chosen item, and of the first {n} selected ones, up to this snapshot").format(
            n=MOST_TRAILS
        ),
    )  # fmt: skip
    items: Sequence[int] = [] if item is None else [item]
    if selected is not None:
        items = list(dict.fromkeys([*items, *selected["item_id"]]))[:MOST_TRAILS]
    if not asked:
        return None
    if not items:
        note(_("Choose an item or select points to see their way."))
        return None
    step, phases = reading.snapshot.step, phases_of(reading.run)
    frame = reading.layout.until(step)
    n = int(frame["step"].nunique())
    text = ngettext("{items} items over {n} snapshot", "{items} items over {n} snapshots", n)
    note(text.format(items=f"{len(items):,}", n=f"{n:,}"))
    return trails(frame, items, step, phases)
