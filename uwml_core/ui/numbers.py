"""Key numbers and small tables of the pages."""

from __future__ import annotations

import pandas as pd

from uwml_core.analysis.training_summary import TrainingSummary
from uwml_core.i18n import _
from uwml_core.report import numbers
from uwml_core.ui.card import key_numbers, table_card


def training_numbers(summary: TrainingSummary, directions: tuple[str, str], unit: str) -> None:
    """Draw loss, recall and throughput; arguments as for ``numbers.training_cells``."""
    key_numbers(*numbers.training_cells(summary, directions, unit))


def what_if_table(summary: pd.DataFrame) -> None:
    """Draw before and after of the preview."""
    rows = numbers.what_if_rows(summary)
    table_card(_("Before and after"), summary, rows, *numbers.row_counts(summary), key="what-if")


def balance_table(summary: pd.DataFrame) -> None:
    """Draw weights, jitter and shares of the loss; ``summary`` as for ``numbers.balance_rows``."""
    rows = numbers.balance_rows(summary)
    table_card(_("Before and after"), summary, rows, *numbers.balance_notes(summary), key="balance-table")
