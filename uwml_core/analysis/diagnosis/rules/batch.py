"""Negatives: fewer than the batch that is claimed, or none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from uwml_core.analysis.diagnosis.finding import Change, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.series import measured, tail, thinned
from uwml_core.analysis.diagnosis.thresholds import BATCH_SHARE, NO_NEGATIVE_LIMIT
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, mark, ngettext

# What other programs call the pairs of one step, and what multiplies them.
_SIZES = ("effective_batch_size", "global_batch_size", "per_device_train_batch_size", "batch_size")
_FACTORS = ("gradient_accumulation_steps", "accumulate_grad_batches", "accum_freq", "world_size")


def check_claimed(frames: Frames) -> list[Finding]:
    """Find an effective batch far above the candidates that an anchor is held against."""
    claimed = _claimed(frames)
    if not claimed > 1:
        raise NotApplicable(_("Neither log nor configuration claim an effective batch."))
    negatives = measured(frames, "negatives_per_anchor", frames.column("negatives_per_anchor"), tail(frames))
    share = (negatives.value + 1.0) / claimed
    if not share < BATCH_SHARE:
        return []
    return [
        Finding(
            rule=CLAIMED_BATCH.name,
            severity="warning",
            confidence=confidence(share, BATCH_SHARE, 0.0),
            title=_(
                "The effective batch is {claimed}, but an anchor meets {negatives} negatives (last {n} "
                "steps)."
            ).format(claimed=fixed(claimed, 0), negatives=fixed(negatives.value, 0), n=f"{negatives.n:,}"),
            cause=_(
                "Accumulated gradients, or processes that do not gather their embeddings, make the step "
                "larger and give the loss no more negatives."
            ),
            advice=_("Take gradient caching, gather the embeddings, or a queue; or claim the small batch."),
            numbers=(negatives, Measured(name="claimed_batch", value=claimed, unit="pairs")),
            evidence=thinned(
                frames, {"negatives_per_anchor": frames.column("negatives_per_anchor")}, limit=claimed - 1,
                limit_name=_("claimed"), unit="negatives",
            ),
            changes=(Change(name="loss.accumulate_batches", value=max(2, round(1 / share)), before=1),),
            link=PageLink(page="training"),
        )
    ]  # fmt: skip


def _claimed(frames: Frames) -> float:
    if frames.logged("steps.effective_batch_size"):
        return float(np.nanmedian(frames.column("effective_batch_size")))
    flat = _flat(frames.config)
    size = next((flat[name] for name in _SIZES if _is_number(flat.get(name))), math.nan)
    if frames.loss is not None and "data" in frames.config:
        # our trainer's batch is whole: its chunks share their negatives
        # a batch is no larger than the training set; NaN stays NaN
        return float(np.minimum(size, np.nanmedian(frames.column("batch_size"))))
    return float(size * math.prod(flat[name] for name in _FACTORS if _is_number(flat.get(name))))


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    inner = [_flat(value) for value in config.values() if isinstance(value, Mapping)]
    own = {str(name): value for name, value in config.items() if not isinstance(value, Mapping)}
    return {**{name: value for part in inner for name, value in part.items()}, **own}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_none(frames: Frames) -> list[Finding]:
    """Find steps in which anchors have no negative at all: they add nothing to the loss."""
    counts = np.nansum([frames.column(f"no_negative_count_{d}") for d in frames.directions], axis=0)
    share = counts / np.maximum(2.0 * frames.column("batch_size"), 1.0)
    value = float(np.nanmean(share)) if np.isfinite(share).any() else 0.0
    if not value > NO_NEGATIVE_LIMIT:
        return []
    step = frames.steps["step"]
    return [
        Finding(
            rule=NO_NEGATIVES.name,
            severity="warning",
            confidence=confidence(value, NO_NEGATIVE_LIMIT, 10 * NO_NEGATIVE_LIMIT),
            title=ngettext(
                "{share} of the anchors of {n} step have no negative and teach nothing.",
                "{share} of the anchors of {n} steps have no negative and teach nothing.",
                len(step),
            ).format(share=percent(value, 1), n=f"{len(step):,}"),
            cause=_("Batches of one label, or of one pair: a last batch that is smaller than the others."),
            advice=_("Mix the labels within a batch, make batches larger, drop the last one."),
            numbers=(
                Measured(
                    name="no_negative_share", value=value, unit="1", n=len(step),
                    first_step=int(step.iloc[0]),
                    last_step=int(step.iloc[-1]),
                ),
            ),
            evidence=thinned(frames, {"no_negative_share": share}, unit="1"),
            link=PageLink(page="training"),
        )
    ]  # fmt: skip


CLAIMED_BATCH = Rule(
    name="claimed_batch",
    title=mark("Fewer negatives than the batch that is claimed"),
    tables=("steps",),
    needs=("steps.negatives_per_anchor",),
    check=check_claimed,
)
NO_NEGATIVES = Rule(
    name="no_negatives",
    title=mark("Anchors without negatives"),
    tables=("steps",),
    needs=("steps.no_negative_count_d", "steps.batch_size"),
    check=check_none,
)
