"""Which rows of ``pairs`` a question looks at, as filters that a reader pushes down."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd
import pyarrow.compute as pc

from uwml_core.analysis.selection import MOST_PREVIEWED, MOST_READ, select_steps
from uwml_core.i18n import _
from uwml_core.runlog.rollups import WINDOW_EPOCHS


@dataclass(frozen=True, kw_only=True)
class PairRows:
    """Rows to read.

    Attributes:
        filter: expression over the table's columns; None reads everything.
        note: how many steps that is, and whether they are a sample; empty where steps were not logged.
        span: first and last step of these rows; None where it is not known.
    """

    filter: pc.Expression | None
    note: str = ""
    span: tuple[int, int] | None = None


def rows_of_epoch(
    steps: pd.DataFrame,
    epoch: int | None,
    *,
    until: bool,
    most: int = MOST_PREVIEWED,
    most_read: int = MOST_READ,
) -> PairRows:
    """Rows of an epoch, of all epochs up to it, or of the whole run.

    Args:
        steps: frame of the table ``steps``; without rows the epoch alone decides.
        epoch: which one; None for all.
        until: whether earlier epochs belong to it.
        most: rows to look at; beyond that a fixed random sample of whole steps.
        most_read: rows to draw a sample from; of more, the newest steps are taken, which lie in few files.
    """
    if steps.empty:
        if epoch is None:
            return PairRows(filter=None)
        column = pc.field("epoch")
        return PairRows(filter=column <= epoch if until else column == epoch)
    within = steps if epoch is None or not until else steps[steps["epoch"] <= epoch]
    selection = select_steps(within, None if until else epoch, max_rows=most, most_read=most_read)
    if not selection.pooled:
        return PairRows(filter=selection.filter, note=selection.note, span=selection.span)
    of_epoch = within if until or epoch is None else within[within["epoch"] == epoch]
    newest = of_epoch.iloc[-newest_steps(of_epoch, most) :]
    selection = select_steps(newest, None, max_rows=most)
    note = _("The newest {chosen} of {total} steps").format(
        chosen=f"{len(newest):,}", total=f"{len(of_epoch):,}"
    )
    return PairRows(filter=selection.filter, note=note, span=selection.span)


def pair_rows(steps: pd.DataFrame, epoch: int | None = None) -> int:
    """Rows of ``pairs`` up to an epoch, of the whole run when None, as the batch sizes tell."""
    within = steps if epoch is None else steps[steps["epoch"] <= epoch]
    return int(2 * within["batch_size"].fillna(0).sum())


def newest_steps(steps: pd.DataFrame, most: int) -> int:
    """How many steps, counted from the newest, hold at most so many rows of ``pairs``; at least one."""
    rows = 2 * steps["batch_size"].fillna(0).to_numpy(dtype="int64")[::-1].cumsum()
    return max(1, int(rows.searchsorted(most, side="right")))


def rows_of_item(item_id: int) -> pc.Expression:
    """Rows in which an item is the anchor."""
    return pc.field("item_id") == item_id


def rows_of_items(item_ids: Iterable[int]) -> pc.Expression:
    """Rows of some items, by their numbers."""
    return pc.field("item_id").isin([int(item) for item in item_ids])


def epochs_until(epoch: int | None) -> pc.Expression | None:
    """Rows of epochs up to one; None for all."""
    return None if epoch is None else pc.field("epoch") <= epoch


def windows_until(epoch: int | None) -> int | None:
    """First epoch of the window of item statistics that an epoch lies in; None for all.

    Example:
        >>> windows_until(29), windows_until(30)
        (20, 30)
    """
    return None if epoch is None else epoch // WINDOW_EPOCHS * WINDOW_EPOCHS


def newest_rows_of_items(steps: pd.DataFrame, epoch: int | None, items: Iterable[int]) -> PairRows:
    """Rows of some items as anchors in the newest epoch, up to one where it is given.

    Args:
        steps: frame of the table ``steps``.
        epoch: the last one; None for the newest of the run.
        items: their numbers.
    """
    within = steps if epoch is None else steps[steps["epoch"] <= epoch]
    return _of_items(within[within["epoch"] == within["epoch"].max()], items)


def rows_of_history(steps: pd.DataFrame, item_id: int) -> PairRows:
    """Rows in which an item is the anchor; of very many rows those of the newest steps.

    Args:
        steps: frame of the table ``steps``; without rows all of the run are looked at.
        item_id: its number.
    """
    if pair_rows(steps) <= MOST_READ:
        return PairRows(filter=rows_of_item(item_id))
    note = _("Its batches: the newest {chosen} of {total} steps").format(
        chosen=f"{newest_steps(steps, MOST_READ):,}", total=f"{len(steps):,}"
    )
    return replace(_of_items(steps, [item_id]), note=note)


def _of_items(steps: pd.DataFrame, items: Iterable[int]) -> PairRows:
    newest = steps.iloc[-newest_steps(steps, MOST_READ) :]
    span = (int(newest["step"].iloc[0]), int(newest["step"].iloc[-1])) if len(newest) else (0, -1)
    step, chosen = pc.field("step"), rows_of_items(items)
    return PairRows(filter=(step >= span[0]) & (step <= span[1]) & chosen, span=span)


def nearest_rows() -> pc.Expression:
    """Rows of ``neighbors`` with the nearest wrong candidate."""
    return pc.field("rank") == 1
