"""A chart with its title, its small print and the table it was drawn from."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.analysis.csv_text import csv_text
from uwml_core.i18n import _
from uwml_core.ui.frame import RUN
from uwml_core.ui.live_plot import live_plot
from uwml_core.ui.text import element, notes


def card(
    title: str,
    figure: Any,
    frame: pd.DataFrame,
    *captions: str | Callable[[], str],
    key: str,
    unit: str = "",
    height: int = 300,
    legend: str = "",
    **chart: Any,
) -> None:
    """Draw a chart card.

    Args:
        title: what the chart shows.
        figure: a plotly Figure.
        frame: exactly the table the figure was drawn from; offered as CSV.
        captions: small print such as n, "n of N points", what is not finite; empty ones are left out, and
            what takes long to say is called for it when the chart is drawn.
        key: identity on the page; zoom and hidden traces are kept per key and run.
        unit: unit of the values, said beside the title.
        height: height of the chart, pixels.
        legend: ready-made HTML between title and chart, such as what the colours mean.
        **chart: passed on to ``live_plot``, such as what a click does.
    """
    with st.container(border=True, key=f"card-{key}", gap="xsmall"):
        _title_row(title, frame, key, unit)
        if legend:
            st.html(legend)
        if len(frame):
            live_plot(
                figure,
                key=f"plot-{key}",
                title=title,
                height=height,
                revision=str(st.session_state.get(RUN)),
                problem=_("The chart library could not be loaded; reload the page."),
                **chart,
            )
        else:
            notes(_("Nothing logged for this chart yet."))
        notes(*(text if isinstance(text, str) else text() for text in captions))


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
        f'<div class="uw-number">{element("p", label, "uw-muted")}'
        f"<div>{html.escape(value)} {element('small', small, 'uw-muted')}</div></div>"
        for label, value, small in numbers
    ]
    st.html(f'<div class="uw-numbers">{"".join(cells)}</div>')


def to_csv(frame: pd.DataFrame) -> bytes:
    """The frame as UTF-8 CSV, see ``csv_text``."""
    return csv_text(frame).encode()


def _title_row(title: str, frame: pd.DataFrame, key: str, unit: str = "") -> None:
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    small = element("small", unit, "uw-muted") if unit else ""
    row.html(f'<h2 class="uw-title">{html.escape(title)}{small}</h2>', width="content")
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
