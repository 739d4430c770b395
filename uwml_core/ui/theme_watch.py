"""What the page tells and asks the browser as a whole: its language, and when the colour scheme changes."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from uwml_core.i18n import language

_JS = (Path(__file__).parent / "theme_watch.js").read_text(encoding="utf-8")

_component = st.components.v2.component("uwml_theme_watch", js=_JS, isolate_styles=False)


def watch_theme() -> None:
    """Place the watcher, invisible, once per page.

    The page runs again when the colour scheme changes; by itself nothing asks for that. Screen readers and
    the choice of glyphs go by the language that the page says it is in.
    """
    tag = {"zh": "zh-Hans"}.get(language(), language())
    _component(key="theme-watch", data={"language": tag}, on_scheme_change=lambda: None)
