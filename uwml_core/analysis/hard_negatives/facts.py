"""The numbers of a confusion in words: one fact for the sheet, all of them for the hover text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from uwml_core.analysis.hard_negatives.false_negatives import reason_text
from uwml_core.analysis.text import fixed, percent, signed
from uwml_core.i18n import _, ngettext


def main_fact(row: Mapping[str, Any]) -> str:
    """What its question found about a confusion, in a few words.

    Args:
        row: one confusion, column by column.
    """
    if _has(row, "growth"):
        text = _("margin {growth} since epoch {epoch}")
        return text.format(growth=signed(row["growth"], 2), epoch=row["first_epoch"])
    if _has(row, "snapshots"):
        return _("{n} of {total} snapshots").format(n=row["n"], total=row["snapshots"])
    if row.get("reason"):
        return reason_text(row["reason"])
    if _has(row, "met"):
        text = _("mean margin {margin} in {n} encounters")
        return text.format(margin=fixed(row["mean_margin"], 2), n=f"{row['met']:,}")
    if _has(row, "encounters"):
        return ngettext(
            "below in its {n} encounter", "below in all {n} encounters", row["encounters"]
        ).format(n=row["encounters"])
    return " · ".join(part for part in (_times(row), epochs_text(row)) if part)


def epochs_text(row: Mapping[str, Any]) -> str:
    """First and last epoch of a confusion; empty where they were not logged."""
    first, last = int(row["first_epoch"]), int(row["last_epoch"])
    if last < 0:
        return ""
    if first == last:
        return _("epoch {epoch}").format(epoch=last)
    return _("epochs {first} to {last}").format(first=first, last=last)


def all_facts(row: Mapping[str, Any]) -> list[str]:
    """Everything that was counted about a confusion, a line each."""
    lines = [
        _("margin {value}").format(value=fixed(row["margin"], 3)),
        _("lowest margin {value}").format(value=fixed(row["lowest"], 3))
        if row.get("n", 1) > 1 and _has(row, "lowest")
        else "",
        _("weight {value}").format(value=fixed(row["weight"], 2)) if _has(row, "weight") else "",
        _times(row),
        epochs_text(row),
        _("caption likeness {value}").format(value=percent(row["text_likeness"]))
        if _has(row, "text_likeness")
        else "",
        _("picture likeness {value}").format(value=percent(row["picture_likeness"]))
        if _has(row, "picture_likeness")
        else "",
    ]
    return [line for line in lines if line]


def _times(row: Mapping[str, Any]) -> str:
    n = int(row["n"])
    return ngettext("once", "{n} times", n).format(n=n) if n > 1 else ""


def _has(row: Mapping[str, Any], name: str) -> bool:
    return name in row and bool(pd.notna(row[name]))
