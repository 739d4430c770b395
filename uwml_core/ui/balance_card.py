"""Before and after of the direction controller as a table."""

from __future__ import annotations

import pandas as pd

from uwml_core.analysis.text import fixed
from uwml_core.i18n import _, ngettext
from uwml_core.ui.card import table_card


def balance_table(summary: pd.DataFrame) -> None:
    """Draw weights, jitter and shares of the loss per direction, in use and tried.

    Args:
        summary: as ``modal_balance`` gives it, one row per direction.
    """
    both = (("before", _("in use")), ("after", _("tried")))
    columns = [(row, when) for _index, row in summary.iterrows() for when, _name in both]
    names = [f"{direction} {name}" for direction in summary["direction"] for _when, name in both]
    rows = [
        [_("Mean ± sd over steps"), *names],
        [_("Weight"), *(_spread(row, "weight_mean", "weight_sd", when, 3) for row, when in columns)],
        [_("Weight, newest step"), *(fixed(row[f"weight_last_{when}"], 3) for row, when in columns)],
        [_("Jitter per 100 steps"), *(_spread(row, "jitter", "jitter_sd", when, 3) for row, when in columns)],
        [
            _("Share of the loss, %"),
            *(_spread(row, "share_mean", "share_sd", when, 1) for row, when in columns),
        ],
    ]
    table_card(_("Before and after"), summary, rows, *_notes(summary), key="balance-table")


def _spread(row: pd.Series[float], mean: str, sd: str, when: str, decimals: int) -> str:
    value, spread = float(row[f"{mean}_{when}"]), float(row[f"{sd}_{when}"])
    return fixed(value, decimals) + ("" if pd.isna(spread) else f" ± {fixed(spread, decimals)}")


def _notes(summary: pd.DataFrame) -> list[str]:
    row = summary.iloc[0]
    steps, stretches = int(row["steps"]), int(row["jitter_stretches_after"])
    return [
        ngettext("n = {n} step with gaps", "n = {n} steps with gaps", steps).format(n=f"{steps:,}"),
        _("updates: {before} in use, {after} tried").format(
            before=f"{int(row['updates_before']):,}", after=f"{int(row['updates_after']):,}"
        ),
        _("jitter: total variation of a weight") if stretches < 2 else _jitter_note(stretches),
    ]


def _jitter_note(stretches: int) -> str:
    text = _("jitter: total variation of a weight, sd over {n} stretches of 100 steps")
    return text.format(n=f"{stretches:,}")
