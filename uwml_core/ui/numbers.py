"""Key numbers and small tables, with n and spread."""

from __future__ import annotations

import pandas as pd

from uwml_core.analysis.text import fixed, percent
from uwml_core.analysis.training_summary import TrainingSummary
from uwml_core.i18n import _
from uwml_core.ui.card import key_numbers, table_card

METRICS = ("R@1", "R@5", "R@10")


def training_numbers(summary: TrainingSummary, directions: tuple[str, str], unit: str) -> None:
    """Draw loss, recall of both directions and throughput of a training run.

    Args:
        summary: what is drawn.
        directions: the run's directions.
        unit: of the loss; may be empty.
    """
    name = _("Loss, {unit}").format(unit=unit) if unit else _("Loss")
    loss = _("± {sd} sd, last {n} steps").format(sd=fixed(summary.loss_sd, 3), n=summary.loss_n)
    speed = _("pairs/s, last {n} steps").format(n=summary.pairs_per_s_n)
    key_numbers(
        (name, fixed(summary.loss_mean, 3), loss if summary.loss_n > 1 else ""),
        *(_recall(summary, direction) for direction in directions),
        (_("Throughput"), fixed(summary.pairs_per_s, 0), speed if summary.pairs_per_s_n else ""),
    )


def _recall(summary: TrainingSummary, direction: str) -> tuple[str, str, str]:
    label = _("Best R@1 / R@5 / R@10, {direction}").format(direction=direction)
    values = " / ".join(fixed(summary.best_value(direction, metric)) for metric in METRICS)
    n = summary.best_n(direction, "R@1")
    return label, values, _("%, n = {n}").format(n=f"{n:,}") if n else ""


def queries_note(curves: pd.DataFrame) -> str:
    """How many queries each direction's recall rests on; empty without any."""
    newest = curves.drop_duplicates("direction", keep="last") if len(curves) else curves
    parts = [
        _("{direction}: n = {n}").format(direction=d, n=f"{int(n):,}")
        for d, n in zip(newest["direction"], newest["n"], strict=True)
    ]
    return " · ".join(parts)


def what_if_table(summary: pd.DataFrame) -> None:
    """Draw before and after of the preview, per direction, with the spread over steps."""
    names = {
        "ess_share": _("Effective sample, % of pairs"),
        "clamped_share": _("At the weight clamp, % of pairs"),
        "hardest_share": _("Negative gradient held by the hardest negative, %"),
        "easy_rest_share": _("Negative gradient held by the easy rest, %"),
    }
    both = (_("before"), _("after"))
    rows = [[_("Per step, mean ± sd over steps")]]
    rows[0] += [f"{direction} {when}" for direction in summary["direction"] for when in both]
    for column, name in names.items():
        cells = [
            _spread(row[f"{column}_{when}"], row[f"{column}_{when}_sd"])
            for _index, row in summary.iterrows()
            for when in ("before", "after")
        ]
        rows.append([name, *cells])
    table_card(_("Before and after"), summary, rows, *_row_counts(summary), key="what-if")


def _spread(value: float, sd: float) -> str:
    return percent(value, 1).removesuffix(" %") + ("" if pd.isna(sd) else f" ± {fixed(100 * sd)}")


def _row_counts(summary: pd.DataFrame) -> list[str]:
    text = _("{direction}: {rows} pairs in {steps} steps, {without} without weight left out")
    return [
        text.format(
            direction=row["direction"],
            rows=f"{int(row['rows']):,}",
            steps=f"{int(row['steps']):,}",
            without=f"{int(row['rows_without_weight']):,}",
        )
        for _index, row in summary.iterrows()
    ]
