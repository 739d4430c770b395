"""Which pairs count, and what other parameters would have done on the logged margins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.intervals import FEWEST_STEPS
from uwml_core.analysis.replay import LoggedPairs, logged_pairs, replayed_weight
from uwml_core.analysis.step_measures import (
    band_shares,
    measure_steps,
    negative_terms,
    summarize,
    weight_histogram,
)
from uwml_core.analysis.text import fixed, percent, sentences, signed
from uwml_core.analysis.validity import replay_obstacle
from uwml_core.i18n import _, ngettext
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
        weighed: whether weights were logged; without any all pairs count alike before.
    """

    summary: pd.DataFrame
    bands: pd.DataFrame
    weights: pd.DataFrame
    unchanged: bool
    weighed: bool = True


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What a preview starts from; the same whatever is tried.

    Attributes:
        logged: the logged pairs.
        terms: as ``step_measures.negative_terms`` gives them; None unless the base loss is
            InfoNCE and margins are taken to the hardest negative.
        measures: of the logged weights, as ``step_measures.measure_steps`` gives them.
        config: the parameters in use.
        known: whether the run tells them; otherwise the logged weights stand for them.
        directions: the run's directions.
    """

    logged: LoggedPairs = field(repr=False)
    terms: tuple[np.ndarray, np.ndarray] | None = field(repr=False)
    measures: dict[str, np.ndarray] = field(repr=False)
    config: UWMLConfig
    known: bool
    directions: tuple[str, str]


def baseline(
    logged: LoggedPairs, config: UWMLConfig, directions: tuple[str, str], *, known: bool = True
) -> Baseline:
    """Measure the logged weights.

    Args:
        logged: pairs made ready for a replay.
        config: the parameters in use.
        directions: the run's directions.
        known: whether the run tells these parameters.
    """
    hardest = config.base == "infonce" and config.negative_statistic == "hardest"
    terms = negative_terms(logged) if hardest else None
    measures = measure_steps(logged, logged.weight, config, terms)
    return Baseline(
        logged=logged, terms=terms, measures=measures, config=config, known=known, directions=directions
    )


def preview(
    pairs: pa.Table,
    steps: pd.DataFrame,
    before: UWMLConfig,
    after: UWMLConfig,
    directions: tuple[str, str],
) -> WhatIf:
    """The comparison of ``compare`` for pairs that are looked at once.

    Args:
        pairs, steps, directions: as for ``replay.logged_pairs``.
        before, after: the parameters in use and those to try.
    """
    return compare(baseline(logged_pairs(pairs, steps, directions), before, directions), after)


def compare(before: Baseline, after: UWMLConfig) -> WhatIf:
    """Replay logged margins with other parameters.

    ``before`` are the logged weights r. ``after`` are the weights r' of the other parameters; a row's
    share of the gradient becomes proportional to gradient_share · r' / r, renormalised per step. Of the
    negative gradient of InfoNCE, the hardest negatives hold Σ r exp(−l − margin / τ) / Σ r (1 − p) in a
    step; the easy rest holds what is left.

    Args:
        before: the logged pairs and the parameters in use.
        after: the parameters to try.

    Returns:
        The comparison; of equal sides where there is a ``validity.replay_obstacle``. A mean over no step
        is NaN: nothing logged, a step whose gradient is 0, or the negative gradient of a loss that is not
        InfoNCE.
    """
    logged, directions = before.logged, before.directions
    unchanged = before.config == after
    as_logged = replay_obstacle(before.config) or (unchanged and not before.known)
    replayed = logged.weight if as_logged else replayed_weight(logged, after)
    relative = {"before": logged.weight, "after": replayed}
    measures = {
        "before": before.measures,
        "after": measure_steps(logged, relative["after"], after, before.terms),
    }
    return WhatIf(
        summary=summarize(logged, measures, directions),
        bands=band_shares(logged, relative, directions),
        weights=weight_histogram(logged, relative, directions),
        unchanged=unchanged,
        weighed=logged.weighed,
    )


def weight_curve_headline(whatif: WhatIf) -> str:
    """Which pairs count, and what the tried parameters change about it, as one sentence.

    A change of the effective sample size carries its 95 % block-bootstrap interval over steps. Says "too
    little data yet" where no pair has a weight or there are fewer steps than an interval needs.
    """
    rows: list[dict[Any, Any]] = whatif.summary[whatif.summary["steps"] > 0].to_dict("records")
    if not rows:
        return _("Too little data yet: no pair with a logged weight.")
    if whatif.unchanged and not whatif.weighed:
        return _("No weights were logged: all pairs count alike until other weights are tried.")
    parts = {
        "informative": _by_direction(rows, [_share(whatif, row, "informative") for row in rows]),
        "easy": _by_direction(rows, [_share(whatif, row, "easy") for row in rows]),
        "ess": _by_direction(rows, [_ess(whatif, row) for row in rows]),
    }
    if whatif.bands["share_before"].isna().all():
        text = _("The effective sample size is {ess} of the pairs; no gradient share was logged.")
    elif whatif.unchanged:
        text = _(
            "Informative pairs hold {informative} of the gradient, easy pairs {easy}; the effective sample "
            "size is {ess} of the pairs."
        )
    else:
        text = _(
            "With these parameters informative pairs hold {informative} of the gradient, easy pairs {easy}; "
            "the effective sample size is {ess} of the pairs."
        )
    fewest = min(row["steps"] for row in rows)
    if fewest < FEWEST_STEPS:
        few = ngettext(
            "Too little data yet for an interval: {steps} step.",
            "Too little data yet for an interval: {steps} steps.",
            fewest,
        )
        text = sentences([text, few])
    return text.format(**parts, steps=fewest)


def _by_direction(rows: list[dict[Any, Any]], values: list[str]) -> str:
    text = _("{value} ({direction})")
    named = [
        text.format(value=value, direction=row["direction"]) for row, value in zip(rows, values, strict=True)
    ]
    return _(" and ").join(named)


def _share(whatif: WhatIf, row: dict[Any, Any], band: str) -> str:
    columns = (whatif.bands[name].tolist() for name in ("direction", "band", "share_before", "share_after"))
    shares = {(direction, name): when for direction, name, *when in zip(*columns, strict=True)}
    before, after = (percent(float(share)) for share in shares[row["direction"], band])
    return before if whatif.unchanged else _arrow(before, after)


def _ess(whatif: WhatIf, row: dict[Any, Any]) -> str:
    before, after = (percent(row[f"ess_share_{when}"]) for when in ("before", "after"))
    if whatif.unchanged:
        return before
    half_width = 50.0 * (row["ess_change_high"] - row["ess_change_low"])
    if not np.isfinite(half_width):
        return _arrow(before, after)
    change = f"{signed(100.0 * row['ess_change'])} ± {fixed(half_width)}"
    return f"{_arrow(before, after)}, {change}"


def _arrow(before: str, after: str) -> str:
    return f"{before} → {after}"
