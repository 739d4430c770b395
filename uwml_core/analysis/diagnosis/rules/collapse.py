"""A loss that stands at the value of a model whose embeddings have all become one point."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.diagnosis.finding import Change, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import Rule
from uwml_core.analysis.diagnosis.series import current, lowered, measured, tail, thinned
from uwml_core.analysis.diagnosis.thresholds import COLLAPSED_SPREAD, PLATEAU_TOLERANCE, RECENT_STEPS
from uwml_core.analysis.plateau import plateau
from uwml_core.analysis.text import fixed
from uwml_core.i18n import _, mark


def check(frames: Frames) -> list[Finding]:
    """Find similarities without spread at the end, positives and hardest negatives alike."""
    spread = _spread(frames)
    loss = measured(frames, "loss", frames.column("loss"), tail(frames))
    if not spread.value < COLLAPSED_SPREAD or not _at_plateau(frames, loss.value):
        return []
    title = _(
        "The embeddings have collapsed: similarities of the last batches differ by {spread} only (standard "
        "deviation), the loss stands at {loss}."
    ).format(spread=fixed(spread.value, 4), loss=fixed(loss.value, 3))
    gaps = {f"gap_{d}": frames.column(f"gap_{d}") for d in frames.directions}
    return [
        Finding(
            rule=COLLAPSE.name,
            severity="serious",
            confidence=confidence(spread.value, COLLAPSED_SPREAD, COLLAPSED_SPREAD / 5),
            title=title,
            cause=_(
                "Training on the hardest negatives alone, a learning rate that is too high, or pretrained "
                "weights that were not loaded: moving everything into one point was the cheapest step."
            ),
            advice=_(
                "Begin with the mean over negatives or InfoNCE, warm the learning rate up, freeze the "
                "backbones first."
            ),
            numbers=(spread, loss),
            evidence=thinned(frames, gaps, unit="cosine", limit=0.0),
            changes=(
                *lowered("train.learning_rate", current(frames, "train.learning_rate"), 0.3),
                *_base(frames),
            ),
            link=PageLink(page="embedding_map"),
        )
    ]


def _spread(frames: Frames) -> Measured:
    """Standard deviation of the newest pairs' similarities, positives and hardest negatives together."""
    pairs = frames.pairs
    recent = pairs[pairs["step"] > pairs["step"].max() - RECENT_STEPS]
    values = recent[["positive_similarity", "negative_similarity"]].to_numpy(dtype=np.float64)
    values = values[np.isfinite(values)]
    return Measured(
        name="similarity_spread",
        value=float(values.std()) if len(values) > 1 else float("nan"),
        unit="cosine",
        n=len(values),
        first_step=int(recent["step"].min()) if len(recent) else None,
        last_step=int(recent["step"].max()) if len(recent) else None,
    )


def _at_plateau(frames: Frames, loss: float) -> bool:
    """Whether the loss stands where equal similarities put it; True where nobody knows that place.

    A loss with a very small temperature spreads its similarities as little, and learns all the same.
    """
    if frames.loss is None:
        return True
    sizes = (frames.column(name) for name in ("negatives_per_anchor", "batch_size"))
    negatives, batch = (float(np.median(values[-RECENT_STEPS:])) for values in sizes)
    known = plateau(frames.loss, negatives, batch)
    return known is None or abs(loss / known[1] - 1.0) < PLATEAU_TOLERANCE


def _base(frames: Frames) -> tuple[Change, ...]:
    if frames.loss is None or frames.loss.base != "triplet":
        return ()
    return (Change(name="loss.base", value="infonce", before="triplet"),)


COLLAPSE = Rule(
    name="collapse",
    title=mark("Embeddings that have collapsed into one point"),
    tables=("steps", "pairs"),
    needs=("steps.loss", "pairs.positive_similarity", "pairs.negative_similarity"),
    check=check,
    early=False,
)
