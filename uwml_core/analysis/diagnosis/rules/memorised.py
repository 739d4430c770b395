"""Training pairs that move away from the same negatives while recall on held-out items falls."""

from __future__ import annotations

from uwml_core.analysis.diagnosis.finding import Change, Evidence, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.series import current
from uwml_core.analysis.diagnosis.thresholds import MEMORISED_SHARE, RECALL_FALL
from uwml_core.analysis.hard_negatives.memorised import memorised, recall_fall
from uwml_core.analysis.hard_negatives.persistent import with_margin
from uwml_core.analysis.text import percent
from uwml_core.i18n import _, mark


def check(frames: Frames) -> list[Finding]:
    """Find training probes whose margin has grown since recall on val was best, where it falls."""
    falls = [recall_fall(frames.evals, direction) for direction in frames.directions]
    if not any(fall.enough for fall in falls):
        raise NotApplicable(_("Too few evaluations to see recall fall."))
    falling = [fall for fall in falls if fall.falls and fall.best - fall.last > RECALL_FALL * fall.best]
    if len(falling) < len(falls):
        return []
    rows = with_margin(frames.neighbors)
    probes = rows[(rows["split"] == "train") & (rows["step"] == rows["step"].max())]
    found = memorised(rows, falling)
    n = len(probes[["direction", "item_id"]].drop_duplicates())
    share = len(found) / n if n else 0.0
    if not share > MEMORISED_SHARE:
        return []
    shown = found.head(20)[["item_id", "negative_item_id", "direction", "margin_then", "margin", "growth"]]
    best = min(fall.best_epoch for fall in falling)
    return [
        Finding(
            rule=MEMORISED.name,
            severity="note",
            confidence=confidence(share, MEMORISED_SHARE, 1.0),
            title=_(
                "{share} of {n} training probes have moved away from their nearest wrong answer since epoch "
                "{epoch}, where recall on val was best."
            ).format(share=percent(share), n=f"{n:,}", epoch=best),
            cause=_(
                "The model learns the negatives of the training set by heart: they say nothing of new items."
            ),
            advice=_("Stop earlier, take more data or augment it, or draw other negatives."),
            numbers=(Measured(name="memorised_share", value=share, unit="1", n=n),),
            evidence=Evidence(
                frame=shown.reset_index(drop=True), x="item_id", y=("growth",), kind="table", unit="cosine"
            ),
            changes=(
                Change(name="train.epochs", value=max(1, best + 1), before=current(frames, "train.epochs")),
            ),
            link=PageLink(page="hard_negatives", query={"tab": "memorised"}),
        )
    ]


MEMORISED = Rule(
    name="memorised",
    title=mark("Negatives that are learned by heart"),
    tables=("evals", "neighbors"),
    needs=("evals.value",),
    check=check,
)
