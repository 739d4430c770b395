"""A table card that hands out CSV, LaTeX and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from uwml_core.analysis.compare.export import to_latex, to_markdown
from uwml_core.i18n import _
from uwml_core.ui.card import table_html, to_csv
from uwml_core.ui.text import element, notes


def export_card(
    title: str, frame: pd.DataFrame, rows: Sequence[Sequence[str]], *captions: str, key: str
) -> None:
    """Draw a table of ready-made texts with its downloads.

    Args:
        title: what the table shows.
        frame: the numbers behind the texts; what CSV holds.
        rows: texts, the first row being the heading; what LaTeX and Markdown hold.
        captions: small print; empty ones are left out.
        key: identity on the page and name of the files.
    """
    with st.container(border=True, key=f"card-{key}", gap="xsmall"):
        row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
        row.html(element("h2", title, "uw-title"), width="content")
        buttons = row.container(horizontal=True, gap="small", width="content")
        with buttons:
            _download("CSV", lambda: to_csv(frame), f"{key}.csv", "text/csv")
            _download("LaTeX", lambda: to_latex(rows).encode(), f"{key}.tex", "text/x-tex")
            _download("Markdown", lambda: to_markdown(rows).encode(), f"{key}.md", "text/markdown")
        st.html(f'<div class="uw-wide" tabindex="0">{table_html(rows)}</div>')
        notes(*captions)


def _download(kind: str, make: Callable[[], bytes], name: str, mime: str) -> None:
    about = _("Download this table as {kind}").format(kind=kind)
    st.download_button(
        kind, make, file_name=name, mime=mime, key=f"download-{name}", type="tertiary",
        icon=":material/download:", on_click="ignore", help=about,
    )  # fmt: skip
