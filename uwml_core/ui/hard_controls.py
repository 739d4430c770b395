"""Controls of the sheet, all of them in the address: direction, epoch, margin band, group, order, text."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from uwml_core.analysis.bands import BAND_NAMES, band_label
from uwml_core.analysis.hard_negatives.browse import SheetFilter, order_label
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.ui.choice import choice
from uwml_core.ui.epochs import epoch_choice
from uwml_core.ui.hard_questions import ORDERS_OF, UP_TO_THE_EPOCH
from uwml_core.ui.hard_read import epochs_of, groups

# No group is called so: names that are chosen from are never blank.
ALL = " "


def sheet_controls(run: Run, question: str) -> tuple[SheetFilter, int | None, str]:
    """Draw what narrows the sheet down and how it is ordered.

    Args:
        run: the run.
        question: one of ``QUESTIONS``; the order is remembered for each.

    Returns:
        The filter, the epoch (None for all) and the order.
    """
    row = st.container(horizontal=True, gap="small", vertical_alignment="bottom")
    with row.container(width=120):
        direction = _choice(_("Direction"), "direction", {name: name for name in run.directions})
    with row.container(width=150):
        epoch = epoch_choice(epochs_of(run), until=question in UP_TO_THE_EPOCH)
    with row.container(width=150):
        band = _choice(_("Margin"), "band", {name: band_label(name) for name in BAND_NAMES})
    with row.container(width=180):
        group = _choice(_("Group"), "group", {name: name for name in groups(run)})
    with row.container(width=200):
        orders = ORDERS_OF[question]
        order = choice(_("Order"), f"sort-{question}", orders, orders[0], order_label)
    text = row.text_input(
        _("Search captions"), key="find", type="search", bind="query-params", icon=":material/search:",
            placeholder=_("Search"),
        disabled=not run.has("items"), width=220,
        help=None if run.has("items") else _("No items were logged; log them with RunLogger.log_items"),
    )  # fmt: skip
    return SheetFilter(direction=direction, band=band, group=group, text=text or ""), epoch, order


def _choice(label: str, key: str, names: Mapping[str, str]) -> str | None:
    every = {ALL: _("All"), **names}
    chosen = choice(label, key, list(every), ALL, every.__getitem__)
    return None if chosen == ALL else chosen
