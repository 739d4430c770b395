"""Begin a page: its title, its question, the chosen run; or say what is missing and what to do."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from uwml_core.figures.theme import Theme, theme
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run, SchemaTooNew
from uwml_core.ui.empty import empty_folder, missing_table
from uwml_core.ui.frame import chosen_run, unknown_run
from uwml_core.ui.health import health_notes
from uwml_core.ui.live import rerun_when
from uwml_core.ui.read import last_row, runs
from uwml_core.ui.status import status_line
from uwml_core.ui.text import element, escape_markdown, notes


def begin_page(title: str, question: str, *, needs: Sequence[str] = ()) -> Run:
    """Draw the page's head and return the chosen run.

    The script ends here, with a page that says what to do, where there is no run, its schema is newer
    than this program or it lacks a table.

    Args:
        title: name of the page.
        question: what the page answers.
        needs: tables without which the page has nothing to draw.

    Returns:
        The run that the picker shows.
    """
    _head(title, question)
    run = chosen_run()
    if run is None:
        # the picker, which makes the choice, is not drawn yet
        rerun_when(lambda: bool(runs()))
        empty_folder()
        st.stop()
    try:
        run.refuse_newer()
    except SchemaTooNew:
        status_line(run.name, run.status, None)
        text = _(
            "This run has schema version {version}, newer than this app reads; update uwml-lens to open it."
        )
        st.warning(escape_markdown(text.format(version=run.info.get("schema_version"))))
        st.stop()
    missing = [table for table in needs if not run.has(table)]
    if missing:
        status_line(run.name, run.status, last_row(run))
        health_notes(run)
        rerun_when(lambda: all(run.has(table) for table in missing))
        missing_table(run, missing[0])
        st.stop()
    return run


def begin_folder_page(title: str, question: str) -> None:
    """Draw the head of a page that is about the whole folder."""
    _head(title, question)


def current_theme() -> Theme:
    """Colours of the theme that the visitor's browser shows."""
    return theme("dark" if st.context.theme.get("type") == "dark" else "light")


def _head(title: str, question: str) -> None:
    parts = element("h1", title, "uw-page") + element("span", question, "uw-muted")
    st.html(f'<div class="uw-top">{parts}</div>')
    asked = unknown_run()
    if asked is not None:
        notes(_("The address asks for run {run}, which is not in this folder.").format(run=asked))
