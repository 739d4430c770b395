"""Pinned notes: those of a page, folded, and all of a run with what adds and deletes them."""

from __future__ import annotations

import html
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from uwml_core.analysis.pinned import pinned_steps
from uwml_core.i18n import _, ngettext
from uwml_core.report.about import anchor_text
from uwml_core.report.build import page_titles
from uwml_core.runlog.notes import ANCHORS, TEXT_BYTES, Anchor, Note, Notes, delete_note, pin_note, read_notes
from uwml_core.runlog.reader import Run
from uwml_core.ui.choice import choice
from uwml_core.ui.settings import read_only
from uwml_core.ui.text import element, note, section
from uwml_core.ui.views import address, current_page, views

_TEXT, _VALUE, _PROBLEM = "note_text", "note_value", "_note_problem"


def page_notes(run: Run) -> None:
    """Draw the notes that are pinned at the page shown, folded, and what pins another where one may write."""
    page = current_page()
    mine = [found for found in _notes(run).notes if found.page == page]
    may_pin = page in page_titles() and not read_only()
    if not mine and not may_pin:
        return
    title = ngettext("{n} pinned note", "{n} pinned notes", len(mine)).format(n=len(mine))
    with st.expander(title if mine else _("Pin a note"), icon=":material/push_pin:"):
        if mine:
            st.html("".join(_note_html(run, found) for found in mine))
        if may_pin:
            _form(run, page)


def step_notes(run: Run) -> pd.DataFrame:
    """Notes pinned to steps of the page shown, as ``pinned_steps`` gives them."""
    return pinned_steps(_notes(run).notes, current_page())


def notes_card(run: Run) -> None:
    """Draw all notes of a run and, where the app may write, what pins and deletes them."""
    found = _notes(run)
    with st.container(border=True, key="card-notes", gap="xsmall"):
        section(_("Pinned notes"))
        if not found.notes:
            note(_("No note yet. A note points a teammate to a step, an item or a chart of a page."))
        for each in found.notes:
            _row(run, each)
        if found.skipped:
            text = ngettext(
                "{n} file is no note and is left out",
                "{n} files are no notes and are left out",
                found.skipped,
            )
            note(text.format(n=found.skipped))
        if not read_only():
            _form(run)


def _row(run: Run, each: Note) -> None:
    row = st.container(horizontal=True, vertical_alignment="top")
    row.html(_note_html(run, each))
    if not read_only():
        row.button(
            _("Delete"), key=f"delete-{each.id}", type="tertiary", icon=":material/delete:",
            on_click=_delete, args=(run, each.id),
        )  # fmt: skip


def _note_html(run: Run, each: Note) -> str:
    titles = page_titles()
    when = pd.Timestamp(each.created_at).strftime("%Y-%m-%d %H:%M")
    where = f"{titles.get(each.page, each.page)} · {anchor_text(each)}"
    link = html.escape(address(each.page, run.run_id, each.view))
    head = f'<a href="{link}" target="_self">{html.escape(where)}</a> {element("span", f"{when} UTC", "")}'
    text = f'<p class="uw-pinned" dir="auto">{html.escape(each.text)}</p>'
    return f'<div><p class="uw-note">{head}</p>{text}</div>'


def _form(run: Run, here: str = "") -> None:
    """What pins a note; at the page ``here``, or at one that is chosen."""
    titles = page_titles()
    kinds = {"step": _("Step"), "item": _("Item"), "chart": _("Chart")}
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        if here:
            # no part of the view, so not in the address
            page, kind = (
                here,
                st.selectbox(_("Pinned at"), ANCHORS, format_func=kinds.__getitem__, key="note_kind_here"),
            )
        else:
            page = choice(_("Page"), "note_page", list(titles), _newest(list(titles)), titles.__getitem__)
            kind = choice(_("Pinned at"), "note_kind", list(ANCHORS), "step", kinds.__getitem__)
        st.text_input(
            kinds[kind], key=_VALUE, width=180, placeholder="loss" if kind == "chart" else "0",
            help=_("Number of the step or the item, or the chart's name, as its CSV is called"),
        )  # fmt: skip
    st.text_area(_("Note"), key=_TEXT, max_chars=TEXT_BYTES // 4, height=80)
    st.button(
        _("Pin"), key="pin-note", icon=":material/push_pin:", on_click=_pin, args=(run, page, kind),
        help=_("With the view that you had last on that page; the note holds no name"),
    )  # fmt: skip
    problem = st.session_state.pop(_PROBLEM, "")
    if problem:
        st.error(_("The note was not pinned."), icon=":material/error:")
        note(problem)


def _newest(pages: Sequence[str]) -> str:
    return next((page for page in views() if page in pages), pages[0])


def _pin(run: Run, page: str, kind: str) -> None:
    try:
        anchor = Anchor(kind=kind, value=str(st.session_state.get(_VALUE, "")).strip())
        text = str(st.session_state.get(_TEXT, ""))
        pin_note(run, Note(page=page, anchor=anchor, text=text, view=views().get(page, {})))
    except (ValueError, OSError) as error:
        st.session_state[_PROBLEM] = str(error)
        return
    st.session_state[_TEXT] = st.session_state[_VALUE] = ""
    _read.clear()


def _delete(run: Run, note_id: str) -> None:
    try:
        delete_note(run, note_id)
    except OSError as error:
        st.session_state[_PROBLEM] = str(error)
    _read.clear()


def _notes(run: Run) -> Notes:
    return _read(str(run.path), _run=run)


@st.cache_resource(ttl=2.0, max_entries=64, show_spinner=False)
def _read(path: str, *, _run: Run) -> Notes:
    return read_notes(_run)
