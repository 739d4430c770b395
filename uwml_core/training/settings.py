"""What every setting of a training run but the loss's means and allows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from uwml_core.data import DECODE, LANGUAGES
from uwml_core.training.distributed import DEVICES
from uwml_core.training.encoders import KINDS
from uwml_core.training.precision import PRECISIONS
from uwml_core.weighting import Parameter

SETTINGS: Mapping[str, Parameter] = {
    "data.captions": Parameter(meaning="language of the captions", choices=LANGUAGES),
    "data.batch_size": Parameter(meaning="pairs per step", low=2),
    "data.decode": Parameter(meaning="when pictures are decoded", choices=DECODE),
    "data.workers": Parameter(meaning="processes that make batches ahead", low=0),
    "data.swapped": Parameter(
        meaning="share of the training rows that get the captions of others", low=0.0, high=1.0
    ),
    "model.kind": Parameter(meaning="encoders", choices=KINDS),
    "model.dim": Parameter(meaning="size of the shared embedding", low=1),
    "train.epochs": Parameter(meaning="passes over the training split", low=1),
    # what generators of random numbers take
    "train.seed": Parameter(meaning="seed of initial weights, order and captions", low=0, high=2**63 - 1),
    "train.learning_rate": Parameter(meaning="learning rate after the warm-up", low=0.0, low_open=True),
    "train.weight_decay": Parameter(meaning="decoupled weight decay of AdamW", low=0.0),
    "train.gradient_clip": Parameter(meaning="largest gradient norm", low=0.0, low_open=True),
    "train.snapshot_items": Parameter(meaning="items of each split whose embeddings are kept", low=2),
    "train.warmup_epochs": Parameter(meaning="first epochs, in which the backbones are frozen", low=0),
    "train.backbone_share": Parameter(
        meaning="learning rate of fine-tuned encoders, as a share of that of the projections",
        low=0.0,
        high=1.0,
        low_open=True,
    ),
    "train.pairs_every": Parameter(meaning="each so many steps the log keeps the rows of all pairs", low=1),
    "train.device": Parameter(meaning="where it computes", choices=DEVICES),
    "train.precision": Parameter(meaning="numbers that the encoders compute in", choices=PRECISIONS),
}
_INTEGERS = frozenset(
    {
        "data.batch_size",
        "data.workers",
        "model.dim",
        "train.epochs",
        "train.seed",
        "train.snapshot_items",
        "train.warmup_epochs",
        "train.pairs_every",
    }
)
_FLAGS = frozenset({"model.fine_tune", "train.compile"})
_OPTIONAL = frozenset(
    {
        "data.eval_split",
        "data.only",
        "data.pictures",
        "model.image_encoder",
        "model.text_encoder",
        "train.gradient_clip",
        "train.init_from",
        "train.warmup_epochs",
        "train.resume",
        "run.name",
        "run.parent",
        "run.copy_to",
    }
)
_TEXTS = frozenset(
    {
        "data.path",
        "data.eval_split",
        "data.only",
        "data.pictures",
        "data.split_column",
        "model.image_encoder",
        "model.text_encoder",
        "train.init_from",
        "train.resume",
        "run.root",
        "run.name",
        "run.parent",
        "run.copy_to",
    }
)


def check_section(section: Any, name: str) -> None:
    """Check every value of a section's dataclass.

    Args:
        section: its instance.
        name: what the section is called.

    Raises:
        ValueError: for the first value that is not allowed, naming its key and what is.
    """
    for entry in dataclasses.fields(section):
        key, value = f"{name}.{entry.name}", getattr(section, entry.name)
        if value is None and key in _OPTIONAL:
            continue
        if key in _TEXTS:
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"{key}={value!r} is not usable; expected a text")
        elif key in _FLAGS:
            if not isinstance(value, bool):
                raise ValueError(f"{key}={value!r} is not usable; expected true or false")
        else:
            _check_range(key, value)


def _check_range(key: str, value: Any) -> None:
    parameter = SETTINGS[key]
    if not parameter.allows(value) or (key in _INTEGERS and not isinstance(value, int)):
        whole = "a whole number " if key in _INTEGERS else ""
        raise ValueError(f"{key}={value!r} is out of range; expected {whole}{parameter.expectation()}")
