"""Which pairs count, and what other parameters would have done on the logged margins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.intervals import FEWEST_STEPS
from uwml_core.analysis.replay import logged_pairs, replayed_weight
from uwml_core.analysis.step_measures import (
    band_shares,
    measure_steps,
    negative_terms,
    summarize,
    weight_histogram,
)
from uwml_core.analysis.text import fixed, percent, signed
from uwml_core.i18n import _
from uwml_core.weighting import UWMLConfig


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """Before and after, everything computed per step and then averaged over steps.

    Attributes:
        summary: one row per direction: direction, rows, steps, rows_without_weight; for each of
            ``step_measures.MEASURES`` its mean over steps ``_before`` and ``_after`` and their standard
            deviations ``_before_sd`` and ``_after_sd``; ess_change with the 95 % block-bootstrap bounds
            ess_change_low and ess_change_high of its mean over steps.
        bands: direction, band, n, steps, share_before, share_after, share_before_sd, share_after_sd:
            the part of the direction's gradient that the band holds.
        weights: direction, bin, left, right, count_before, count_after: relative weights in bins of
            0.05 on [0, 5), the last bin open.
        unchanged: whether both sets of parameters are equal.
    """

    summary: pd.DataFrame
    bands: pd.DataFrame
    weights: pd.DataFrame
    unchanged: bool


def preview(
    pairs: pa.Table,
    steps: pd.DataFrame,
    before: UWMLConfig,
    after: UWMLConfig,
    directions: tuple[str, str],
) -> WhatIf:
    """Replay logged margins with other parameters.

    ``before`` are the logged weights r. ``after`` are the weights r' of the other parameters; a row's
    share of the gradient becomes proportional to gradient_share · r' / r, renormalised per step. Of the
    negative gradient of InfoNCE, the hardest negatives hold Σ r exp(−l − margin / τ) / Σ r (1 − p) in a
    step; the easy rest holds what is left.

    Args:
        pairs, steps, directions: as for ``replay.logged_pairs``.
        before: the parameters in use.
        after: the parameters to try.

    Returns:
        The comparison. A mean over no step is NaN: nothing logged, a step whose gradient is 0, or the
        negative gradient of a loss that is not InfoNCE.
    """
    logged = logged_pairs(pairs, steps, directions)
    relative = {"before": logged.weight, "after": replayed_weight(logged, after)}
    terms = negative_terms(logged) if before.base == "infonce" else None
    measures = {
        "before": measure_steps(logged, relative["before"], before, terms),
        "after": measure_steps(logged, relative["after"], after, terms),
    }
    return WhatIf(
        summary=summarize(logged, measures, directions),
        bands=band_shares(logged, relative, directions),
        weights=weight_histogram(logged, relative, directions),
        unchanged=before == after,
    )


def weight_curve_headline(whatif: WhatIf) -> str:
    """Which pairs count, and what the tried parameters change about it, one clause per direction.

    Says "too little data yet" where no pair has a weight or the means rest on fewer steps than an
    interval needs.
    """
    rows: list[dict[Any, Any]] = whatif.summary[whatif.summary["steps"] > 0].to_dict("records")
    if not rows:
        return _("Too little data yet: no pair with a logged weight.")
    if whatif.unchanged:
        clauses = [_in_use(whatif.bands, row["direction"], row["ess_share_before"]) for row in rows]
        text = _("{clauses}.").format(clauses="; ".join(clauses))
    else:
        clauses = [_changed(whatif.bands, row) for row in rows]
        text = _("With these parameters: {clauses}.").format(clauses="; ".join(clauses))
    fewest = min(row["steps"] for row in rows)
    if fewest < FEWEST_STEPS:
        note = _("Too little data yet for an interval: {steps} steps.").format(steps=fewest)
        return f"{text} {note}"
    return text


def _in_use(bands: pd.DataFrame, direction: str, ess_share: float) -> str:
    mine = bands[(bands["direction"] == direction) & np.isfinite(bands["share_before"])]
    ess = percent(ess_share)
    if mine.empty:
        return _("{direction}: the weights are worth {ess} of the pairs, no gradient logged").format(
            direction=direction, ess=ess
        )
    return _(
        "{direction}: {informative} of the gradient comes from informative pairs, {easy} from easy ones, "
        "and the weights are worth {ess} of the pairs"
    ).format(
        direction=direction,
        informative=percent(_share(mine, "informative", "before")),
        easy=percent(_share(mine, "easy", "before")),
        ess=ess,
    )


def _changed(bands: pd.DataFrame, row: dict[Any, Any]) -> str:
    mine = bands[bands["direction"] == row["direction"]]
    low, high = float(row["ess_change_low"]), float(row["ess_change_high"])
    change = signed(100.0 * float(row["ess_change"]))
    if np.isfinite(high - low):
        change = f"{change} ± {fixed(50.0 * (high - low))}"
    return _(
        "{direction} effective sample size {before} → {after} ({change} points), informative pairs "
        "{informative_before} → {informative_after} of the gradient"
    ).format(
        direction=row["direction"],
        before=percent(float(row["ess_share_before"])),
        after=percent(float(row["ess_share_after"])),
        change=change,
        informative_before=percent(_share(mine, "informative", "before")),
        informative_after=percent(_share(mine, "informative", "after")),
    )


def _share(bands: pd.DataFrame, band: str, when: str) -> float:
    return float(bands.loc[bands["band"] == band, f"share_{when}"].iloc[0])
