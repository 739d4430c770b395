"""Cached reading for hard negatives: confusions, nearest wrong candidates, items."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.analysis.hard_negatives.catalogue import catalogue as catalogue_of
from uwml_core.analysis.hard_negatives.confusions import PAIR_COLUMNS
from uwml_core.analysis.hard_negatives.confusions import confusions as confusions_of
from uwml_core.analysis.hard_negatives.false_negatives import suspected_false_negatives
from uwml_core.analysis.hard_negatives.persistent import with_margin
from uwml_core.analysis.hard_negatives.probe_pairs import probe_pairs
from uwml_core.analysis.hard_negatives.rows import (
    epochs_until,
    nearest_rows,
    newest_rows_of_items,
    pair_rows,
    rows_of_epoch,
    rows_of_history,
    rows_of_item,
)
from uwml_core.analysis.hard_negatives.wrong_pairs import ItemStatistics
from uwml_core.analysis.hard_negatives.wrong_pairs import item_statistics as statistics_of
from uwml_core.analysis.selection import MOST_READ
from uwml_core.analysis.text import clauses
from uwml_core.i18n import _, language
from uwml_core.runlog.reader import Run
from uwml_core.ui.map_read import items_of
from uwml_core.ui.read import steps


def catalogue(run: Run) -> pd.DataFrame:
    """Items of the run's data set by their number; without rows where they were not logged."""
    return _catalogue(str(run.path), run.info.get("data_fingerprint"), run.has("items"), _run=run)


def neighbors(run: Run) -> pd.DataFrame:
    """The nearest wrong candidate of every probe at every snapshot, with margins."""
    return _neighbors(str(run.path), _version(run, "neighbors"), _run=run)


def item_neighbors(run: Run, item_id: int) -> pd.DataFrame:
    """All wrong candidates of one item, with margins."""
    return _item_neighbors(str(run.path), _version(run, "neighbors"), item_id, _run=run)


def confusions(run: Run, epoch: int | None, *, until: bool) -> tuple[pd.DataFrame, str]:
    """Pairs of an epoch gathered by anchor and hardest negative, and what was read and left out.

    Of a run without pairs, that of a finished model, its probes instead.

    Args:
        run: the run.
        epoch: which one; None for all.
        until: whether earlier epochs belong to it.
    """
    return _confusions(str(run.path), _encounters(run), epoch, until, language(), _run=run)


def item_statistics(run: Run, epoch: int | None) -> tuple[ItemStatistics, pd.DataFrame] | None:
    """Statistics of the items and confusions of those that lie below 0; None where pairs can be read.

    Args:
        run: the run.
        epoch: up to which, as far as the windows of the statistics tell; None for all.
    """
    if not run.has("pairs") or pair_rows(steps(run), epoch) <= MOST_READ:
        return None
    return _statistics(str(run.path), _version(run, "pairs"), epoch, _run=run)


def false_negatives(run: Run, epoch: int | None) -> pd.DataFrame:
    """Suspected false negatives of an epoch; comparing pictures is what is worth keeping."""
    return _false_negatives(str(run.path), _encounters(run), epoch, run.has("items"), _run=run)


def item_pairs(run: Run, item_id: int) -> tuple[pd.DataFrame, str]:
    """Encounters of one item as an anchor, and which were looked at; empty where all were."""
    return _item_pairs(str(run.path), _version(run, "pairs"), item_id, _run=run)


def epochs_of(run: Run) -> list[int]:
    """Epochs that were logged with steps, or else with neighbors, ascending."""
    logged = steps(run)["epoch"] if run.has("steps") else neighbors(run)["epoch"]
    return sorted(int(epoch) for epoch in logged.dropna().unique() if epoch >= 0)


def _version(run: Run, table: str) -> Hashable:
    return tuple(part.key for part in run.parts(table))


def _encounters(run: Run) -> Hashable:
    return _version(run, "pairs") or _version(run, "neighbors")


@st.cache_resource(max_entries=4, show_spinner=False)
def _catalogue(path: str, fingerprint: object, there: bool, *, _run: Run) -> pd.DataFrame:
    return catalogue_of(items_of(_run))


@st.cache_resource(max_entries=4, show_spinner=False)
def _neighbors(path: str, version: Hashable, *, _run: Run) -> pd.DataFrame:
    return with_margin(_run.frame("neighbors", filter=nearest_rows()))


@st.cache_resource(max_entries=64, show_spinner=False)
def _item_neighbors(path: str, version: Hashable, item_id: int, *, _run: Run) -> pd.DataFrame:
    return with_margin(_run.frame("neighbors", filter=rows_of_item(item_id)))


@st.cache_resource(max_entries=8, show_spinner=False)
def _confusions(
    path: str, version: Hashable, epoch: int | None, until: bool, language: str, *, _run: Run
) -> tuple[pd.DataFrame, str]:
    if _run.has("pairs"):
        rows = rows_of_epoch(steps(_run), epoch, until=until)
        pairs, note = _pairs(_run, rows.filter, rows.span), rows.note
    else:
        pairs, note = probe_pairs(neighbors(_run), epoch, until=until)
    frame = confusions_of(pairs, _run.directions)
    left_out = pairs.num_rows - int(frame["n"].sum())
    told = [note] if note else []
    if left_out:
        told.append(_("{n} pairs without a negative or margin left out").format(n=f"{left_out:,}"))
    return frame, clauses(told)


def _pairs(run: Run, chosen: Any, span: tuple[int, int] | None) -> Any:
    return run.table("pairs", columns=list(PAIR_COLUMNS), filter=chosen, steps=span)


@st.cache_resource(max_entries=4, show_spinner=False)
def _statistics(
    path: str, version: Hashable, epoch: int | None, *, _run: Run
) -> tuple[ItemStatistics, pd.DataFrame]:
    # a window that begins later has nothing of what was asked for
    statistics = statistics_of(_run.rollup("items", filter=epochs_until(epoch)), _run.directions)
    rows = newest_rows_of_items(steps(_run), epoch, statistics.below)
    return statistics, confusions_of(_pairs(_run, rows.filter, rows.span), _run.directions)


@st.cache_resource(max_entries=8, show_spinner=False)
def _false_negatives(
    path: str, version: Hashable, epoch: int | None, there: bool, *, _run: Run
) -> pd.DataFrame:
    return suspected_false_negatives(confusions(_run, epoch, until=False)[0], catalogue(_run))


@st.cache_resource(max_entries=64, show_spinner=False)
def _item_pairs(path: str, version: Hashable, item_id: int, *, _run: Run) -> tuple[pd.DataFrame, str]:
    rows = rows_of_history(steps(_run), item_id)
    return _run.table("pairs", filter=rows.filter, steps=rows.span).to_pandas(), rows.note
