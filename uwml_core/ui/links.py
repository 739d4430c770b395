"""Links from the chosen run to the pages that show it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui.frame import chosen_run
from uwml_core.ui.text import element


def run_links(pages: Mapping[str, str]) -> None:
    """Draw the chosen run's name and a link per page.

    Args:
        pages: path of the page's script to the page's name.
    """
    run = chosen_run()
    if run is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(element("span", _("Chosen run: {name}").format(name=run.name), "uw-title"), width="content")
        for path, name in pages.items():
            st.page_link(path, label=name, icon=":material/arrow_forward:", query_params={"run": run.run_id})
