"""What a layout says of itself: how much of its motion is noise, and what became of a snapshot."""

from __future__ import annotations

from uwml_core.analysis.text import percent
from uwml_core.i18n import _
from uwml_core.runlog.projection_facts import ProjectionFacts, SnapshotFacts


def layout_sentences(facts: ProjectionFacts | None, step: int) -> list[str]:
    """Small print under a map.

    Args:
        facts: of its layout; None where the file does not say.
        step: snapshot that is shown.
    """
    if facts is None:
        return [_("The noise floor of this layout was not measured; compute it again to know it")]
    shown = next((one for one in facts.snapshots if one.step == step), None)
    told = [_noise(facts), _sample(facts), *([] if shown is None else [_outcome(shown), _motion(shown)])]
    return [text for text in told if text]


def _noise(facts: ProjectionFacts) -> str:
    if facts.noise_floor is None:
        return ""
    text = _("Noise floor: what hardly moved in the data moves by {share} of the map's radius")
    return text.format(share=percent(facts.noise_floor, 1))


def _sample(facts: ProjectionFacts) -> str:
    if facts.items is None:
        return ""
    by = {"group": _("by group"), "split": _("by split")}.get(facts.stratified_by, "")
    text = _("A sample of {items} of {total} items {by}, the same in every snapshot")
    return text.format(items=f"{facts.items:,}", total=f"{facts.items_of:,}", by=by)


def _outcome(shown: SnapshotFacts) -> str:
    if shown.outcome == "new":
        return _("No point has a place in the layout before: a new start, ways from there mean nothing")
    if shown.outcome == "few":
        return _("Fewer than five points: they lie along their principal components")
    if shown.outcome == "still":
        return _("No point moved in the data since the snapshot before, so none did here")
    return ""


def _motion(shown: SnapshotFacts) -> str:
    if shown.data_motion is None or shown.map_motion is None:
        return ""
    text = _(
        "Since the snapshot before the median point went {data} of the way to its neighbors in the data, "
        "{drawn} of the map's radius here"
    )
    return text.format(data=percent(shown.data_motion, 1), drawn=percent(shown.map_motion, 1))
