"""The measures of the gap, with their formulas."""

from __future__ import annotations

import pandas as pd

from uwml_core.figures.gap_measures import gap_measures_figure
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _
from uwml_core.ui.card import card
from uwml_core.ui.text import guide_formulas

HEIGHT = 330


def gap_card(
    gaps: pd.DataFrame, step: int, *, modalities: tuple[str, str], theme: Theme, rest: int = 0
) -> None:
    """Draw the measures from snapshot to snapshot, and below what each one is.

    Args:
        gaps: frame of ``merge_gaps``.
        step: snapshot to mark.
        modalities: names of both.
        theme: colours.
        rest: snapshots that are still to be measured.
    """
    figure = gap_measures_figure(gaps, theme, modalities=modalities, step=step, height=HEIGHT)
    card(
        _("The gap in the original space"),
        figure,
        gaps,
        _("A gap is not in itself a fault: closing it changes recall little."),
        _counts(gaps),
        _still(gaps, rest),
        key="gap",
        height=HEIGHT,
    )
    guide_formulas(
        {
            _("Centre distance"): "‖x̄ − ȳ‖",
            _("Relative gap"): _(
                "mean distance of the pairs / (that + mean distance within the modalities), "
                "distance (1 − cosine) / 2; 0 aligned, 0.5 no gap beyond chance"
            ),
            _("Alignment"): _("mean ‖x − y‖² over pairs; 0 where pairs coincide"),
            _("Uniformity"): _("log mean exp(−2 ‖a − b‖²) over different items; lower is more evenly spread"),
            _("Separability"): _(
                "share of held-out points whose modality a ridge classifier names; 0.5 is chance"
            ),
        }
    )


def _counts(gaps: pd.DataFrame) -> str:
    n = gaps.groupby("measure")["n"].max()
    if "alignment" not in n:
        return ""
    return _("n = {n} items, of uniformity {sampled}").format(
        n=f"{int(n['alignment']):,}", sampled=f"{int(n['uniformity']):,}"
    )


def _still(gaps: pd.DataFrame, rest: int) -> str:
    if not rest:
        return ""
    done = gaps["step"].nunique()
    text = _("{done} of {total} snapshots measured so far, the others follow")
    return text.format(done=done, total=done + rest)
