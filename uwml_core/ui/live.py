"""Follow what is still being written: redraw a part of the page every two seconds."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from uwml_core.runlog.reader import Run
from uwml_core.ui.frame import apply_language, is_live
from uwml_core.ui.health import folder_notes, health_notes
from uwml_core.ui.notes_card import page_notes
from uwml_core.ui.read import last_row, runs
from uwml_core.ui.status import status_line
from uwml_core.ui.views import remember_view

REFRESH_S = 2.0


def follow(run: Run, draw: Callable[[Run], None], *, every: float | None = None) -> None:
    """Draw a page's body for a run, again every two seconds while the run is being written.

    Zoom and widgets survive: charts are keyed components, widgets keep their state by key.

    Args:
        run: the chosen run.
        draw: draws the body; called with the run as it is at that moment.
        every: seconds between two drawings whatever the run's status, such as while something is played.
    """
    following = is_live() and run.status == "running"

    @st.fragment(run_every=every or (REFRESH_S if following else None))
    def body() -> None:
        apply_language()
        if following and run.status != "running":
            st.rerun(scope="app")
        status_line(run.name, run.status, last_row(run))
        health_notes(run)
        draw(run)
        remember_view()
        page_notes(run)

    body()
    if run.status == "stale":
        # it may be resumed
        rerun_when(lambda: run.status != "stale")


def rerun_when(arrived: Callable[[], bool]) -> None:
    """Run the whole page again as soon as something has arrived, looking every two seconds while live.

    Args:
        arrived: cheap to ask.
    """
    if not is_live():
        return

    @st.fragment(run_every=REFRESH_S)
    def wait() -> None:
        apply_language()
        if arrived():
            st.rerun(scope="app")

    wait()


def follow_folder(draw: Callable[[], None]) -> None:
    """Draw what depends on the whole folder of runs, again every two seconds while live.

    Args:
        draw: draws the body.
    """
    known = [run.run_id for run in runs()]

    @st.fragment(run_every=REFRESH_S if is_live() else None)
    def body() -> None:
        apply_language()
        if [run.run_id for run in runs()] != known:
            st.rerun(scope="app")
        if known:
            folder_notes()
        draw()

    body()
