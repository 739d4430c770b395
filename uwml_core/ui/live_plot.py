"""A Plotly chart that keeps zoom, hidden traces and selection while its data change.

``st.plotly_chart`` derives its identity from the figure, so new data mount a new chart; this component
keeps one chart per key and hands new figures to ``Plotly.react``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui.step_zoom import StepZoom

_HTML = '<div class="uwml-plot"><p class="uwml-plot-problem" role="alert" hidden></p></div>'

_CSS = ".uwml-plot { width: 100%; } .uwml-plot-problem { margin: 0; font-size: 0.875rem; }"

_JS = (Path(__file__).parent / "live_plot.js").read_text(encoding="utf-8")

_component = st.components.v2.component("uwml_live_plot", html=_HTML, css=_CSS, js=_JS, isolate_styles=False)


def live_plot(
    figure: Any,
    *,
    key: str,
    title: str,
    height: int,
    revision: str,
    problem: str,
    on_click: Callable[[list[float]], None] | None = None,
    glide_ms: int = 0,
    overlay: str = "",
    zoom: StepZoom | None = None,
) -> None:
    """Draw a figure, or hand new data to the chart that this key already shows.

    Args:
        figure: a plotly Figure.
        key: identity of the chart on the page.
        title: what a screen reader says.
        height: pixels.
        revision: zoom, hidden traces and selection survive as long as this stays the same.
        problem: sentence shown where the chart library cannot be loaded.
        on_click: called with the numbers of a clicked point's ``customdata``; no chart listens without it.
        glide_ms: traces whose ``meta`` is ``glide`` move to their new places in that time, as long as they
            keep their number of points; not where the visitor asked for less motion.
        overlay: name of a ``map_overlay`` that draws over the figure and hears of its clicks and selections.
        zoom: steps that the horizontal axis shows, which zooming then chooses; None where it has no steps.
    """
    how: dict[str, Any] = {"height": height, "revision": revision, "title": title, "problem": problem}
    how |= {"clickable": on_click is not None, "glide_ms": glide_ms, "overlay": overlay}
    how |= {"whole": _("Show all steps")}
    how |= {"steps": None, "zooms": None} if zoom is None else {"steps": zoom.text, "zooms": zoom.heard}

    def clicked() -> None:
        point = st.session_state[key].get("clicked")
        if on_click is not None and point:
            on_click([float(number) for number in point])

    def zoomed() -> None:
        told = st.session_state[key].get("zoomed")
        if zoom is not None and told:
            zoom.hear(str(told["steps"]), int(told["count"]))

    listening: dict[str, Any] = {} if on_click is None else {"on_clicked_change": clicked}
    listening |= {} if zoom is None else {"on_zoomed_change": zoomed}
    # the figure itself stays as it is: it may be kept and shared
    data = f"{json.dumps(how)}\n{figure.to_json(validate=False)}"
    # not a dictionary, of which Streamlit would write down all text twice more
    _component(key=key, data=data.encode(), height=height, **listening)
