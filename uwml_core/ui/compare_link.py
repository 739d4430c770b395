"""From runs that were searched for to their comparison."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui.compare_choice import MOST_RUNS, RUNS

PAGE = "pages/decide/compare.py"


def compare_link(found: pd.DataFrame, text: str) -> None:
    """Draw a link that compares what a search found, where it found two runs or more, and not too many.

    Args:
        found: frame of ``runs_table``.
        text: what was searched for.
    """
    if not text.strip() or not 2 <= len(found) <= MOST_RUNS:
        return
    st.page_link(
        PAGE,
        label=_("Compare the {n} runs found").format(n=len(found)),
        icon=":material/difference:",
        query_params=[(RUNS, run_id) for run_id in found["run_id"]],
    )
