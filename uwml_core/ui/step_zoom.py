"""The steps that the charts of a run show: zooming into one zooms the others, drawn more finely there."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from uwml_core.analysis.decimation import SeriesView, steps_text
from uwml_core.analysis.training import series_view, zoomed_view
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.ui.kept import kept
from uwml_core.ui.text import element

STEPS = "steps"
_SHOWN, _SEEN = "_steps_shown", "_steps_in_address"
_NUMBER = r"(-?\d{1,15}(?:\.\d{1,6})?)"
_RANGE = re.compile(rf"{_NUMBER}\.\.{_NUMBER}")


@dataclass(frozen=True, kw_only=True)
class StepZoom:
    """What the charts over steps show.

    Attributes:
        text: the range as the address holds it, such as ``400..900``; empty for all steps.
        choose: takes such a text for the next time that the page is drawn.
    """

    text: str
    choose: Callable[[str], None]

    @property
    def within(self) -> tuple[float, float] | None:
        """First and last step of the range; None for all steps."""
        return parse_steps(self.text)


def parse_steps(text: str) -> tuple[float, float] | None:
    """First and last step of a range, None where the text names none.

    Example:
        >>> parse_steps("400..900.5"), parse_steps("900..400"), parse_steps("all")
        ((400.0, 900.5), None, None)
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    first, last = map(float, found.groups())
    return (first, last) if math.isfinite(last - first) and first < last else None


def step_zoom(run: Run) -> StepZoom:
    """Take the range from the address or the last zoom, say which it is and offer to leave it."""
    state, asked = st.session_state, st.query_params.get(STEPS, "")
    run_id, text = state.get(_SHOWN, (run.run_id, ""))
    if asked and asked != state.get(_SEEN):
        text = asked if parse_steps(asked) else ""
    elif run_id != run.run_id:
        text = ""

    def choose(wanted: str) -> None:
        state[_SHOWN] = run.run_id, wanted if parse_steps(wanted) else ""

    choose(text)
    _publish(text)
    found = StepZoom(text=text, choose=choose)
    # always there: what comes and goes would mount the charts below it anew
    with st.container(key="step-zoom", gap=None):
        if found.within is not None:
            _say(found, found.within)
    return found


def _publish(text: str) -> None:
    st.session_state[_SEEN] = text
    if text and st.query_params.get(STEPS) != text:
        st.query_params[STEPS] = text
    elif not text and STEPS in st.query_params:
        del st.query_params[STEPS]


def _say(zoom: StepZoom, within: tuple[float, float]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        text = _("Zoomed into {steps}").format(steps=steps_text(within))
        st.html(element("p", text, "uw-note"), width="content")
        st.button(
            _("Show all steps"), key="all-steps", type="tertiary", icon=":material/zoom_out_map:",
            on_click=zoom.choose, args=("",),
        )  # fmt: skip


def step_series(
    run: Run, steps: pd.DataFrame, quantity: str, zoom: StepZoom, *, smooth: bool = False
) -> SeriesView:
    """A quantity over steps as its chart draws it, finely within the range.

    Args:
        run: the run.
        steps: its steps.
        quantity: as for ``series_view``.
        zoom: the range.
        smooth: take its rolling mean.
    """
    key: tuple[Hashable, ...] = (quantity, smooth)
    whole = kept(run, key, series_view, steps, run.directions, quantity, smooth=smooth)
    if zoom.within is None:
        return whole
    return kept(
        run,
        (*key, zoom.text),
        zoomed_view,
        steps,
        run.directions,
        quantity,
        whole,
        zoom.within,
        smooth=smooth,
    )
