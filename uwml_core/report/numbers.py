"""Key numbers and small tables as texts, with n and spread; drawn by the pages and by the report."""

from __future__ import annotations

import pandas as pd

from uwml_core.analysis.projection_quality import ProjectionQuality
from uwml_core.analysis.text import fixed, percent
from uwml_core.analysis.training_summary import TrainingSummary
from uwml_core.i18n import _, ngettext

METRICS = ("R@1", "R@5", "R@10")

Cell = tuple[str, str, str]


def training_cells(summary: TrainingSummary, directions: tuple[str, str], unit: str) -> list[Cell]:
    """Loss, recall of both directions and throughput of a training run: label, value, small print.

    Args:
        summary: what is told.
        directions: the run's directions.
        unit: of the loss; may be empty.
    """
    name = _("Loss, {unit}").format(unit=unit) if unit else _("Loss")
    loss = _("± {sd} sd, last {n} steps").format(sd=fixed(summary.loss_sd, 3), n=summary.loss_n)
    n = summary.pairs_per_s_n
    speed = ngettext("pairs/s, last {n} step", "pairs/s, last {n} steps", n).format(n=n)
    return [
        (name, fixed(summary.loss_mean, 3), loss if summary.loss_n > 1 else ""),
        *(_recall(summary, direction) for direction in directions),
        (_("Throughput"), fixed(summary.pairs_per_s, 0), speed if summary.pairs_per_s_n else ""),
    ]


def _recall(summary: TrainingSummary, direction: str) -> Cell:
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


def what_if_rows(summary: pd.DataFrame, *, tried: bool = True) -> list[list[str]]:
    """What is in use and what is tried, per direction, with the spread over steps; headings first.

    Args:
        summary: frame of ``what_if.WhatIf``.
        tried: whether other parameters were tried; without, there is only what is in use.
    """
    names = {
        "ess_share": _("Effective sample, % of pairs"),
        "clamped_share": _("At the weight clamp, % of pairs"),
        "hardest_share": _("Negative gradient held by the hardest negative, %"),
        "easy_rest_share": _("Negative gradient held by the easy rest, %"),
    }
    both = {"before": _("in use"), "after": _("tried")} if tried else {"before": ""}
    rows = [[_("Per step, mean ± sd over steps")]]
    rows[0] += [f"{direction} {name}".strip() for direction in summary["direction"] for name in both.values()]
    for column, name in names.items():
        cells = [
            _share_spread(row[f"{column}_{when}"], row[f"{column}_{when}_sd"])
            for _index, row in summary.iterrows()
            for when in both
        ]
        rows.append([name, *cells])
    return rows


def _share_spread(value: float, sd: float) -> str:
    return percent(value, 1).removesuffix(" %") + ("" if pd.isna(sd) else f" ± {fixed(100 * sd)}")


def row_counts(summary: pd.DataFrame) -> list[str]:
    """How many pairs and steps the preview rests on, per direction."""
    return [
        ngettext(
            "{direction}: {rows} pairs in {steps} step, {without} without weight left out",
            "{direction}: {rows} pairs in {steps} steps, {without} without weight left out",
            int(row["steps"]),
        ).format(
            direction=row["direction"],
            rows=f"{int(row['rows']):,}",
            steps=f"{int(row['steps']):,}",
            without=f"{int(row['rows_without_weight']):,}",
        )
        for _index, row in summary.iterrows()
    ]


def balance_rows(summary: pd.DataFrame, *, tried: bool = True) -> list[list[str]]:
    """Weights, jitter and shares of the loss per direction, in use and tried; the first row is the heading.

    Args:
        summary: as ``modal_balance`` gives it, one row per direction.
        tried: whether other parameters were tried; without, there is only what is in use.
    """
    both = (("before", _("in use")), ("after", _("tried"))) if tried else (("before", ""),)
    columns = [(row, when) for _index, row in summary.iterrows() for when, _name in both]
    names = [f"{direction} {name}".strip() for direction in summary["direction"] for _when, name in both]
    return [
        [_("Mean ± sd over steps"), *names],
        [_("Weight"), *(_spread(row, "weight_mean", "weight_sd", when, 3) for row, when in columns)],
        [_("Weight, newest step"), *(fixed(row[f"weight_last_{when}"], 3) for row, when in columns)],
        [_("Jitter per 100 steps"), *(_spread(row, "jitter", "jitter_sd", when, 3) for row, when in columns)],
        [
            _("Share of the loss, %"),
            *(_spread(row, "share_mean", "share_sd", when, 1) for row, when in columns),
        ],
    ]


def _spread(row: pd.Series[float], mean: str, sd: str, when: str, decimals: int) -> str:
    value, spread = float(row[f"{mean}_{when}"]), float(row[f"{sd}_{when}"])
    return fixed(value, decimals) + ("" if pd.isna(spread) else f" ± {fixed(spread, decimals)}")


def balance_notes(summary: pd.DataFrame) -> list[str]:
    """What the balance table rests on: steps, updates of both controllers, stretches."""
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


def quality_note(quality: ProjectionQuality) -> str:
    """What the map kept of the neighborhoods, as a sentence; empty for fewer than three points."""
    if quality.probes == 0:
        return _("All points lie in one place.") if quality.neighbors else ""
    return _(
        "{kept} of each point's {k} nearest neighbors are among its {k} nearest on the map, "
        "trustworthiness {trust}, continuity {continuity} (n = {probes} of {points} points)"
    ).format(
        kept=percent(quality.kept_share),
        k=quality.neighbors,
        trust=fixed(quality.trustworthiness, 3),
        continuity=fixed(quality.continuity, 3),
        probes=f"{quality.probes:,}",
        points=f"{quality.points:,}",
    )
