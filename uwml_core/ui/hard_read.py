"""Cached reading for hard negatives: confusions, nearest wrong candidates, items."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.analysis.finished import is_finished_model
from uwml_core.analysis.hard_negatives.catalogue import TEXTS, groups_in
from uwml_core.analysis.hard_negatives.catalogue import catalogue as catalogue_of
from uwml_core.analysis.hard_negatives.confusions import PAIR_COLUMNS
from uwml_core.analysis.hard_negatives.confusions import confusions as confusions_of
from uwml_core.analysis.hard_negatives.false_negatives import suspected_false_negatives, to_compare
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
    windows_until,
)
from uwml_core.analysis.hard_negatives.wrong_pairs import STATISTICS, ItemStatistics
from uwml_core.analysis.hard_negatives.wrong_pairs import item_statistics as statistics_of
from uwml_core.analysis.selection import MOST_GATHERED, MOST_PREVIEWED, MOST_READ
from uwml_core.analysis.text import clauses
from uwml_core.i18n import language, ngettext
from uwml_core.runlog.item_frame import ItemRows, Pictures
from uwml_core.runlog.reader import Run
from uwml_core.ui.background import Task
from uwml_core.ui.read import step_sizes
from uwml_core.ui.shared import shared

# More bytes are never held at once: those of each sheet are looked for, at some 60 ms per 100 MiB.
MOST_PICTURES = 96 * 2**20
_PAGE_STANDS_S = 0.7
# To read an epoch of more takes longer than a move may: what is hardest now is asked of its newest steps.
_MOST_READ_NOW = 2 * MOST_PREVIEWED


def catalogue(run: Run) -> pd.DataFrame:
    """Items of the run's data set by number, without pictures; without rows where they were not logged."""
    return _catalogue(*_items_version(run), _run=run)


def outline(run: Run) -> pd.DataFrame:
    """As ``catalogue``, without captions, which are most of its work."""
    return _outline(*_items_version(run), _run=run)


def groups(run: Run) -> list[str]:
    """Groups of the items."""
    return _groups(*_items_version(run), _run=run)


def pictured(run: Run, item_ids: Iterable[int]) -> pd.DataFrame:
    """Rows of some items in the catalogue, with ``thumbnail``; of very many pictures no others are read."""
    chosen = tuple(sorted({int(item) for item in item_ids}))
    return _pictured(*_items_version(run), chosen, _run=run)


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
    if not run.has("pairs") or pair_rows(step_sizes(run), epoch) <= MOST_READ:
        return None
    statistics = _statistics(str(run.path), _version(run, "pairs"), windows_until(epoch), _run=run)
    rows = newest_rows_of_items(step_sizes(run), epoch, statistics.below)
    return statistics, confusions_of(_pairs(run, rows.filter, rows.span), run.directions)


def false_negatives(run: Run, epoch: int | None) -> pd.DataFrame:
    """Suspected false negatives of an epoch; comparing pictures is what is worth keeping."""
    return _false_negatives(str(run.path), _encounters(run), epoch, run.has("items"), _run=run)


def item_pairs(run: Run, item_id: int) -> tuple[pd.DataFrame, str]:
    """Encounters of one item as an anchor, and which were looked at; empty where all were."""
    return _item_pairs(str(run.path), _version(run, "pairs"), item_id, _run=run)


def epochs_of(run: Run) -> list[int]:
    """Epochs that were logged with steps, or else with neighbors, ascending."""
    logged = step_sizes(run)["epoch"] if run.has("steps") else neighbors(run)["epoch"]
    return sorted(int(epoch) for epoch in logged.dropna().unique() if epoch >= 0)


def _version(run: Run, table: str) -> Hashable:
    return tuple(part.key for part in run.parts(table))


def _items_version(run: Run) -> tuple[str, Any, bool]:
    return str(run.path), run.info.get("data_fingerprint"), run.has("items")


def _encounters(run: Run) -> Hashable:
    return _version(run, "pairs") or _version(run, "neighbors")


@shared
def _catalogue(path: str, fingerprint: object, there: bool, *, _run: Run) -> pd.DataFrame:
    rows = _rows(path, fingerprint, there, _run=_run)
    return catalogue_of(None if rows is None else rows.frame())


@shared
def _outline(path: str, fingerprint: object, there: bool, *, _run: Run) -> pd.DataFrame:
    rows = _rows(path, fingerprint, there, _run=_run)
    names = ["item_id", *(name for name in TEXTS if name != "captions")]
    return catalogue_of(None if rows is None else rows.frame(columns=names))


@shared
def _groups(path: str, fingerprint: object, there: bool, *, _run: Run) -> list[str]:
    return groups_in(_outline(path, fingerprint, there, _run=_run))


@shared
def _rows(path: str, fingerprint: object, there: bool, *, _run: Run) -> ItemRows | None:
    return _run.item_rows(columns=("item_id", *TEXTS))


@shared
def _pictured(
    path: str, fingerprint: object, there: bool, chosen: tuple[int, ...], *, _run: Run
) -> pd.DataFrame:
    rows = _rows(path, fingerprint, there, _run=_run)
    items = catalogue_of(None if rows is None else rows.frame(chosen))
    found = _pictures(path, fingerprint, there, chosen, _run)
    pictures = found.of(items.index) if found is not None else {}
    thumbnails: list[Any] = [pictures.get(item) for item in items.index]
    return items.assign(thumbnail=thumbnails)


def _pictures(
    path: str, fingerprint: object, there: bool, chosen: tuple[int, ...], run: Run
) -> Pictures | None:
    """Pictures of some items; all of them, if they are not too many, are read while these are looked at."""
    if run.picture_bytes() > MOST_PICTURES:
        return run.pictures(chosen)
    task = _all_pictures(path, fingerprint, there)
    if not task.began:
        # the page that asked must not share the processor with it
        task.start(lambda _tell: run.pictures(), after_s=_PAGE_STANDS_S)
    return task.result or run.pictures(chosen)


@st.cache_resource(max_entries=2, show_spinner=False)
def _all_pictures(path: str, fingerprint: Any, there: bool) -> Task[Pictures | None]:
    return Task()


@shared
def _neighbors(path: str, version: Hashable, *, _run: Run) -> pd.DataFrame:
    return with_margin(_run.frame("neighbors", filter=nearest_rows()))


@shared
def _item_neighbors(path: str, version: Hashable, item_id: int, *, _run: Run) -> pd.DataFrame:
    return with_margin(_run.frame("neighbors", filter=rows_of_item(item_id)))


@shared
def _confusions(
    path: str, version: Hashable, epoch: int | None, until: bool, language: str, *, _run: Run
) -> tuple[pd.DataFrame, str]:
    if _run.has("pairs"):
        most, most_read = (MOST_GATHERED, MOST_READ) if until else (MOST_PREVIEWED, _MOST_READ_NOW)
        rows = rows_of_epoch(step_sizes(_run), epoch, until=until, most=most, most_read=most_read)
        pairs, note = _pairs(_run, rows.filter, rows.span), rows.note
    else:
        probes = neighbors(_run)
        if is_finished_model(_run.config):
            # no epoch came before its snapshot, whatever number that has
            probes, epoch = probes.assign(epoch=-1), None
        pairs, note = probe_pairs(probes, epoch, until=until)
    frame = confusions_of(pairs, _run.directions)
    left_out = pairs.num_rows - int(frame["n"].sum())
    told = [note] if note else []
    if left_out:
        text = ngettext(
            "{n} pair without a negative or margin left out",
            "{n} pairs without a negative or margin left out",
            left_out,
        )
        told.append(text.format(n=f"{left_out:,}"))
    return frame, clauses(told)


def _pairs(run: Run, chosen: Any, span: tuple[int, int] | None) -> Any:
    return run.table("pairs", columns=list(PAIR_COLUMNS), filter=chosen, steps=span)


@shared
def _statistics(path: str, version: Hashable, last: int | None, *, _run: Run) -> ItemStatistics:
    # a window that begins later has nothing of what was asked for
    rollup = _run.rollup("items", columns=STATISTICS, filter=epochs_until(last))
    return statistics_of(rollup, _run.directions)


@shared
def _false_negatives(
    path: str, version: Hashable, epoch: int | None, there: bool, *, _run: Run
) -> pd.DataFrame:
    rows = confusions(_run, epoch, until=False)[0]
    compared = to_compare(rows)[["item_id", "negative_item_id"]]
    return suspected_false_negatives(rows, pictured(_run, compared.to_numpy().ravel()))


@shared
def _item_pairs(path: str, version: Hashable, item_id: int, *, _run: Run) -> tuple[pd.DataFrame, str]:
    rows = rows_of_history(step_sizes(_run), item_id)
    return _run.table("pairs", filter=rows.filter, steps=rows.span).to_pandas(), rows.note
