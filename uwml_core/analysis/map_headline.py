"""The sentence above the embedding map."""

from __future__ import annotations

import pandas as pd

from uwml_core.analysis.gap_measures import ACROSS
from uwml_core.analysis.text import fixed, listed, modality_name, percent, sentences
from uwml_core.i18n import _

# Uniformity above this is a collapse: the mean of exp(-2 d²) over different items is then above 0.6, of a
# trained encoder it is below 0.05.
COLLAPSED = -0.5


def epoch_name(step: int, epoch: int | None) -> str:
    """What a snapshot is called."""
    if step < 0:
        return _("before training")
    if epoch is None or pd.isna(epoch):
        return _("step {step}").format(step=f"{step:,}")
    return _("epoch {epoch}").format(epoch=int(epoch))


def map_headline(gaps: pd.DataFrame, rest: int = 0) -> str:
    """How the modalities moved from the first snapshot to the last, measured in the original space.

    A collapse is named first: where everything lies in one place, pairs are close without any merit.

    Args:
        gaps: frame of ``merge_gaps``.
        rest: snapshots that are still to be measured.
    """
    if gaps.empty and rest:
        return _("How far apart the modalities lie, and how that changes, is being measured.")
    return sentences([_collapse(gaps), _movement(gaps)])


def _collapse(gaps: pd.DataFrame) -> str:
    shown = gaps[(gaps["measure"] == "uniformity") & (gaps["step"] == gaps["step"].max())]
    values = {name: float(value) for name, value in zip(shown["modality"], shown["value"], strict=True)}
    between = values.pop(ACROSS, float("nan"))
    if not values or not all(value > COLLAPSED for value in values.values()):
        return ""
    told = listed(f"{fixed(value, 2)} {modality_name(name)}" for name, value in values.items())
    if between > COLLAPSED:
        text = _(
            "All points lie nearly in one place (uniformity {values}): pairs are close because everything is."
        )
    else:
        text = _(
            "Each modality lies nearly in one place (uniformity {values}): its items are hard to tell apart."
        )
    return text.format(values=told)


def _movement(gaps: pd.DataFrame) -> str:
    rows = gaps[gaps["measure"] == "alignment"].dropna(subset="value")
    if rows.empty:
        return _("Too little data yet: no snapshot in which an item has both modalities.")
    last = _numbers(gaps, rows.iloc[-1])
    if len(rows) == 1:
        return _(
            "In {moment} pairs lie {alignment} apart, the centers of the modalities {centroid}; "
            "too little data yet to say how they move."
        ).format(**last)
    first = _numbers(gaps, rows.iloc[0])
    told = _(
        "From {start} to {moment} pairs went from {alignment_then} to {alignment} apart and the centers "
        "from {centroid_then} to {centroid}; a straight cut tells {separability} of points apart."
    )
    if not last["separability"]:
        told = _(
            "From {start} to {moment} pairs went from {alignment_then} to {alignment} apart and the centers "
            "from {centroid_then} to {centroid}."
        )
    return told.format(
        start=first["moment"], alignment_then=first["alignment"], centroid_then=first["centroid"], **last
    )


def _numbers(gaps: pd.DataFrame, row: pd.Series) -> dict[str, str]:
    mine = gaps[gaps["step"] == row["step"]].set_index("measure")["value"]
    return {
        "moment": epoch_name(int(row["step"]), row["epoch"]),
        # the root of the mean square: in the unit of the centers' distance
        "alignment": fixed(float(row["value"]) ** 0.5, 2),
        "centroid": fixed(float(mine["centroid_distance"]), 2),
        # of few points there is no cut to be tried on others
        "separability": "" if pd.isna(mine["separability"]) else percent(float(mine["separability"]), 1),
    }
