"""The table of runs: one row each, a click chooses the run."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui.frame import choose_run, chosen_run, is_choosing
from uwml_core.ui.status import short_status

_KEY = "runs-table"
_ROW_HEIGHT = 35
_SHOWN_ROWS = 14


def runs_list(table: pd.DataFrame) -> None:
    """Draw the table; choosing a row makes it the run of every page.

    Args:
        table: frame of ``runs_table``, in the order to show.
    """
    if table.empty:
        st.info(_("No run matches the search."), icon=":material/search_off:")
        return
    shown = table.assign(
        status=table["status"].map(short_status),
        minutes=table["duration_s"] / 60,
        started=table["started"].dt.tz_convert(st.context.timezone or "UTC"),
    )
    st.dataframe(
        shown,
        key=_KEY,
        hide_index=True,
        column_order=_ORDER,
        column_config=_columns(table),
        row_height=_ROW_HEIGHT,
        placeholder="–",
        height=_ROW_HEIGHT * (min(len(shown), _SHOWN_ROWS) + 1) + 2,
        on_select=lambda: _choose(list(table["run_id"])),
        selection_mode="single-row",
        selection_default=_chosen_row(table),
    )
    if is_choosing():
        st.rerun(scope="app")


_ORDER = (
    "status",
    "name",
    "loss",
    "started",
    "minutes",
    "steps",
    "r1_first",
    "r1_second",
    "rsum",
    "sparkline",
)


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    column = st.column_config
    first, second = (_direction(table, name) for name in ("first_direction", "second_direction"))
    best = _("R@1 {direction}, %")
    return {
        "status": column.TextColumn(_("Status"), width=110),
        "name": column.TextColumn(_("Name"), width=190),
        "loss": column.TextColumn(_("Loss"), width=130),
        "started": column.DatetimeColumn(_("Started"), format="YYYY-MM-DD HH:mm", width=125),
        "minutes": column.NumberColumn(_("Minutes"), format="%.1f"),
        "steps": column.NumberColumn(_("Steps"), format="%,d"),
        "r1_first": column.NumberColumn(best.format(direction=first), format="%.1f", help=_("Best on val")),
        "r1_second": column.NumberColumn(best.format(direction=second), format="%.1f", help=_("Best on val")),
        "rsum": column.NumberColumn(
            _("rsum"), format="%.1f", help=_("Best sum of R@1, R@5 and R@10 of both directions on val")
        ),
        "sparkline": column.LineChartColumn(
            _("R@1 over evaluations"), help=_("Mean of both directions on val")
        ),
    }


def _direction(table: pd.DataFrame, column: str) -> str:
    names = table[column].unique()
    if len(names) == 1:
        return str(names[0])
    return _("first direction") if column == "first_direction" else _("second direction")


def _chosen_row(table: pd.DataFrame) -> Any:
    run = chosen_run()
    rows = [] if run is None else [i for i, run_id in enumerate(table["run_id"]) if run_id == run.run_id]
    return {"selection": {"rows": rows, "columns": [], "cells": []}}


def _choose(run_ids: list[str]) -> None:
    rows = st.session_state[_KEY]["selection"]["rows"]
    if rows and rows[0] < len(run_ids):
        choose_run(run_ids[rows[0]])
