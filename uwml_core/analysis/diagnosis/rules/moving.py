"""Embeddings that stand still, or move too fast for a queue of old ones."""

from __future__ import annotations

import pandas as pd

from uwml_core.analysis.diagnosis.finding import Change, Evidence, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.series import current
from uwml_core.analysis.diagnosis.thresholds import MOVING, QUEUE_SIMILARITY, STILL
from uwml_core.analysis.text import fixed, modality_name
from uwml_core.i18n import _, mark


def check_frozen(frames: Frames) -> list[Finding]:
    """Find a modality whose embeddings stay as they are while the other's move."""
    moves = _wide(frames)
    if len(moves) < 2 or moves.shape[1] < 2:
        raise NotApplicable(_("Fewer than three snapshots of both modalities."))
    names = [str(name) for name in moves]
    least = {name: float(moves[name].min()) for name in names}
    name, other = max(names, key=least.__getitem__), min(names, key=least.__getitem__)
    if not (least[name] > STILL and moves[other].median() < MOVING):
        return []
    rows = frames.drift[frames.drift["modality"] == name]
    return [
        Finding(
            rule=FROZEN.name,
            severity="warning",
            confidence=1.0,
            title=_(
                "The {still} embeddings stand still: over {snapshots} snapshots their cosine to the one "
                "before is never below {least}, that of {moving} goes down to {other}."
            ).format(
                still=modality_name(name),
                snapshots=len(moves) + 1,
                least=fixed(least[name], 5),
                moving=modality_name(other),
                other=fixed(least[other], 3),
            ),
            cause=_(
                "The encoder is frozen, its parameters are not in the optimizer, or its gradient is cut off."
            ),
            advice=_("If that is not meant: let its parameters learn, and hand them to the optimizer."),
            numbers=(
                Measured(
                    name="least_similarity", value=least[name], unit="cosine", n=int(rows["n"].min()),
                    first_step=int(rows["step"].min()), last_step=int(rows["step"].max()),
                ),
                Measured(name="other_similarity", value=least[other], unit="cosine", n=len(rows)),
            ),
            evidence=Evidence(frame=moves.reset_index(), x="step", y=tuple(names), unit="cosine"),
            changes=_unfrozen(frames),
            link=PageLink(page="embedding_map"),
        )
    ]  # fmt: skip


def _unfrozen(frames: Frames) -> tuple[Change, ...]:
    epochs = current(frames, "train.warmup_epochs")
    return (Change(name="train.warmup_epochs", value=0, before=epochs),) if epochs else ()


def _wide(frames: Frames) -> pd.DataFrame:
    """Cosine to the snapshot before, a column per modality, from the first epoch's end on."""
    drift = frames.drift
    wide = drift.pivot_table(index="step", columns="modality", values="similarity")
    wide.columns.name = None
    return wide.dropna()


def check_queue(frames: Frames) -> list[Finding]:
    """Find a queue that holds embeddings of epochs ago while embeddings move far within an epoch."""
    steps, moves = frames.steps, _moves_with_queue(frames)
    length = current(frames, "loss.memory_batches")
    per_epoch = float(steps.groupby("epoch").size().median())
    age, within = length / per_epoch, float(moves.mean())
    oldest = max(within, 0.0) ** age
    if not oldest < QUEUE_SIMILARITY:
        return []
    batches = max(1, int(per_epoch // 4))
    return [
        Finding(
            rule=STALE_QUEUE.name,
            severity="warning",
            confidence=confidence(oldest, QUEUE_SIMILARITY, 0.0),
            title=_(
                "The queue is stale: its oldest embeddings are {age} epochs old, and within an epoch an "
                "embedding's cosine to itself falls to {cosine} (n = {n} epochs)."
            ).format(age=fixed(age, 1), cosine=fixed(within, 2), n=len(moves)),
            cause=_(
                "The model moves faster than the queue is renewed: old entries are no negatives of this "
                "model."
            ),
            advice=_("Make the queue shorter, begin it later, or lower the learning rate."),
            numbers=(
                Measured(name="queue_age_epochs", value=age, unit="epoch", n=len(steps)),
                Measured(
                    name="similarity_within_epoch", value=within, unit="cosine", n=len(moves),
                    first_step=int(moves.index[0]), last_step=int(moves.index[-1]),
                ),
            ),
            evidence=Evidence(
                frame=moves.rename("similarity").reset_index(), x="step", y=("similarity",), unit="cosine",
            ),
            changes=(Change(name="loss.memory_batches", value=batches, before=length),),
            link=PageLink(page="embedding_map"),
        )
    ]  # fmt: skip


def _moves_with_queue(frames: Frames) -> pd.Series[float]:
    """Cosine to the snapshot before of the modality that moves more; the index is the step."""
    if frames.loss is None or not frames.loss.memory_batches:
        raise NotApplicable(_("There is no memory queue."))
    if frames.drift.empty or not frames.logged("steps.epoch"):
        raise NotApplicable(_("Fewer than two snapshots."))
    # the first epoch starts from nothing, so that everything moves
    moves = _wide(frames).min(axis=1).iloc[1:]
    if moves.empty:
        raise NotApplicable(_("Fewer than two snapshots."))
    return moves


FROZEN = Rule(
    name="frozen_encoder",
    title=mark("An encoder that does not learn"),
    tables=("snapshots",),
    needs=("drift.similarity",),
    check=check_frozen,
    early=False,
)
STALE_QUEUE = Rule(
    name="stale_queue",
    title=mark("A queue that is stale"),
    tables=("snapshots", "steps"),
    needs=("steps.step",),
    check=check_queue,
)
