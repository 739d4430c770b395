"""A chart with its title, its small print and the table it was drawn from."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui.frame import RUN
from uwml_core.ui.live_plot import live_plot
from uwml_core.ui.text import element, notes


def card(title: str, figure: Any, frame: pd.DataFrame, *captions: str, key: str, height: int = 300) -> None:
    """Draw a chart card.

    Args:
        title: what the chart shows.
        figure: a plotly Figure.
        frame: exactly the table the figure was drawn from; offered as CSV.
        captions: small print such as n, "n of N points", what is not finite; empty ones are left out.
        key: identity on the page; zoom and hidden traces are kept per key and run.
        height: height of the chart, pixels.
    """
    with st.container(border=True, key=f"card-{key}", gap="xsmall"):
        _title_row(title, frame, key)
        if len(frame):
            live_plot(
                figure,
                key=f"plot-{key}",
                title=title,
                height=height,
                revision=str(st.session_state.get(RUN)),
                problem=_("The chart library could not be loaded; reload the page."),
            )
        else:
            notes(_("Nothing logged for this chart yet."))
        notes(*captions)


def table_card(
    title: str, frame: pd.DataFrame, rows: Sequence[Sequence[str]], *captions: str, key: str
) -> None:
    """Draw a small table of ready-made texts, the first row being the heading.

    Args:
        title: what the table shows.
        frame: the numbers behind the texts; offered as CSV.
        rows: texts, row by row.
        captions: small print; empty ones are left out.
        key: identity on the page.
    """
    with st.container(border=True, key=f"card-{key}", gap="xsmall"):
        _title_row(title, frame, key)
        st.html(table_html(rows))
        notes(*captions)


def table_html(rows: Sequence[Sequence[str]]) -> str:
    """An HTML table of escaped texts, the first row being the heading.

    Example:
        >>> table_html([["a"], ["<b>"]])
        '<table class="uw-table"><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    lines = []
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        lines.append("<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in row) + "</tr>")
    return f'<table class="uw-table">{"".join(lines)}</table>'


def key_numbers(*numbers: tuple[str, str, str]) -> None:
    """Draw a row of (label, value, small print)."""
    cells = [
        f'<dl class="uw-number" style="margin:0">{element("dt", label, "uw-muted")}'
        f"<dd>{html.escape(value)} {element('small', small, 'uw-muted')}</dd></dl>"
        for label, value, small in numbers
    ]
    st.html(f'<div class="uw-numbers">{"".join(cells)}</div>')


def to_csv(frame: pd.DataFrame) -> bytes:
    """The frame as UTF-8 CSV, one line per row, no index; missing numbers are empty, infinite ones inf."""
    return frame.to_csv(index=False).encode()


def _title_row(title: str, frame: pd.DataFrame, key: str) -> None:
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    row.html(element("h2", title, "uw-title"), width="content")
    row.download_button(
        "CSV",
        lambda: to_csv(frame),
        file_name=f"{key}.csv",
        mime="text/csv",
        key=f"csv-{key}",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help=_("Download the table behind this chart"),
        disabled=frame.empty,
    )
