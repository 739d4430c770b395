"""What the map shows of the points: colour, split, lines between pairs, search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from uwml_core.analysis.caption_search import items_saying
from uwml_core.analysis.map_classes import COLOR_BY
from uwml_core.analysis.map_points import describe_items
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.runlog.snapshots import Snapshot
from uwml_core.ui.choice import choice
from uwml_core.ui.map_read import texts_of
from uwml_core.ui.point_card import choose_item
from uwml_core.ui.text import note

WORST_PAIRS = 40
_MOST_LISTED = 50


@dataclass(frozen=True, kw_only=True)
class MapView:
    """What of the points is shown.

    Attributes:
        color_by: one of ``COLOR_BY``.
        split: the split shown, None for all.
        links: whether the worst pairs are joined by lines.
        found: items that the search found, ascending.
    """

    color_by: str
    split: str | None
    links: bool
    found: NDArray[np.int64]


def map_controls(run: Run, snapshot: Snapshot) -> MapView:
    """Draw the controls; the address carries them.

    Args:
        run: the chosen run.
        snapshot: whose points the map shows.
    """
    splits = sorted(set(snapshot.splits) - {""})
    left, right = st.columns(2, gap="small")
    with left:
        names = {
            "modality": _("Modality"), "group": _("Group"), "margin": _("Margin"), "rank": _("Rank"),
        }  # fmt: skip
        color_by = choice(_("Colour by"), "color", COLOR_BY, "modality", names.__getitem__)
    with right:
        split = choice(_("Points of"), "points", ["all", *splits], "all", _split_name)
    links = st.toggle(
        _("Join the {n} worst pairs").format(n=WORST_PAIRS), key="links", bind="query-params",
        help=_("Pairs of the lowest margin, the mean of both directions"),
    )  # fmt: skip
    found = _search(texts_of(run), np.unique(snapshot.item_ids))
    return MapView(color_by=color_by, split=None if split == "all" else split, links=links, found=found)


def _split_name(split: str) -> str:
    return _("All splits") if split == "all" else split


def _search(items: pd.DataFrame | None, on_map: NDArray[np.int64]) -> NDArray[np.int64]:
    text = st.text_input(
        _("Search captions"), key="find", type="search", bind="query-params", icon=":material/search:",
        placeholder=_("Search"),
        disabled=items is None,
        help=None if items is not None else _("No items were logged; log them with RunLogger.log_items"),
    )  # fmt: skip
    found = np.intersect1d(items_saying(items, text or ""), on_map)
    if not text:
        return found
    note(_("{n} of {total} items match").format(n=f"{len(found):,}", total=f"{len(on_map):,}"))
    if len(found):
        captions = dict(zip(found.tolist(), describe_items(found, items)["caption"], strict=True))
        st.selectbox(
            _("Show one"), found[:_MOST_LISTED].tolist(), index=None, format_func=lambda item: captions[item],
            key="found-item", on_change=_show_found, label_visibility="collapsed",
            placeholder=_("Show one of them"),
        )  # fmt: skip
    return found


def _show_found() -> None:
    item = st.session_state["found-item"]
    if item is not None:
        choose_item(item)
