"""From runs that were ticked or searched for to their comparison."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui.compare_choice import MOST_RUNS, RUNS
from uwml_core.ui.runs_list import ticked_runs
from uwml_core.ui.text import note

PAGE = "pages/decide/compare.py"


def compare_link(found: pd.DataFrame, text: str) -> None:
    """Draw a link that compares the ticked runs, or those that a search found; nothing for fewer than two.

    Args:
        found: frame of ``runs_table``.
        text: what was searched for.
    """
    ticked = ticked_runs()
    if len(ticked) > 1:
        run_ids, label = ticked, _("Compare the {n} runs chosen")
    elif text.strip() and len(found) > 1:
        run_ids, label = list(found["run_id"]), _("Compare the {n} runs found")
    else:
        return
    if len(run_ids) > MOST_RUNS:
        note(_("At most {n} runs can be compared at once.").format(n=MOST_RUNS))
        return
    st.page_link(
        PAGE,
        label=label.format(n=len(run_ids)),
        icon=":material/difference:",
        query_params=[(RUNS, run_id) for run_id in run_ids],
    )
