"""Files of a run that could not be read, and rows that could not be written, named on the page."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import streamlit as st

from uwml_core.i18n import _, ngettext
from uwml_core.runlog.reader import HealthIssue, Run, root_health
from uwml_core.ui.settings import logs_root
from uwml_core.ui.text import element, escape_markdown, note

_REMOTE, _LOST = "remote", "lost"
_SHOWN = 20


def health_notes(run: Run) -> None:
    """Say what is out of reach, skipped or lost, and why; draws nothing for a healthy run."""
    found = run.health()
    _out_of_reach(found)
    lost = [issue for issue in found if issue.kind == _LOST]
    if lost:
        _list(_("The log could not write everything; the numbers below leave out what is lost"), lost)
    skipped = [issue for issue in found if issue.kind not in {_REMOTE, _LOST}]
    if skipped:
        title = ngettext(
            "{n} file was skipped; the numbers below leave it out",
            "{n} files were skipped; the numbers below leave them out",
            len(skipped),
        )
        _list(title.format(n=len(skipped)), skipped)


def _list(title: str, issues: Sequence[HealthIssue]) -> None:
    with st.expander(title, expanded=True, icon=":material/warning:"):
        lines = [_line(issue) for issue in issues[:_SHOWN]]
        if len(issues) > _SHOWN:
            lines.append(element("p", _("and {n} more").format(n=len(issues) - _SHOWN), "uw-note"))
        st.html("".join(lines))


def folder_notes() -> bool:
    """Say that the folder of runs is out of reach; returns whether it is."""
    return _out_of_reach(root_health(logs_root()))


def _out_of_reach(issues: Iterable[HealthIssue]) -> bool:
    there = [issue for issue in issues if issue.kind == _REMOTE]
    for issue in there:
        text = _("{place} cannot be reached.")
        if issue.since:
            text = _("{place} cannot be reached: this is how it was at {since}.")
        st.warning(
            escape_markdown(text.format(place=issue.file, since=issue.since)), icon=":material/cloud_off:"
        )
        note(issue.message)
    return bool(there)


def _line(issue: HealthIssue) -> str:
    """What is wrong, in the visitor's language; the reader's own words, with the cause, on hovering."""
    texts = {
        "torn": _("{file} is cut off or no Parquet and is skipped"),
        "foreign": _("{file} is no part of the run log and is skipped"),
        "unreadable": _("{file} cannot be read and is skipped"),
        "run_file": _("{file} cannot be used; the run is shown without its settings"),
        _LOST: _("{file}: what was logged from step {first} to step {last} is lost"),
    }
    first, last = issue.steps or (0, 0)
    text = texts[issue.kind].format(file=issue.file, first=first, last=last)
    return f'<p class="uw-note" title="{html.escape(issue.message)}">{html.escape(text)}</p>'
