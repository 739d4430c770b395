"""Choose a snapshot, or play them one after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import streamlit as st

from uwml_core.analysis.map_headline import epoch_name
from uwml_core.i18n import _, language
from uwml_core.ui.choice import adopt, publish
from uwml_core.ui.text import note

MOMENT = "moment"
_PAUSED = "_playing_paused"
PLAY_S = 1.2
_AT, _SINCE, _STOPPED, _NEWEST = "_played_moment", "_played_since", "_stopped_at", "_newest_moment"
_SLIDERS = "_sliders_before"
_STALE = "_address_before_playing"


def play_interval() -> float | None:
    """Seconds between two snapshots while they are played, else None; for ``follow``."""
    return PLAY_S if _AT in st.session_state else None


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
    if play_interval() is not None:
        return int(_play(options, names))
    slider = _slider_key()
    if slider in st.session_state:
        st.session_state[MOMENT] = st.session_state[slider]
    else:
        st.session_state.pop(MOMENT, None)
    if MOMENT in st.session_state and st.session_state[MOMENT] == st.session_state.get(_NEWEST):
        # not what the address says, which is the moment before
        st.session_state[MOMENT] = options[-1]
        if st.session_state[_NEWEST] != options[-1]:
            st.session_state[_SLIDERS] = st.session_state.get(_SLIDERS, 0) + 1
            slider = _slider_key()
    st.session_state[_NEWEST] = options[-1]
    _forget_stale()
    adopt(MOMENT, options, options[-1])
    stopped_at = st.session_state.pop(_STOPPED, None)
    if stopped_at in options:
        st.session_state[MOMENT] = stopped_at
    if len(options) == 1:
        note(_("One snapshot, {moment}; a second one shows what moves.").format(moment=names[options[0]]))
        return int(options[0])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="moments"):
        if st.button(_("Play"), icon=":material/play_arrow:", key="play-moments", width=96):
            _start(options)
        if st.session_state.get(slider) != st.session_state[MOMENT]:
            st.session_state[slider] = st.session_state[MOMENT]
        st.session_state[MOMENT] = st.select_slider(
            _("Snapshot"), options, format_func=names.__getitem__, key=slider
        )
    return int(publish(MOMENT, options[-1]))


def _slider_key() -> str:
    """Another slider after each playing, and when the newest moment is another.

    A slow browser may send back what the one before had stood at, as if it had been chosen.
    """
    return f"{MOMENT}-{language()}-{st.session_state.get(_SLIDERS, 0)}"


def _start(options: Sequence[str]) -> None:
    here = st.session_state[MOMENT]
    st.session_state[_AT] = options[0] if here == options[-1] else here
    st.session_state[_SINCE] = time.monotonic()
    # only a run of the whole script changes how often the page draws itself
    st.rerun(scope="app")


def _forget_stale() -> None:
    """Take no notice of what the address said before playing: a slow browser may still send it."""
    stale = st.session_state.get(_STALE)
    if stale is not None and st.query_params.get(MOMENT) == stale:
        del st.query_params[MOMENT]
    else:
        st.session_state.pop(_STALE, None)


def _stop(moment: str) -> None:
    st.session_state.pop(_AT)
    st.session_state[_STALE] = st.query_params.get(MOMENT)
    # the slider was not drawn meanwhile, and what is set for a widget that is not drawn gets lost
    st.session_state[_STOPPED] = moment
    st.session_state[_SLIDERS] = st.session_state.get(_SLIDERS, 0) + 1
    st.rerun(scope="app")


def _pause() -> None:
    st.session_state[_PAUSED] = True


def _play(options: Sequence[str], names: Mapping[str, str]) -> str:
    """Draw what is played, and go on to the next when its time has come.

    Neither the slider nor the address takes part: what a slow browser sends back would lag behind.
    """
    place = options.index(st.session_state[_AT]) if st.session_state[_AT] in options else len(options) - 1
    if st.session_state.pop(_PAUSED, False):
        _stop(options[place])
    # a timer that comes a little early must not wait for the next turn
    if time.monotonic() - st.session_state[_SINCE] > 0.7 * PLAY_S:
        if place + 1 >= len(options):
            _stop(options[-1])
        place += 1
        st.session_state[_AT], st.session_state[_SINCE] = options[place], time.monotonic()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.button(_("Pause"), icon=":material/pause:", key="pause-moments", width=96, on_click=_pause)
        st.progress(place / max(len(options) - 1, 1), names[options[place]])
    return options[place]
