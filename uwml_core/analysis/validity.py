"""Whether replaying the logged parameters gives the logged weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.replay import LoggedPairs, logged_pairs, replayed_weight
from uwml_core.i18n import _, ngettext
from uwml_core.weighting import UWMLConfig

# The sums of a batch, taken in another order in float32, differ by less; a parameter that differs in
# its third digit moves some weight by more.
TOLERANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class Validity:
    """Result of the check.

    Attributes:
        max_error: largest |replayed − logged| relative weight; NaN where nothing could be compared.
        n: rows compared.
        ok: True within ``TOLERANCE``, False beyond it, None where nothing could be compared.
        reason: one sentence to show.
    """

    max_error: float
    n: int
    ok: bool | None
    reason: str


def replay_obstacle(config: UWMLConfig) -> str:
    """Why the logged margins of anchors do not give their weights, as one sentence; empty where they do."""
    if config.own_weights:
        return _("Not available: this loss has weights of its own, which no curve describes.")
    if config.weighs_pairs:
        return _("Not available: this loss weighs each pair of anchor and negative, and anchors are logged.")
    return ""


def validity(
    pairs: pa.Table, steps: pd.DataFrame, config: UWMLConfig | None, directions: tuple[str, str]
) -> Validity:
    """Replay the run's own parameters on its logged margins and compare with its logged weights.

    Args:
        pairs, steps, directions: as for ``replay.logged_pairs``.
        config: the run's loss, None where it is unknown.

    Returns:
        The largest error and what it means. An error that is not a number counts as a failure.
    """
    return validity_of(logged_pairs(pairs, steps, directions), config)


def validity_of(logged: LoggedPairs, config: UWMLConfig | None) -> Validity:
    """As ``validity``, of pairs that have been made ready for a replay."""
    if not logged.weighed:
        return _unchecked(
            _("Not available: the log has no weights, so the preview starts from pairs that all count alike.")
        )
    if config is None:
        return _unchecked(_("The run does not tell its loss parameters, so nothing can be replayed."))
    if obstacle := replay_obstacle(config):
        return _unchecked(obstacle)
    if not len(logged.weight):
        return _unchecked(_("No pair with a logged weight in this selection, so nothing can be replayed."))
    if config.margin_scale != "none" and not np.isfinite(logged.margin_scale).all():
        return _unchecked(_("The scale of the margins was not logged, so nothing can be replayed."))
    difference = np.abs(replayed_weight(logged, config).astype(np.float64) - logged.weight)
    error = float(difference.max())
    ok = error <= TOLERANCE
    if ok:
        text = ngettext(
            "Replaying the logged parameters gives the logged weights (largest error {error}, {n} pair).",
            "Replaying the logged parameters gives the logged weights (largest error {error}, {n} pairs).",
            len(difference),
        )
    else:
        text = ngettext(
            "Replaying the logged parameters does not give the logged weights (largest error {error}, "
            "{n} pair): the preview does not describe this run.",
            "Replaying the logged parameters does not give the logged weights (largest error {error}, "
            "{n} pairs): the preview does not describe this run.",
            len(difference),
        )
    reason = text.format(error=f"{error:.1e}" if error else "0", n=f"{len(difference):,}")
    return Validity(max_error=error, n=len(difference), ok=ok, reason=reason)


def _unchecked(reason: str) -> Validity:
    return Validity(max_error=float("nan"), n=0, ok=None, reason=reason)
