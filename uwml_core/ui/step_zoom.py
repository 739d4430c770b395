"""The steps that the charts of a run show: zooming into one zooms the others, drawn more finely there."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from uwml_core.analysis.decimation import SeriesView, steps_text
from uwml_core.analysis.training import series_view, zoomed_view
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.ui.kept import kept
from uwml_core.ui.text import element, note

STEPS = "steps"
_SHOWN, _SEEN, _MISSED = "_steps_shown", "_steps_in_address", "_steps_missed"
_HEARD = "_steps_heard"
_NUMBER = r"(-?\d{1,15}(?:\.\d{1,6})?)"
_RANGE = re.compile(rf"{_NUMBER}\.\.{_NUMBER}")


@dataclass(frozen=True, kw_only=True)
class StepZoom:
    """What the charts over steps show.

    Attributes:
        text: the range as the address holds it, such as ``400..900``; empty for all steps.
        heard: name of the visit, and how many zooms of its charts have been heard of: what was drawn before
            the newest was heard of must not undo it.
        choose: takes a range for the next time that the page is drawn.
    """

    text: str
    heard: tuple[str, int]
    choose: Callable[[str], None]

    def hear(self, text: str, count: int) -> None:
        """Take the range of a chart that was zoomed into; ``count`` zooms have been made so far."""
        st.session_state[_HEARD] = self.heard[0], count
        self.choose(text)

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


def within_steps(text: str, logged: pd.Series) -> str:
    """A range without what lies before the first and after the last logged step; empty if nothing is left.

    Example:
        >>> within_steps("400..900", pd.Series([0, 500])), within_steps("400..900", pd.Series([0, 300]))
        ('400..500', '')
    """
    within = parse_steps(text)
    if within is None or logged.empty:
        return text
    first, last = max(within[0], float(logged.iloc[0])), min(within[1], float(logged.iloc[-1]))
    if (first, last) == within:
        return text
    return f"{first:.15g}..{last:.15g}" if first < last else ""


def step_zoom(run: Run, steps: pd.DataFrame) -> StepZoom:
    """Take the range from the address or the last zoom, say which it is and offer to leave it.

    Args:
        run: the run.
        steps: its steps; what an address asks for beyond them is not shown.
    """
    state, asked = st.session_state, st.query_params.get(STEPS, "")
    run_id, text = state.get(_SHOWN, (run.run_id, ""))
    if asked and asked != state.get(_SEEN):
        known = asked if parse_steps(asked) else ""
        text = within_steps(known, steps["step"])
        state[_MISSED] = "" if text else known
    elif run_id != run.run_id:
        text = state[_MISSED] = ""

    def choose(wanted: str) -> None:
        state[_SHOWN], state[_MISSED] = (run.run_id, wanted if parse_steps(wanted) else ""), ""

    state[_SHOWN] = run.run_id, text
    _publish(text)
    found = StepZoom(text=text, heard=state.setdefault(_HEARD, (uuid.uuid4().hex, 0)), choose=choose)
    # always there: what comes and goes would mount the charts below it anew
    with st.container(key="step-zoom", gap=None):
        if found.within is not None:
            _say(found, found.within)
        elif missed := parse_steps(state.get(_MISSED, "")):
            text = _("This run has none of {steps}: all of its steps are shown.")
            note(text.format(steps=steps_text(missed)))
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
