"""A Plotly chart that keeps zoom, hidden traces and selection while its data change.

``st.plotly_chart`` derives its identity from the figure, so new data mount a new chart; this component
keeps one chart per key and hands new figures to ``Plotly.react``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

_HTML = '<div class="uwml-plot"><p class="uwml-plot-problem" role="alert" hidden></p></div>'

_CSS = ".uwml-plot { width: 100%; } .uwml-plot-problem { margin: 0; font-size: 0.875rem; }"

_JS = (Path(__file__).parent / "live_plot.js").read_text(encoding="utf-8")

_component = st.components.v2.component("uwml_live_plot", html=_HTML, css=_CSS, js=_JS, isolate_styles=False)


def live_plot(figure: Any, *, key: str, title: str, height: int, revision: str, problem: str) -> None:
    """Draw a figure, or hand new data to the chart that this key already shows.

    Args:
        figure: a plotly Figure.
        key: identity of the chart on the page.
        title: what a screen reader says.
        height: pixels.
        revision: zoom, hidden traces and selection survive as long as this stays the same.
        problem: sentence shown where the chart library cannot be loaded.
    """
    figure.update_layout(height=height, autosize=True, uirevision=revision)
    data = {"figure": figure.to_json(), "height": height, "title": title, "problem": problem}
    _component(key=key, data=data, height=height)
