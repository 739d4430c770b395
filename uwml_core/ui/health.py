"""Files of a run that could not be read, named on the page."""

from __future__ import annotations

import streamlit as st

from uwml_core.i18n import _, ngettext
from uwml_core.runlog.reader import Run
from uwml_core.ui.text import element

_SHOWN = 20


def health_notes(run: Run) -> None:
    """Say which files were skipped and why; draws nothing for a healthy run."""
    issues = run.health()
    if not issues:
        return
    title = ngettext(
        "{n} file was skipped; the numbers below leave it out",
        "{n} files were skipped; the numbers below leave them out",
        len(issues),
    ).format(n=len(issues))
    with st.expander(title, expanded=True, icon=":material/warning:"):
        lines = [f"{issue.file}: {issue.message}" for issue in issues[:_SHOWN]]
        if len(issues) > _SHOWN:
            lines.append(_("and {n} more").format(n=len(issues) - _SHOWN))
        st.html("".join(element("p", line, "uw-note") for line in lines))
