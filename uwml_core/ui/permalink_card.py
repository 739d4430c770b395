"""Addresses of the views that a visitor has had, to be copied."""

from __future__ import annotations

import streamlit as st

from uwml_core.i18n import _
from uwml_core.report.build import page_titles
from uwml_core.runlog.reader import Run
from uwml_core.ui.text import element, note, section
from uwml_core.ui.views import address, views


def permalink_card(run: Run) -> None:
    """Draw the address of each page as it was seen last, with a button that copies it."""
    titles = {**page_titles(), "compare": _("Compare")}
    seen = {page: view for page, view in views().items() if page in titles} or {"training": {}}
    with st.container(border=True, key="card-permalink", gap="small"):
        section(_("Permalinks"))
        note(
            _(
                "The address holds every choice: who opens it sees this run with the same filters, sliders "
                "and epoch, in their own language. They need to reach this app; a report needs nothing."
            )
        )
        for page, view in seen.items():
            st.html(element("p", titles[page], "uw-note"))
            st.code(address(page, run.run_id, view), language=None, wrap_lines=True)
