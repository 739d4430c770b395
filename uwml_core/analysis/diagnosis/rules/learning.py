"""A loss that does not move, and one that jumps and does not come back."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.diagnosis.finding import Change, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.rules.collapse import COLLAPSE
from uwml_core.analysis.diagnosis.series import current, lowered, measured, tail, thinned
from uwml_core.analysis.diagnosis.thresholds import (
    CHANCE_FACTOR,
    FEWEST_TREND_STEPS,
    STUCK_LOSS,
    UNSTABLE_CERTAIN,
    UNSTABLE_LIMIT,
    VANISHED,
)
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, mark


def check_learning(frames: Frames) -> list[Finding]:
    """Find training anchors that are right no more often than by chance, without collapse."""
    if len(frames.steps) < FEWEST_TREND_STEPS:
        raise NotApplicable(_("Fewer than {needed} steps.").format(needed=FEWEST_TREND_STEPS))
    accuracy = np.nanmean(_both(frames, "accuracy"), axis=0)
    found = measured(frames, "accuracy", accuracy, tail(frames), "1")
    chance = 1.0 / (
        measured(frames, "negatives", frames.column("negatives_per_anchor"), tail(frames)).value + 1.0
    )
    if not found.value < CHANCE_FACTOR * chance or COLLAPSE.check(frames):
        return []
    rate = current(frames, "train.learning_rate")
    return [
        Finding(
            rule=NOT_LEARNING.name,
            severity="serious",
            confidence=confidence(found.value, CHANCE_FACTOR * chance, chance),
            title=_(
                "The model does not learn: {accuracy} of the training anchors are right in the last {n} "
                "steps, chance is {chance}."
            ).format(accuracy=percent(found.value, 1), n=f"{found.n:,}", chance=percent(chance, 1)),
            cause=_(
                "A learning rate that is far too low or too high, pairs that do not belong together, or "
                "inputs that do not reach the encoders."
            ),
            advice=_(
                "Train on a hundred pairs until they are learned by heart; then look at learning rate and "
                "data."
            ),
            numbers=(found, Measured(name="chance", value=chance, unit="1", n=found.n)),
            evidence=thinned(frames, {"accuracy": accuracy}, unit="1", limit=chance, limit_name=_("chance")),
            changes=(Change(name="train.learning_rate", value=3e-3, before=rate),) if rate != 3e-3 else (),
            link=PageLink(page="training"),
        )
    ]


def _both(frames: Frames, name: str) -> np.ndarray:
    values = np.array([frames.column(f"{name}_{d}") for d in frames.directions])
    values[:, np.isnan(values).all(axis=0)] = 0.0
    return values


def check_unstable(frames: Frames) -> list[Finding]:
    """Find gradients far above their median, again and again, in the second half.

    The ratio is that of the calmer part of it, so that one change, after which all are small, does not count.
    """
    norm = frames.column("gradient_norm")
    late = norm[len(norm) // 2 :]
    late = late[np.isfinite(late)]
    if len(late) < FEWEST_TREND_STEPS:
        raise NotApplicable(_("Fewer than {needed} steps.").format(needed=FEWEST_TREND_STEPS))
    high = min(float(np.quantile(part, 0.95)) for part in np.array_split(late, 2))
    ratio = high / max(float(np.median(late)), 1e-12)
    if not ratio > UNSTABLE_LIMIT:
        return []
    step = frames.steps["step"]
    number = Measured(
        name="gradient_ratio", value=ratio, n=len(late), first_step=int(step.iloc[len(norm) // 2]),
        last_step=int(step.iloc[-1]),
    )  # fmt: skip
    return [
        Finding(
            rule=UNSTABLE.name,
            severity="warning",
            confidence=confidence(ratio, UNSTABLE_LIMIT, UNSTABLE_CERTAIN),
            title=_(
                "The gradient jumps: one step in twenty has {ratio} times the median norm (second half, n = "
                "{n} steps)."
            ).format(ratio=fixed(ratio, 1), n=f"{len(late):,}"),
            cause=_("A learning rate that is too high, no clipping, or single pairs that dominate a batch."),
            advice=_("Lower the learning rate or clip the gradient."),
            numbers=(number,),
            evidence=thinned(frames, {"gradient_norm": norm}),
            changes=(
                *lowered("train.learning_rate", current(frames, "train.learning_rate"), 0.3),
                Change(name="train.gradient_clip", value=1.0, before=current(frames, "train.gradient_clip")),
            ),
            link=PageLink(page="training"),
        )
    ]


def check_stuck(frames: Frames) -> list[Finding]:
    """Find a gradient norm at a small part of that of the first steps while the loss is far from learned."""
    norm, loss = frames.column("gradient_norm"), frames.column("loss")
    if len(norm) < FEWEST_TREND_STEPS:
        raise NotApplicable(_("Fewer than {needed} steps.").format(needed=FEWEST_TREND_STEPS))
    first = measured(frames, "first_gradient_norm", norm, slice(0, 2))
    last = measured(frames, "gradient_norm", norm, tail(frames))
    begun, now = (
        measured(frames, "first_loss", loss, slice(0, 5)),
        measured(frames, "loss", loss, tail(frames)),
    )
    vanished = last.value / first.value
    if not (vanished < VANISHED and now.value > STUCK_LOSS * begun.value) or COLLAPSE.check(frames):
        return []
    return [
        Finding(
            rule=STUCK.name,
            severity="serious",
            confidence=confidence(vanished, VANISHED, 0.0),
            title=_(
                "Training is stuck: the gradient norm has fallen from {first} to {last} while the loss is "
                "still {loss} (from {begun}; medians of {n} steps)."
            ).format(
                first=fixed(first.value, 2), last=fixed(last.value, 3), loss=fixed(now.value, 2),
                begun=fixed(begun.value, 2), n=f"{last.n:,}",
            ),
            cause=_(
                "First steps that were far too large: the features before normalization have grown so long "
                "that a step turns them no more."
            ),
            advice=_(
                "Lower the learning rate, warm it up, clip the gradient; start again, as this does not heal."
            ),
            numbers=(first, last, begun, now),
            evidence=thinned(frames, {"gradient_norm": norm, "loss": loss}),
            changes=(
                *lowered("train.learning_rate", current(frames, "train.learning_rate"), 0.1),
                Change(name="train.gradient_clip", value=1.0, before=current(frames, "train.gradient_clip")),
            ),
            link=PageLink(page="training"),
        )
    ]  # fmt: skip


STUCK = Rule(
    name="stuck",
    title=mark("A gradient that has vanished"),
    tables=("steps", "pairs"),
    needs=("steps.gradient_norm", "steps.loss"),
    check=check_stuck,
)
NOT_LEARNING = Rule(
    name="not_learning",
    title=mark("A model that does not learn"),
    tables=("steps", "pairs"),
    needs=("steps.accuracy_d", "steps.negatives_per_anchor"),
    check=check_learning,
    early=False,
)
UNSTABLE = Rule(
    name="unstable",
    title=mark("A gradient that jumps"),
    tables=("steps",),
    needs=("steps.gradient_norm",),
    check=check_unstable,
)
