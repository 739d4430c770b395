"""The table of runs: one row each; one that is ticked is the run of every page, several are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui.compare_choice import RUNS
from uwml_core.ui.frame import choose_run, chosen_run, is_choosing
from uwml_core.ui.read import runs
from uwml_core.ui.status import short_status

_KEY = "runs-table"
_ROW_HEIGHT = 35
_SHOWN_ROWS = 14
_MOST_NAMES = 2


def runs_list(table: pd.DataFrame) -> None:
    """Draw the table; the row ticked last is the run of every page, and the address holds all of them.

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
    run_ids = list(table["run_id"])
    # rows are ticked by their number: with other rows it is another table
    key = f"{_KEY}-{hash(tuple(run_ids))}"
    st.dataframe(
        shown,
        key=key,
        hide_index=True,
        column_order=_ORDER,
        column_config=columns_of(table),
        row_height=_ROW_HEIGHT,
        placeholder="–",
        height=_ROW_HEIGHT * (min(len(shown), _SHOWN_ROWS) + 1) + 2,
        on_select=lambda: _follow_ticks(key, run_ids),
        selection_mode="multi-row",
        selection_default=_ticked_rows(run_ids),
    )
    if is_choosing():
        st.rerun(scope="app")


# what answers the page's question stands where a narrow window still shows it
_ORDER = (
    "status",
    "name",
    "loss",
    "r1_first",
    "r1_second",
    "steps",
    "started",
    "minutes",
    "rsum",
    "sparkline",
)


def columns_of(table: pd.DataFrame) -> dict[str, Any]:
    """Heading, format and width of each column.

    Args:
        table: frame of ``runs_table``.
    """
    column = st.column_config
    first, second = (_direction(table, name) for name in ("first_direction", "second_direction"))
    best = _("R@1 {direction}, %")
    on_split = _("Best on val, or on the split that is evaluated in its place")
    summed = _("Best sum of R@1, R@5 and R@10 of both directions, on the same split")
    return {
        "status": column.TextColumn(_("Status"), width=95),
        "name": column.TextColumn(_("Name"), width=140),
        "loss": column.TextColumn(_("Loss"), width=115),
        "started": column.DatetimeColumn(_("Started"), format="YYYY-MM-DD HH:mm", width=125),
        "minutes": column.NumberColumn(_("Minutes"), format="%.1f", width=80),
        "steps": column.NumberColumn(_("Steps"), format="%,d", width=80),
        "r1_first": column.NumberColumn(best.format(direction=first), format="%.1f", width=95, help=on_split),
        "r1_second": column.NumberColumn(
            best.format(direction=second), format="%.1f", width=95, help=on_split
        ),
        "rsum": column.NumberColumn(_("rsum"), format="%.1f", help=summed),
        "sparkline": column.LineChartColumn(
            _("R@1 over evaluations"), help=_("Mean of both directions, on the same split")
        ),
    }


def _direction(table: pd.DataFrame, column: str) -> str:
    names = [str(name) for name in table[column].unique()]
    # as many as fit above a column of numbers
    if len(names) <= _MOST_NAMES:
        return "/".join(names)
    return _("first") if column == "first_direction" else _("second")


def ticked_runs() -> list[str]:
    """Ids of the ticked runs: those of the address, or the chosen run alone."""
    run = chosen_run()
    chosen = [] if run is None else [run.run_id]
    listed = {run.run_id for run in runs()}
    asked = [run_id for run_id in dict.fromkeys(st.query_params.get_all(RUNS)) if run_id in listed]
    # the run picker has the last word
    return asked if set(chosen) <= set(asked) else chosen


def _ticked_rows(run_ids: list[str]) -> Any:
    ticked = set(ticked_runs())
    rows = [row for row, run_id in enumerate(run_ids) if run_id in ticked]
    return {"selection": {"rows": rows, "columns": [], "cells": []}}


def _follow_ticks(key: str, run_ids: list[str]) -> None:
    run = chosen_run()
    chosen = None if run is None else run.run_id
    rows = st.session_state[key]["selection"]["rows"]
    ticked, wanted = tick(ticked_runs(), chosen, run_ids, rows)
    if wanted is not None:
        choose_run(wanted)
    if len(ticked) > 1:
        st.query_params[RUNS] = ticked
    elif RUNS in st.query_params:
        del st.query_params[RUNS]


def tick(
    before: Sequence[str], chosen: str | None, shown: Sequence[str], rows: Sequence[int]
) -> tuple[list[str], str | None]:
    """What is ticked now, and which run becomes that of every page.

    Args:
        before: ids ticked before.
        chosen: id of the run of every page.
        shown: ids of the table's rows; a search hides the others, which stay ticked.
        rows: numbers of the rows that are ticked now.

    Returns:
        Ids, the newest last, those from before where none is left; the run to choose, None to keep it.
    """
    now = [shown[row] for row in rows if row < len(shown)]
    kept = [run_id for run_id in before if run_id not in shown or run_id in now]
    new = [run_id for run_id in now if run_id not in before]
    ticked = [*kept, *new]
    if not ticked:
        return list(before), None
    return ticked, ticked[-1] if new or chosen not in ticked else None
