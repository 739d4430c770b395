"""The few style rules that the theme file cannot say: one type scale, tabular numbers, thin lines."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_RULES = Path(__file__).parent / "styles.css"


def apply_styles() -> None:
    """Add the style rules to the page, once per script run."""
    st.html(_RULES)
