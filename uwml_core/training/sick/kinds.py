"""Every illness by name: what is wrong, how it comes about, and which rules must find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from uwml_core.data import PairDataset
from uwml_core.training.sick import data, parts
from uwml_core.weighting import LOSS_PRESETS

HEALTHY = "healthy-"


@dataclass(frozen=True, kw_only=True)
class SickKind:
    """One illness, or none.

    Attributes:
        title: what is wrong with the run.
        preset: named loss that it begins with.
        settings: settings that differ from ``run.SETTINGS``.
        pick: takes a part of the data.
        data: changes that part; None leaves it.
        parts: change the trainer.
        start: kind whose run of the same seed this one begins with; None from scratch.
        kept: whether the run keeps a checkpoint, for others to begin with.
        expects: rules, one of which must find it; empty for a healthy run.
    """

    title: str
    preset: str = "uwml"
    settings: Mapping[str, Any] = field(default_factory=dict)
    pick: Callable[[PairDataset], PairDataset] = data.small
    data: data.DataFault | None = None
    parts: tuple[parts.TrainerFault, ...] = ()
    start: str | None = None
    kept: bool = False
    expects: tuple[str, ...] = ()


_ILL: Mapping[str, SickKind] = {
    "shuffled-20": SickKind(
        title="the captions of 20 % of the training items are those of others",
        settings={"train.epochs": 10},
        data=data.shuffled(0.2),
        expects=("wrong_pairs",),
    ),
    "shuffled-50": SickKind(
        title="the captions of half of the training items are those of others",
        settings={"train.epochs": 10},
        data=data.shuffled(0.5),
        expects=("wrong_pairs",),
    ),
    "shuffled-20-large": SickKind(
        title="as shuffled-20 with all training items of the sample data",
        settings={"data.only": None, "data.batch_size": 128, "train.epochs": 6},
        pick=data.whole,
        data=data.shuffled(0.2),
        expects=("wrong_pairs",),
    ),
    "hidden-labels": SickKind(
        title="three pictures of each thing with the same captions and labels of their own",
        settings={"data.only": None},
        pick=data.several,
        data=data.unlabelled,
        expects=("false_negatives",),
    ),
    "duplicate-captions": SickKind(
        title="half of the training items share a caption with seven others and have labels of their own",
        data=data.duplicated,
        expects=("false_negatives",),
    ),
    "high-learning-rate": SickKind(
        title="a learning rate that is a hundred times too high, without clipping",
        settings={"train.learning_rate": 0.3, "train.gradient_clip": None},
        expects=("stuck", "collapse", "non_finite", "not_learning"),
    ),
    "low-learning-rate": SickKind(
        title="a learning rate that moves nothing",
        settings={"train.learning_rate": 1e-7},
        expects=("not_learning",),
    ),
    "small-temperature": SickKind(
        title="a temperature of 0.003",
        preset="infonce",
        settings={"loss.temperature": 0.003},
        expects=("small_temperature",),
    ),
    "large-temperature": SickKind(
        title="a temperature of 1, at which easy negatives hold the gradient",
        preset="infonce",
        settings={"loss.temperature": 1.0},
        expects=("easy_negatives",),
    ),
    "hardest-collapse": SickKind(
        title="a hinge over the hardest negatives from the first step on, at a high learning rate",
        preset="vsepp",
        settings={"train.learning_rate": 0.03},
        expects=("collapse",),
    ),
    "not-normalised": SickKind(
        title="a loop of one's own whose features are not normalized",
        preset="infonce",
        parts=(parts.not_normalised,),
        expects=("not_normalised",),
    ),
    "one-direction": SickKind(
        title="only the first direction is trained",
        settings={"loss.direction_mode": "fixed", "loss.direction_fixed": 1.0},
        expects=("one_direction",),
    ),
    "frozen-text": SickKind(
        title="the text encoder keeps its initial weights",
        parts=(parts.frozen_text,),
        expects=("frozen_encoder",),
    ),
    "half-precision-ties": SickKind(
        title="embeddings of a few bits, whose similarities tie", parts=(parts.coarse,), expects=("ties",)
    ),
    "stale-queue": SickKind(
        title="a queue of two epochs of embeddings that move fast",
        preset="infonce",
        settings={"loss.memory_batches": 30, "train.learning_rate": 0.01},
        expects=("stale_queue",),
    ),
    "accumulated-batch": SickKind(
        title="gradients of small batches are added up and claimed as one large batch",
        settings={"data.batch_size": 16, "train.epochs": 3},
        parts=(parts.accumulated,),
        expects=("claimed_batch",),
    ),
    "nan-at-step": SickKind(
        title="embeddings that are no numbers at step 60", parts=(parts.nan_at(60),), expects=("non_finite",)
    ),
    "steep-curve": SickKind(
        title="a curve of steepness 200 without clamp, and gradient through the weights",
        settings={
            "loss.steepness_start": 200.0,
            "loss.steepness_end": 200.0,
            "loss.hard_floor": 0.0,
            "loss.max_weight": 1e6,
        },
        parts=(parts.attached_weights,),
        expects=("few_pairs",),
    ),
    "nervous-controller": SickKind(
        title="a direction controller with a window of one step and no smoothing",
        settings={
            "loss.window": 1,
            "loss.update_every": 1,
            "loss.smoothing": 0.0,
            "loss.sensitivity": 0.01,
        },
        expects=("direction_jitter",),
    ),
    "falling-scale": SickKind(
        title="a learned logit scale that falls",
        preset="clip",
        parts=(parts.moving_scale(-0.02),),
        expects=("logit_scale",),
    ),
    "pinned-scale": SickKind(
        title="a learned logit scale that is pinned at its limit",
        preset="clip",
        parts=(parts.moving_scale(0.1, start=4.0),),
        expects=("logit_scale",),
    ),
    "overfitting": SickKind(
        title="after half of the steps the same 128 pairs again and again, with pictures of others",
        settings={"train.epochs": 12},
        parts=(parts.narrowed,),
        expects=("overfitting",),
    ),
    "memorised": SickKind(
        title="128 pairs of which none belongs together, learned by heart by a model that knew better",
        preset="infonce",
        settings={
            "train.epochs": 32,
            "train.warmup_epochs": 0,
            "train.learning_rate": 7e-4,
            "train.weight_decay": 0.0,
        },
        pick=data.few,
        data=data.shuffled(1.0),
        start=HEALTHY + "infonce",
        expects=("memorised",),
    ),
    "costly-telemetry": SickKind(
        title="telemetry that takes longer than the step",
        settings={"train.epochs": 3},
        parts=(parts.costly_telemetry,),
        expects=("telemetry_cost",),
    ),
    "slowing": SickKind(
        title="every step of the second half waits",
        settings={"train.epochs": 4},
        parts=(parts.slowing,),
        expects=("throughput",),
    ),
}

# From scratch these losses, which see the hardest negative alone, collapse on the sample data.
_ON_THE_HARDEST = ("vsepp", "wei2020_max", "wei2020_calibrated")
_FROM_SCRATCH: Mapping[str, SickKind] = {
    f"scratch-{name}": SickKind(
        title=f"{LOSS_PRESETS[name].title} from the first step on, without a warm-up by another loss",
        preset=name,
        expects=("collapse", "dead_zone"),
    )
    for name in _ON_THE_HARDEST
}
_HEALTHY: Mapping[str, SickKind] = {
    HEALTHY + name: SickKind(title=f"nothing, {preset.title}", preset=name, kept=name == "infonce")
    for name, preset in LOSS_PRESETS.items()
    if name not in _ON_THE_HARDEST
}
_CONTINUED: Mapping[str, SickKind] = {
    HEALTHY + name: SickKind(
        title=f"nothing, {LOSS_PRESETS[name].title} after InfoNCE",
        preset=name,
        settings=settings,
        start=HEALTHY + "infonce",
    )
    # the calibrated form loses recall from a rate of 1e-4 on
    for name, settings in zip(_ON_THE_HARDEST, ({}, {}, {"train.learning_rate": 3e-5}), strict=True)
}

KINDS: Mapping[str, SickKind] = {
    **_ILL,
    "shuffled-0": SickKind(
        title="nothing, as shuffled-20", settings={"train.epochs": 10}, data=data.shuffled(0.0)
    ),
    **_FROM_SCRATCH,
    **_HEALTHY,
    **_CONTINUED,
}
