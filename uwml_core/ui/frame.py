"""What surrounds every page: run picker, live switch, language."""

from __future__ import annotations

import streamlit as st

from uwml_core.i18n import LANGUAGES, _, set_language
from uwml_core.runlog.reader import Run
from uwml_core.ui.assets import LOGO
from uwml_core.ui.choice import adopt, publish
from uwml_core.ui.read import runs
from uwml_core.ui.styles import apply_styles
from uwml_core.ui.theme_watch import watch_theme

RUN = "run"
LIVE = "live"
LANGUAGE = "lang"
_UNKNOWN = "_unknown_run"
_WANTED = "_wanted_run"


def draw_frame() -> None:
    """Draw the sidebar's controls; ``app.py`` calls this once per script run, before the page."""
    apply_styles()
    st.logo(str(LOGO))
    # before the first text; the selector itself stands last
    adopt(LANGUAGE, list(LANGUAGES), "en")
    apply_language()
    with st.sidebar:
        _run_picker()
        st.toggle(
            _("Live"), value=True, key=LIVE, bind="query-params", help=_("Follow running runs every 2 s")
        )
        _language_switch()
        watch_theme()


def apply_language() -> None:
    """Use the visitor's language in this thread; fragments rerun without the frame."""
    set_language(st.session_state.get(LANGUAGE, "en"))


def is_live() -> bool:
    """Whether running runs are to be followed."""
    return bool(st.session_state.get(LIVE, True))


def choose_run(run_id: str) -> None:
    """Make a run the chosen one at the next run of the script."""
    # The picker's own state cannot be changed once it is drawn.
    st.session_state[_WANTED] = run_id


def is_choosing() -> bool:
    """Whether ``choose_run`` waits for the script to run as a whole; a fragment alone leaves the picker."""
    return _WANTED in st.session_state


def chosen_run() -> Run | None:
    """The run that the picker shows, None in an empty folder."""
    wanted = st.session_state.get(RUN)
    return next((run for run in runs() if run.run_id == wanted), None)


def unknown_run() -> str | None:
    """Run that the address asked for and the folder does not hold, told once."""
    asked: str | None = st.session_state.pop(_UNKNOWN, None)
    return asked


def _language_switch() -> None:
    st.selectbox(_("Language"), list(LANGUAGES), format_func=LANGUAGES.__getitem__, key=LANGUAGE)
    publish(LANGUAGE, "en")


def _run_picker() -> None:
    listed = {run.run_id: run for run in runs()}
    if not listed:
        return
    missing = adopt(RUN, list(listed), next(iter(listed)))
    if missing is not None:
        st.session_state[_UNKNOWN] = missing
    wanted = st.session_state.pop(_WANTED, None)
    if wanted in listed:
        st.session_state[RUN] = wanted
    names = [run.name for run in listed.values()]

    def label(run_id: str) -> str:
        name = listed[run_id].name
        return name if names.count(name) == 1 else f"{name} ({run_id})"

    st.selectbox(_("Run"), list(listed), format_func=label, key=RUN)
    publish(RUN)
