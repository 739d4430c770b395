"""The sentence above the weight curve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from uwml_core.analysis.intervals import FEWEST_STEPS
from uwml_core.analysis.text import fixed, percent, signed
from uwml_core.analysis.what_if import WhatIf
from uwml_core.i18n import _


def weight_curve_headline(whatif: WhatIf) -> str:
    """Which pairs count, and what the tried parameters change about it, one clause per direction.

    Says "too little data yet" where no pair has a weight or the means rest on fewer steps than an
    interval needs.
    """
    rows: list[dict[str, Any]] = whatif.summary[whatif.summary["steps"] > 0].to_dict("records")  # type: ignore[assignment]
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


def _changed(bands: pd.DataFrame, row: dict[str, Any]) -> str:
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
