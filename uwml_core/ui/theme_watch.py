"""Run the page again when the visitor's colour scheme changes; by itself nothing asks for that."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_JS = (Path(__file__).parent / "theme_watch.js").read_text(encoding="utf-8")

_component = st.components.v2.component("uwml_theme_watch", js=_JS, isolate_styles=False)


def watch_theme() -> None:
    """Place the watcher, invisible, once per page."""
    _component(key="theme-watch", on_scheme_change=lambda: None)
