"""Which rows of ``pairs`` a question looks at, as filters that a reader pushes down."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pyarrow.compute as pc

from uwml_core.analysis.selection import select_steps

MOST_ROWS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class PairRows:
    """Rows to read.

    Attributes:
        filter: expression over the table's columns; None reads everything.
        note: how many steps that is, and whether they are a sample; empty where steps were not logged.
    """

    filter: pc.Expression | None
    note: str = ""


def rows_of_epoch(steps: pd.DataFrame, epoch: int | None, *, until: bool, most: int = MOST_ROWS) -> PairRows:
    """Rows of an epoch, of all epochs up to it, or of the whole run.

    Args:
        steps: frame of the table ``steps``; without rows the epoch alone decides.
        epoch: which one; None for all.
        until: whether earlier epochs belong to it.
        most: rows to read; beyond that a fixed random sample of whole steps.
    """
    if steps.empty:
        if epoch is None:
            return PairRows(filter=None)
        column = pc.field("epoch")
        return PairRows(filter=column <= epoch if until else column == epoch)
    within = steps if epoch is None or not until else steps[steps["epoch"] <= epoch]
    selection = select_steps(within, None if until else epoch, max_rows=most)
    return PairRows(filter=selection.filter, note=selection.note)


def rows_of_item(item_id: int) -> pc.Expression:
    """Rows in which an item is the anchor."""
    return pc.field("item_id") == item_id
