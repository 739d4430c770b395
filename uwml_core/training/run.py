"""One training run from configuration to finished log."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from uwml_core.data import PairDataset, load_pairs
from uwml_core.losses import UWMLLoss
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.batches import BatchSource, Corpus
from uwml_core.training.checkpoint import Checkpoint, load_checkpoint
from uwml_core.training.config import TrainConfig
from uwml_core.training.encoders import build_model
from uwml_core.training.loop import Trainer, build_optimizer
from uwml_core.training.observer import Observer
from uwml_core.training.stop import StopRequest
from uwml_core.weighting import UWMLConfig

# Settings that may differ at a resume: they say where the run lies, not what it computes.
_FREE_AT_RESUME = frozenset({"train.resume", "run.root", "run.name"})


def run_training(config: TrainConfig, *, progress: bool = True) -> Path:
    """Train, log, and return the run's folder.

    One thread computes: the encoders are too small for more. The same configuration gives the same
    losses, bit for bit on one machine, and a resumed run goes on exactly where it was.

    Args:
        config: what to do; with ``train.resume`` its other settings must be those of the run.
        progress: show a bar on standard error.

    Returns:
        Folder of the run, whose status is then ``finished``.

    Raises:
        ValueError: for data, settings or a checkpoint that cannot be used, in one sentence.
        NonFiniteLossError: when loss or gradient stops being a number; status ``failed``.
        TrainingStopped: after SIGINT or SIGTERM, once everything was saved; status ``stopped``.
    """
    run, checkpoint = _earlier(config)
    dataset = load_pairs(config.data.path, split_column=config.data.split_column)
    corpus = Corpus(dataset)
    rows, val_rows = dataset.rows("train"), dataset.rows("val")
    batches = BatchSource(corpus, rows, batch_size=config.data.batch_size, seed=config.train.seed)
    config = _completed(config, dataset, batches.steps_per_epoch)
    if checkpoint is not None:
        _check_same(config, dataset, checkpoint)
    model = build_model(config.model.kind, config.model.dim, config.train.seed)
    loss = UWMLLoss(config.loss)
    optimizer = build_optimizer(model, loss, config.train)
    with _one_thread(), StopRequest() as stop, _open_log(config, run, checkpoint) as logger:
        _log_items(logger, dataset)
        trainer = Trainer(
            config=config,
            fingerprint=dataset.fingerprint,
            batches=batches,
            model=model,
            loss=loss,
            optimizer=optimizer,
            logger=logger,
            observer=Observer(corpus, rows, val_rows, logger, config.loss.modalities),
        )
        if checkpoint is not None:
            trainer.restore(checkpoint)
        trainer.run(stop, progress=progress)
        return logger.path


def resume_folder(resume: str, root: str) -> Path:
    """Folder of the run to continue: a path, or a run id within the logs folder."""
    path = Path(resume).expanduser()
    return path if path.is_dir() else Path(root).expanduser() / resume


def continued_config(resume: str, root: str) -> dict[str, Any]:
    """Settings of a run that is to be continued, plain values by section.

    Args:
        resume: as ``train.resume``.
        root: as ``run.root``.

    Raises:
        ValueError: if it has no checkpoint that can be read.
    """
    return load_checkpoint(resume_folder(resume, root)).config


def _earlier(config: TrainConfig) -> tuple[Path | None, Checkpoint | None]:
    if config.train.resume is None:
        return None, None
    run = resume_folder(config.train.resume, config.run.root)
    return run.absolute(), load_checkpoint(run)


def _completed(config: TrainConfig, dataset: PairDataset, steps_per_epoch: int) -> TrainConfig:
    """Fill in what follows from data and epochs, so that the log says it."""
    total = config.train.epochs * steps_per_epoch
    if config.loss.total_steps not in (None, total):
        raise ValueError(
            f"loss.total_steps={config.loss.total_steps} contradicts train.epochs={config.train.epochs} "
            f"of {steps_per_epoch} steps; leave it out"
        )
    named = config.loss.modalities != UWMLConfig().modalities
    modalities = config.loss.modalities if named else dataset.modalities
    loss = dataclasses.replace(config.loss, total_steps=total, modalities=modalities)
    return dataclasses.replace(config, loss=loss)


def _check_same(config: TrainConfig, dataset: PairDataset, checkpoint: Checkpoint) -> None:
    now, before = _flat(config.to_dict()), _flat(checkpoint.config)
    for key in sorted(now.keys() | before.keys()):
        if key not in _FREE_AT_RESUME and now.get(key) != before.get(key):
            raise ValueError(
                f"{key}={now.get(key)!r} differs from the run's {before.get(key)!r}; a resumed run keeps "
                "its settings, leave it out or start a new run"
            )
    if dataset.fingerprint != checkpoint.fingerprint:
        raise ValueError(f"data.path={config.data.path!r} has changed since the run began; start a new run")
    if checkpoint.step >= (config.loss.total_steps or 0):
        raise ValueError(f"resume={config.train.resume!r} has done all its {checkpoint.step} steps already")


def _flat(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{name}.{key}": value for name, values in sections.items() for key, value in values.items()}


def _open_log(config: TrainConfig, run: Path | None, checkpoint: Checkpoint | None) -> RunLogger:
    if run is not None and checkpoint is not None:
        return RunLogger(
            run.parent, run.name, modalities=config.loss.modalities, resume_from_step=checkpoint.step
        )
    return RunLogger(
        config.run.root,
        name=config.run.name,
        modalities=config.loss.modalities,
        config=config.to_dict(),
        seed=config.train.seed,
        total_steps=config.loss.total_steps,
    )


def _log_items(logger: RunLogger, dataset: PairDataset) -> None:
    try:
        logger.log_items(
            item_keys=dataset.item_keys,
            labels=dataset.labels.tolist(),
            captions=dataset.captions,
            groups=dataset.groups,
            splits=dataset.splits,
            thumbnails=dataset.thumbnails(),
            fingerprint=dataset.fingerprint,
        )
    except OSError as error:
        # pictures in the app are worth less than the training
        logger.log_event("items", f"items cannot be written: {error}", level="warning")
        warnings.warn(f"items cannot be written: {error}", stacklevel=2)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
