"""Offer the sample runs where there are no runs yet."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from uwml_core.i18n import _
from uwml_core.installation import sample_files, sample_logs
from uwml_core.runlog.location import is_remote
from uwml_core.runlog.sample_runs import add_sample_runs
from uwml_core.ui.settings import logs_root, read_only
from uwml_core.ui.text import note

_PROBLEM = "_samples_problem"


def samples_button() -> None:
    """Draw the button that puts the sample runs into the folder.

    Nothing where nothing may be written, and in a checkout whose own sample runs were removed.
    """
    if read_only() or is_remote(logs_root()) or not sample_files(sample_logs()):
        return
    st.button(
        _("Add the sample runs"),
        icon=":material/folder_open:",
        key="add-samples",
        on_click=_add,
        help=_("Copies four small finished runs into this folder, about 12 MB"),
    )
    problem = st.session_state.pop(_PROBLEM, None)
    if problem is not None:
        st.error(_("The sample runs could not be added."), icon=":material/error:")
        note(problem)


def _add() -> None:
    try:
        add_sample_runs(Path(logs_root()))
    except OSError as error:
        st.session_state[_PROBLEM] = str(error)
