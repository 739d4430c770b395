"""Clicks on a contact sheet: an item opens within the session, without loading the page anew."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from uwml_core.ui.point_card import choose_item

_KEY = "sheet-clicks"
_LINKS = ".uw-sheet a, .uw-rows a"
_JS = (Path(__file__).parent / "sheet_clicks.js").read_text(encoding="utf-8")

_component = st.components.v2.component(
    "uwml_sheet_clicks", html="<span hidden></span>", js=_JS, isolate_styles=False
)


def follow_clicks() -> None:
    """Let clicks on the sheets of this page open items; without it they are plain links."""
    _component(key=_KEY, data={"links": _LINKS}, on_item_change=_open, height=1)


def _open() -> None:
    asked = str(st.session_state[_KEY]["item"] or "")
    if asked.isascii() and asked.isdecimal() and len(asked) < 10:
        choose_item(int(asked))
