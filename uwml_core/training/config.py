"""Configuration of a training run: one frozen dataclass per section, one YAML, one set of names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from uwml_core.data import parse_only
from uwml_core.training.pretrained.names import IMAGE_LIBRARIES, TEXT_LIBRARIES, check_encoder
from uwml_core.training.probes import PROBES_PER_SPLIT
from uwml_core.training.settings import check_section
from uwml_core.weighting import UWMLConfig
from uwml_core.weighting.config import reject_unknown_keys


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What is trained on: a Parquet file, shipped set or layout of the field, and the pairs per step.

    ``pictures`` is their folder where they do not lie beside the list. Of a Parquet file alone:
    ``captions`` is their language; ``only`` takes the rows of one ``column=value``, None all of them.
    ``eval_split`` is evaluated after each epoch, None being ``val``, or ``test`` without one.
    ``decode`` needed decodes pictures for each batch anew, in the memory of a few batches; ``workers``
    processes then make batches ahead. ``swapped`` of the training rows get the captions of others, the same
    ones in every run: what wrong pairs do, tried on purpose.
    """

    path: str = "emoji_pairs"
    pictures: str | None = None
    only: str | None = None
    captions: str = "en"
    split_column: str = "split"
    batch_size: int = 128
    eval_split: str | None = None
    decode: str = "ahead"
    workers: int = 0
    swapped: float = 0.0

    def __post_init__(self) -> None:
        check_section(self, "data")
        if self.only is not None:
            parse_only(self.only)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Which encoders, and the size of the embedding that they share.

    ``image_encoder`` and ``text_encoder`` name frozen ones of other libraries, whose features a small
    projection learns from; None trains a small encoder from scratch. With ``fine_tune`` they learn too,
    after the frozen epochs.
    """

    kind: str = "small"
    dim: int = 128
    image_encoder: str | None = None
    text_encoder: str | None = None
    fine_tune: bool = False

    def __post_init__(self) -> None:
        check_section(self, "model")
        if self.image_encoder is not None:
            check_encoder(self.image_encoder, IMAGE_LIBRARIES, "model.image_encoder")
        if self.text_encoder is not None:
            check_encoder(self.text_encoder, TEXT_LIBRARIES, "model.text_encoder")
        if self.fine_tune and self.image_encoder is None and self.text_encoder is None:
            raise ValueError(
                "model.fine_tune=True has nothing to tune; name model.image_encoder or model.text_encoder"
            )


@dataclass(frozen=True, kw_only=True)
class OptimizationConfig:
    """How long and how fast; ``gradient_clip`` None clips nothing, ``resume`` continues a run.

    ``init_from`` starts with the weights of another run; ``warmup_epochs`` of the epochs train the last
    linear maps alone, None being 2 after ``init_from`` and with ``model.fine_tune``, and 0 from scratch.
    ``backbone_share`` of the learning rate is that of the encoders that ``model.fine_tune`` lets learn.
    ``snapshot_items`` of each split are followed: a snapshot takes 0.5 kB of disk an item at 128 numbers.
    ``pairs_every`` k keeps the rows of the pairs of each k-th step in the log; its rollups count every step.
    ``device`` auto takes a GPU for each process that torchrun starts, where there are as many, else the
    processor. ``precision`` is that of the encoders while they learn: the loss and evaluations stay in
    float32. ``compile`` compiles the encoders with ``torch.compile``.
    """

    epochs: int = 8
    seed: int = 0
    learning_rate: float = 3e-3
    weight_decay: float = 0.05
    gradient_clip: float | None = 1.0
    snapshot_items: int = PROBES_PER_SPLIT
    pairs_every: int = 1
    warmup_epochs: int | None = None
    backbone_share: float = 0.1
    init_from: str | None = None
    resume: str | None = None
    device: str = "auto"
    precision: str = "float32"
    compile: bool = False

    def __post_init__(self) -> None:
        check_section(self, "train")
        if self.warmup_epochs is not None and self.warmup_epochs > self.epochs:
            raise ValueError(
                f"train.warmup_epochs={self.warmup_epochs} is more than train.epochs={self.epochs}; "
                "expected at most as many"
            )


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Where the run log goes, what the run is called, and the id of the run whose settings it tries anew.

    ``copy_to`` is the URL of a logs folder into which the run is copied while it grows.
    """

    root: str = "logs"
    name: str | None = None
    parent: str | None = None
    copy_to: str | None = None

    def __post_init__(self) -> None:
        check_section(self, "run")


class _Section(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """A whole training run. ``SETTINGS`` and ``uwml_core.weighting.PARAMETERS`` say what is allowed.

    Raises:
        ValueError: naming section, key, value and what is expected.

    Example:
        >>> TrainConfig.from_dict({"train": {"epochs": 2}}).train.epochs
        2
        >>> TrainConfig.from_dict({"train": {"epoch": 2}})
        Traceback (most recent call last):
        ValueError: train.epoch is not a known setting; did you mean train.epochs?
    """

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    loss: UWMLConfig = field(default_factory=UWMLConfig)
    train: OptimizationConfig = field(default_factory=OptimizationConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values by section, which ``from_dict`` and YAML take back."""
        sections: dict[str, dict[str, Any]] = {
            name: dataclasses.asdict(getattr(self, name)) for name in ("data", "model", "train", "run")
        }
        sections["loss"] = self.loss.to_dict()
        return {name: sections[name] for name in section_names()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """Build from plain values by section; what is missing keeps its default.

        Raises:
            ValueError: for an unknown section or key, or a value out of range.
        """
        reject_unknown_keys(values, list(section_names()), where="config")
        return cls(
            data=_section(DataConfig, "data", values),
            model=_section(ModelConfig, "model", values),
            loss=_section(UWMLConfig, "loss", values),
            train=_section(OptimizationConfig, "train", values),
            run=_section(RunConfig, "run", values),
        )


def section_names() -> tuple[str, ...]:
    """Sections of the configuration, in the order of the YAML."""
    return tuple(f.name for f in dataclasses.fields(TrainConfig))


_T = TypeVar("_T")


def _section(kind: type[_T], name: str, values: Mapping[str, Any]) -> _T:
    given = values.get(name)
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ValueError(f"{name}={given!r} is not a section; expected keys and values under {name}:")
    reject_unknown_keys(given, [f.name for f in dataclasses.fields(kind)], where=name)  # type: ignore[arg-type]
    return kind(**given)
