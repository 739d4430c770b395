"""Train a kind of run."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uwml_core.data import PairDataset
from uwml_core.training.config import TrainConfig
from uwml_core.training.intervention import Intervention
from uwml_core.training.loop import NonFiniteLossError, Trainer
from uwml_core.training.run import run_training
from uwml_core.training.sick.kinds import KINDS, SickKind
from uwml_core.weighting import LOSS_PRESETS

SETTINGS: Mapping[str, Any] = {
    "data.path": "emoji_pairs",
    "data.only": "source=noto",
    "data.batch_size": 64,
    "model.dim": 64,
    "train.epochs": 8,
    "train.snapshot_items": 150,
}


class Sickness(Intervention):
    """Brings a kind of illness into a run.

    Args:
        kind: which one.
        seed: of what is drawn.
    """

    def __init__(self, kind: SickKind, seed: int) -> None:
        self._kind, self._seed = kind, seed

    def data(self, dataset: PairDataset) -> PairDataset:
        """A small part of the data, with what is wrong with them."""
        part = self._kind.pick(dataset)
        return part if self._kind.data is None else self._kind.data(part, self._seed)

    def trainer(self, trainer: Trainer) -> None:
        """Put in what is wrong with the trainer, and leave out checkpoints that nobody needs."""
        if not self._kind.kept:
            trainer.save = trainer.logger.flush  # type: ignore[method-assign,assignment]
        for change in self._kind.parts:
            change(trainer)


def sick_run(
    name: str, *, root: str | Path, seed: int = 0, run_id: str | None = None, progress: bool = False
) -> Path:
    """Train one kind of run, a few seconds long.

    One that begins with another kind finds its run of the same seed in the logs folder, or trains it first.

    Args:
        name: one of ``KINDS``.
        root: the logs folder.
        seed: of the training and of what is drawn to make it ill.
        run_id: folder of the run; ``<name>-seed<seed>`` when None.
        progress: show a bar on standard error.

    Returns:
        Folder of the run. A training that ends with a loss or gradient that is no number leaves its log.

    Raises:
        ValueError: if the kind is unknown, naming the nearest, or the run exists.
        OSError: if the logs folder cannot be written.
    """
    if name not in KINDS:
        near = difflib.get_close_matches(name, KINDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(KINDS)}"
        raise ValueError(f"kind={name!r} is unknown; {hint}")
    kind, run_id = KINDS[name], run_id or f"{name}-seed{seed}"
    config = sick_config(kind, root=root, seed=seed, name=run_id)
    if kind.start is not None and not _started_from(kind.start, root, seed).is_dir():
        sick_run(kind.start, root=root, seed=seed, progress=progress)
    with contextlib.suppress(NonFiniteLossError):
        run_training(config, run_id=run_id, progress=progress, intervention=Sickness(kind, seed))
    return Path(root) / run_id


def _started_from(start: str, root: str | Path, seed: int) -> Path:
    return Path(root) / f"{start}-seed{seed}"


def sick_config(kind: SickKind, *, root: str | Path, seed: int, name: str) -> TrainConfig:
    """Configuration of a kind of run."""
    loss = LOSS_PRESETS[kind.preset].config.to_dict()
    sections: dict[str, dict[str, Any]] = {"loss": loss, "train": {"seed": seed}}
    sections["run"] = {"root": str(root), "name": name}
    if kind.start is not None:
        sections["train"]["init_from"] = str(_started_from(kind.start, root, seed))
    for key, value in {**SETTINGS, **kind.settings}.items():
        section, _, setting = key.partition(".")
        sections.setdefault(section, {})[setting] = value
    return TrainConfig.from_dict(sections)
