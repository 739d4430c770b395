"""Cached reading: everything is keyed by run and version, and everything is bounded.

Frames and tables are shared between visitors and never copied: nobody may change them in place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.analysis.controller_log import balance_columns, controller_log
from uwml_core.analysis.lag import Lag, find_lag
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.analysis.margins import margin_histogram
from uwml_core.analysis.modal_balance import Balance, BalanceInUse, balance_in_use, try_controller
from uwml_core.analysis.pooled import PooledMargins, compare_pooled, pooled_margins
from uwml_core.analysis.replay import LoggedPairs, logged_pairs
from uwml_core.analysis.replay_validity import ReplayCheck, replay_validity
from uwml_core.analysis.runs import LAST_STEP_COLUMNS, last_step, run_row, runs_table
from uwml_core.analysis.selection import PREVIEW_COLUMNS, SIZE_COLUMNS, StepSelection
from uwml_core.analysis.training import step_columns
from uwml_core.analysis.validity import Validity, validity_of
from uwml_core.analysis.what_if import Baseline, WhatIf, compare
from uwml_core.analysis.what_if import baseline as measure_baseline
from uwml_core.i18n import _, language
from uwml_core.runlog.reader import Part, Run, SchemaTooNew, list_runs
from uwml_core.ui.kept import table_version, version_of
from uwml_core.ui.settings import logs_root
from uwml_core.ui.shared import shared
from uwml_core.ui.step_zoom import StepZoom
from uwml_core.weighting import UWMLConfig


def runs() -> list[Run]:
    """Runs of the folder, newest first; looked up at most once a second."""
    return _runs(str(logs_root()))


def look_again() -> None:
    """Have the folder's runs looked up anew, as one has just been made."""
    _runs.clear()


def overview() -> pd.DataFrame:
    """One row per run, as ``runs_table`` describes it."""
    return runs_table(
        _row(str(run.path), (version_of(run), run.status), language(), _run=run) for run in runs()
    )


def last_row(run: Run) -> dict[str, Any] | None:
    """Newest row of the steps table."""
    return _last_row(str(run.path), version_of(run), _run=run)


def steps(run: Run) -> pd.DataFrame:
    """Steps table, the columns that the charts use."""
    columns = tuple(step_columns(run.directions))
    return _growing(str(run.path), version_of(run), "steps", columns, _run=run)


def step_sizes(run: Run) -> pd.DataFrame:
    """Steps table, what tells which of their pairs to read: step, epoch and batch size."""
    return _growing(str(run.path), version_of(run), "steps", SIZE_COLUMNS, _run=run)


def balance_steps(run: Run) -> pd.DataFrame:
    """Steps table, the columns that the balance of the directions is computed from."""
    columns = tuple(balance_columns(run.directions))
    return _growing(str(run.path), version_of(run), "steps", columns, _run=run)


def lag(run: Run) -> Lag:
    """Which direction lags."""
    return _lag(str(run.path), version_of(run), _run=run)


def balance(run: Run, before: UWMLConfig, after: UWMLConfig, zoom: StepZoom) -> Balance:
    """What another controller would have done on the run's gaps.

    Args:
        run: the run.
        before: the parameters in use, which the run's version implies.
        after: the parameters to try.
        zoom: steps that are drawn more finely.
    """
    in_use = _balance(str(run.path), version_of(run), _run=run, _config=before)
    return try_controller(in_use, after, zoom.within)


def controller_validity(run: Run) -> ReplayCheck:
    """Whether replaying the run's parameters gives its direction weights."""
    return _controller_validity(str(run.path), version_of(run), _run=run)


def evals(run: Run) -> pd.DataFrame:
    """Evaluations table."""
    return _frame(str(run.path), table_version(run, "evals"), "evals", None, _run=run)


def events(run: Run) -> pd.DataFrame:
    """Events table."""
    return _frame(str(run.path), table_version(run, "events"), "events", None, _run=run)


def histogram(run: Run) -> pd.DataFrame:
    """Margin histogram per epoch and direction."""
    return _histogram(str(run.path), version_of(run), _run=run)


def what_if(run: Run, selection: StepSelection, before: UWMLConfig, after: UWMLConfig) -> WhatIf:
    """What other parameters would have done in the selected steps.

    Args:
        run: the run.
        selection: its steps to look at.
        before: the parameters in use, which the run's version implies.
        after: the parameters to try.
    """
    where = (str(run.path), version_of(run))
    if selection.pooled:
        epoch = selection.epoch
        return compare_pooled(_pooled(*where, epoch, _run=run, _config=before), after)
    return compare(_baseline(*where, _key(selection), _run=run, _selection=selection, _config=before), after)


def weights_validity(run: Run, selection: StepSelection) -> Validity:
    """Whether replaying the run's parameters gives its weights in the selected steps."""
    if selection.pooled:
        reason = _(
            "Choose one epoch to see whether replaying the logged parameters gives the logged weights."
        )
        return Validity(max_error=float("nan"), n=0, ok=None, reason=reason)
    logged = _logged(str(run.path), version_of(run), _key(selection), _run=run, _selection=selection)
    return validity_of(logged, loss_in_use(run))


def _key(selection: StepSelection) -> Hashable:
    return hash(selection.steps.tobytes())


def loss_in_use(run: Run) -> UWMLConfig | None:
    """Loss configuration of the run, None where its log has none of ours."""
    return loss_config(run.config)


@st.cache_resource(ttl=1.0, max_entries=4, show_spinner=False)
def _runs(root: str) -> list[Run]:
    return list_runs(root)


@shared
def _frame(
    path: str, version: Hashable, table: str, columns: tuple[str, ...] | None, *, _run: Run
) -> pd.DataFrame:
    return _run.frame(table, columns=None if columns is None else list(columns))


@shared
def _growing(
    path: str, version: Hashable, table: str, columns: tuple[str, ...], *, _run: Run
) -> pd.DataFrame:
    parts = _run.map_parts(table, _to_frame, columns=list(columns))
    if len(parts) == 1:
        return parts[0]
    return pd.concat(parts, ignore_index=True) if parts else _run.frame(table, columns=list(columns))


@shared
def _last_row(path: str, version: Hashable, *, _run: Run) -> dict[str, Any] | None:
    for part in reversed(_run.parts("steps")):
        chosen = _only_last_row(part)
        found = _run.map_each("steps", chosen, columns=LAST_STEP_COLUMNS)
        if found and len(found[0]):
            return last_step(found[0])
    return None


def _only_last_row(wanted: Part) -> Callable[[Part], Callable[[Any], pd.DataFrame] | None]:
    return lambda part: _to_last_row if part.key == wanted.key else None


def _to_last_row(part: Any) -> pd.DataFrame:
    return _to_frame(part.slice(max(0, part.num_rows - 1)))


def _to_frame(part: Any) -> pd.DataFrame:
    frame: pd.DataFrame = part.to_pandas()
    return frame


@shared
def _row(path: str, version: Hashable, language: str, *, _run: Run) -> dict[str, Any]:
    try:
        return run_row(_run, last_row(_run), evals(_run))
    except SchemaTooNew:
        return {**run_row(_run, None, None), "status": "newer"}


@shared
def _lag(path: str, version: Hashable, *, _run: Run) -> Lag:
    return find_lag(controller_log(balance_steps(_run), _run.directions))


@shared
def _balance(path: str, version: Hashable, *, _run: Run, _config: UWMLConfig) -> BalanceInUse:
    return balance_in_use(balance_steps(_run), _config, _run.directions)


@shared
def _controller_validity(path: str, version: Hashable, *, _run: Run) -> ReplayCheck:
    return replay_validity(controller_log(balance_steps(_run), _run.directions), loss_in_use(_run))


@shared
def _histogram(path: str, version: Hashable, *, _run: Run) -> pd.DataFrame:
    return margin_histogram(_margins(path, version, _run=_run))


@shared
def _margins(path: str, version: Hashable, *, _run: Run) -> Any:
    return _run.rollup("margins")


@shared
def _logged(
    path: str, version: Hashable, key: Hashable, *, _run: Run, _selection: StepSelection
) -> LoggedPairs:
    columns = list(PREVIEW_COLUMNS)
    table = _run.table("pairs", columns=columns, filter=_selection.filter, steps=_selection.span)
    # of a long run thousands of chunks, each of which every look at a column would begin anew
    return logged_pairs(table.unify_dictionaries().combine_chunks(), steps(_run), _run.directions)


@shared
def _baseline(
    path: str, version: Hashable, key: Hashable, *, _run: Run, _selection: StepSelection, _config: UWMLConfig
) -> Baseline:
    logged = _logged(path, version, key, _run=_run, _selection=_selection)
    return measure_baseline(logged, _config, _run.directions, known=loss_in_use(_run) is not None)


@shared
def _pooled(
    path: str, version: Hashable, epoch: int | None, *, _run: Run, _config: UWMLConfig
) -> PooledMargins:
    return pooled_margins(_margins(path, version, _run=_run), steps(_run), epoch, _config, _run.directions)
