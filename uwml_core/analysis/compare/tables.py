"""The table of differences as texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from uwml_core.analysis.text import MISSING, fixed, signed
from uwml_core.i18n import _


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame as mappings."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def metric_label(metric: str, direction: str) -> str:
    """What a metric is called in a table, with its direction.

    Example:
        >>> metric_label("R@1", "i2t"), metric_label("rsum", "")
        ('R@1 i2t', 'rsum')
    """
    name = _("Median rank") if metric == "median_rank" else metric
    return f"{name} {direction}".strip()


def difference_texts(rows: pd.DataFrame, baseline: str, method: str) -> list[list[str]]:
    """Differences of one method as texts, the first row being the heading.

    Args:
        rows: the method's rows of ``Comparison.differences``.
        baseline, method: names.
    """
    head = [_("Metric"), baseline, method, _("Difference"), _("95 % over queries")]
    texts = [[*head, _("95 % over seeds"), _("Gained / lost queries"), _("McNemar p")]]
    for row in records(rows):
        texts.append(
            [
                metric_label(row["metric"], row["direction"]),
                fixed(row["baseline"]),
                fixed(row["value"]),
                signed(row["difference"]),
                interval_text(row["low"], row["high"]),
                _seeds(row),
                _changed(row),
                _p_text(row["mcnemar_p"]),
            ]
        )
    return texts


def interval_text(low: float, high: float) -> str:
    """An interval of a difference; a dash without bounds.

    Example:
        >>> interval_text(-0.5, 1.0), interval_text(float("nan"), float("nan"))
        ('−0.5 to +1.0', '–')
    """
    if math.isnan(low) or math.isnan(high):
        return MISSING
    return _("{low} to {high}").format(low=signed(low), high=signed(high))


def _seeds(row: Mapping[str, Any]) -> str:
    if row["seeds"] < 2:
        return _("one seed") if row["seeds"] else _("no common seed")
    bounds = interval_text(row["seed_low"], row["seed_high"])
    return _("{interval}, n = {n}").format(interval=bounds, n=row["seeds"])


def _changed(row: Mapping[str, Any]) -> str:
    if pd.isna(row["gained"]):
        return MISSING
    return f"{int(row['gained']):,} / {int(row['lost']):,}"


def _p_text(p: float) -> str:
    if math.isnan(p):
        return MISSING
    return "< 0.001" if p < 0.001 else fixed(p, 3)
