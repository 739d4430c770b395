"""Choose a snapshot, or play them one after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from uwml_core.analysis.map_headline import epoch_name
from uwml_core.i18n import _
from uwml_core.ui.choice import adopt, publish
from uwml_core.ui.text import note

MOMENT = "moment"
PLAY_S = 1.2
_PLAYING, _SINCE, _NEWEST = "_playing", "_playing_since", "_newest_moment"


def play_interval() -> float | None:
    """Seconds between two snapshots while they are played, else None; for ``follow``."""
    return PLAY_S if st.session_state.get(_PLAYING) else None


def moment_player(moments: Sequence[tuple[int, int | None]]) -> int:
    """Draw a slider over snapshots and a button that plays them; the address carries the chosen step.

    Who looks at the newest one goes on looking at the newest when the run grows.

    Args:
        moments: step and epoch of each snapshot, at least one.

    Returns:
        The chosen step.
    """
    names = {str(step): epoch_name(step, epoch) for step, epoch in moments}
    options = list(names)
    if st.session_state.get(MOMENT) == st.session_state.get(_NEWEST):
        st.session_state.pop(MOMENT, None)
    st.session_state[_NEWEST] = options[-1]
    adopt(MOMENT, options, options[-1])
    _advance(options)
    if len(options) == 1:
        note(_("One snapshot, {moment}; a second one shows what moves.").format(moment=names[options[0]]))
        return int(options[0])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        _button(options)
        st.select_slider(_("Snapshot"), options, format_func=names.__getitem__, key=MOMENT, on_change=_stop)
    return int(publish(MOMENT, options[-1]))


def _button(options: Sequence[str]) -> None:
    playing = bool(st.session_state.get(_PLAYING))
    icon = ":material/pause:" if playing else ":material/play_arrow:"
    text = _("Pause") if playing else _("Play")
    if st.button(text, icon=icon, key="play-moments", width=96):
        st.session_state[_PLAYING] = not playing
        st.session_state[_SINCE] = time.monotonic()
        # only a run of the whole script changes how often the page draws itself
        st.rerun(scope="app")


def _stop() -> None:
    st.session_state[_PLAYING] = False


def _advance(options: Sequence[str]) -> None:
    """Go to the next snapshot when its time has come, and stop at the last."""
    if not st.session_state.get(_PLAYING):
        return
    now = time.monotonic()
    # a timer that comes a little early must not wait for the next turn
    if now - st.session_state[_SINCE] < 0.7 * PLAY_S:
        return
    place = options.index(st.session_state[MOMENT])
    st.session_state[MOMENT] = options[(place + 1) % len(options)]
    st.session_state[_SINCE] = now
    if place + 2 == len(options):
        st.session_state[_PLAYING] = False
        publish(MOMENT, options[-1])
        st.rerun(scope="app")
