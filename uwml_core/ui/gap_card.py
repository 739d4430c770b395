"""The measures of the gap, with their formulas."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from uwml_core.analysis.gap_intervals import DRAWS
from uwml_core.analysis.hubness import NEIGHBORS
from uwml_core.figures.drawing import Encoded
from uwml_core.figures.gap_measures import gap_measures_draft, step_marks
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _, language, ngettext
from uwml_core.runlog.reader import Run
from uwml_core.ui.card import card
from uwml_core.ui.map_read import snapshots_version
from uwml_core.ui.shared import shared
from uwml_core.ui.text import element, guide_formulas, note

HEIGHT = 460


def gap_card(
    run: Run, gaps: pd.DataFrame, step: int, *, modalities: tuple[str, str], theme: Theme, rest: int = 0
) -> None:
    """Draw the measures from snapshot to snapshot, and below what each one is.

    Args:
        run: the run.
        gaps: frame of ``merge_gaps``.
        step: snapshot to mark.
        modalities: names of both.
        theme: colours.
        rest: snapshots that are still to be measured.
    """
    if gaps.empty and rest:
        with st.container(border=True, key="card-gap", height=HEIGHT, gap="xsmall"):
            st.html(element("h2", _("The gap in the original space"), "uw-title"))
            note(_still(gaps, rest))
        return
    measured = (str(run.path), snapshots_version(run), tuple(dict.fromkeys(gaps["step"].tolist())))
    spoken = (modalities, language(), theme.base)
    card(
        _("The gap in the original space"),
        _marked(measured, spoken, step, _gaps=gaps, _theme=theme),
        gaps,
        _("A gap is not in itself a fault: closing it changes recall little."),
        _counts(measured, language(), _gaps=gaps),
        _still(gaps, rest),
        key="gap",
        height=HEIGHT,
    )
    guide_formulas(_formulas())


@shared
def _marked(
    measured: Hashable,
    spoken: tuple[tuple[str, str], str, str],
    step: int,
    *,
    _gaps: pd.DataFrame,
    _theme: Theme,
) -> Encoded:
    figure = _figure(measured, spoken, _gaps=_gaps, _theme=_theme)
    return figure.over(step_marks(_gaps, _theme, step))


@shared
def _figure(
    measured: Hashable, spoken: tuple[tuple[str, str], str, str], *, _gaps: pd.DataFrame, _theme: Theme
) -> Encoded:
    return Encoded(gap_measures_draft(_gaps, _theme, modalities=spoken[0], height=HEIGHT).figure())


def _formulas() -> dict[str, str]:
    """What is measured, how, and where it comes from."""
    return {
        _("Center distance"): _("‖x̄ − ȳ‖, 0 to 2 (Liang et al., NeurIPS 2022)"),
        _("Relative gap"): _(
            "RMG = mean distance of the pairs / (that + mean distance within the modalities), "
            "distance (1 − cosine) / 2; 0 aligned, 0.5 no gap beyond chance (Schrodi et al., ICLR 2025)"
        ),
        _("Alignment"): _("mean ‖x − y‖² over pairs; 0 where pairs coincide (Wang and Isola, ICML 2020)"),
        _("Uniformity"): _(
            "log mean exp(−2 ‖a − b‖²) over different items; lower is more evenly spread (Wang and Isola, "
            "ICML 2020)"
        ),
        _("Separability"): _(
            "share of held-out points whose modality a ridge classifier names, cross-validated in two folds; "
            "0.5 is chance (Shi et al., ICLR 2023 workshop)"
        ),
        _("Hubness"): _(
            "skewness of how often each item is among the {k} nearest of the other modality's; 0 even, large "
            "where few answer everything, comparable at equal n only (Radovanović et al., JMLR 2010)"
        ).format(k=NEIGHBORS),
        _("Cosine of different items"): _(
            "mean a · b, within a modality and across; how narrow the cone is (Liang et al., NeurIPS 2022)"
        ),
        _("Shaded"): _("95 % of {n} bootstrap draws over items, neighbors and classifier unchanged").format(
            n=DRAWS
        ),
    }


@shared
def _counts(measured: Hashable, language: str, *, _gaps: pd.DataFrame) -> str:
    n = _gaps.groupby("measure")["n"].max()
    if "alignment" not in n:
        return ""
    items = int(n["alignment"])
    text = ngettext(
        "n = {n} item, of uniformity, hubness and cosine {sampled} of them · shaded: 95 % interval",
        "n = {n} items, of uniformity, hubness and cosine {sampled} of them · shaded: 95 % interval",
        items,
    )
    return text.format(n=f"{items:,}", sampled=f"{int(n['uniformity']):,}")


def _still(gaps: pd.DataFrame, rest: int) -> str:
    if not rest:
        return ""
    done = len(set(gaps["step"].tolist()))
    text = _("{done} of {total} snapshots measured so far, the others follow")
    return text.format(done=done, total=done + rest)
