"""Follow all runs of the folder that are being written, on a page that compares several."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from uwml_core.ui.frame import apply_language, is_live
from uwml_core.ui.live import REFRESH_S, rerun_when
from uwml_core.ui.read import runs
from uwml_core.ui.views import remember_view


def follow_runs(draw: Callable[[], None]) -> None:
    """Draw a page's body, again every two seconds while any run is being written.

    Args:
        draw: draws the body.
    """
    known = _statuses()
    following = is_live() and "running" in known.values()

    @st.fragment(run_every=REFRESH_S if following else None)
    def body() -> None:
        apply_language()
        if following and _statuses() != known:
            st.rerun(scope="app")
        draw()
        remember_view()

    body()
    if not following:
        rerun_when(lambda: _statuses() != known)


def _statuses() -> dict[str, str]:
    return {run.run_id: run.status for run in runs()}
