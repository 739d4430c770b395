"""One training run from configuration to finished log."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uwml_core.data import PairDataset, open_data, swap_captions
from uwml_core.losses import UWMLLoss
from uwml_core.runlog.destination import reached
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.batch_norm import share_statistics
from uwml_core.training.batches import BatchSource
from uwml_core.training.checkpoint import Checkpoint, load_checkpoint
from uwml_core.training.config import DataConfig, TrainConfig
from uwml_core.training.distributed import Processes, processes_of_torchrun
from uwml_core.training.encoders import build_model
from uwml_core.training.inputs import batches_of
from uwml_core.training.intervention import Intervention
from uwml_core.training.loop import Trainer, as_called, build_optimizer
from uwml_core.training.observer import Bystander
from uwml_core.training.observing import observer_of
from uwml_core.training.precision import Precision
from uwml_core.training.prefetch import PrefetchedBatches
from uwml_core.training.start import resume_folder, start_from, with_warmup
from uwml_core.training.stop import StopRequest
from uwml_core.training.threads import one_thread
from uwml_core.weighting import UWMLConfig

_NOTHING = Intervention()
# Settings that may differ at a resume: they say where the run lies and who reads, not what is computed.
_FREE_AT_RESUME = frozenset(
    {"train.resume", "run.root", "run.name", "run.parent", "run.copy_to", "data.decode", "data.workers"}
)


def run_training(
    config: TrainConfig,
    *,
    run_id: str | None = None,
    progress: bool = True,
    intervention: Intervention = _NOTHING,
    alert_seconds: float | None = None,
) -> Path:
    """Train, log, and return the run's folder.

    One thread computes: the encoders are too small for more. The same configuration gives the same
    losses, bit for bit on one machine, and a resumed run goes on exactly where it was.

    Args:
        config: what to do; with ``train.resume`` its other settings must be those of the run.
        run_id: folder name of a new run; made from the time when None.
        progress: show a bar on standard error.
        intervention: what an experiment changes in the data or the trainer.
        alert_seconds: as for ``RunLogger``.

    Returns:
        Folder of the run, whose status is then ``finished``.

    Raises:
        ValueError: for data, settings or a checkpoint that cannot be used, in one sentence.
        NonFiniteLossError: when loss or gradient stops being a number; status ``failed``.
        TrainingStopped: after SIGINT or SIGTERM, once a checkpoint was tried; status ``stopped``.
        OSError: if the logs folder cannot be written.
    """
    _check_copy(config.run.copy_to)
    with one_thread(), processes_of_torchrun(device=config.train.device) as processes:
        precision = Precision(config.train.precision, processes.device)
        run, checkpoint = _earlier(config)
        decoded = config.model.image_encoder is None
        dataset = intervention.data(load_data(config.data, decoded=decoded))
        batches = batches_of(dataset, config, processes, progress=progress and processes.first)
        config = _completed(config, dataset, batches.steps_per_epoch)
        if checkpoint is not None:
            _check_same(config, dataset, checkpoint)
        with (
            StopRequest() as stop,
            _opened(config, run, checkpoint, run_id, processes, alert_seconds=alert_seconds) as logger,
        ):
            trainer = _trainer(
                config,
                dataset,
                batches=batches,
                processes=processes,
                precision=precision,
                logger=logger,
                stop=stop,
            )
            intervention.trainer(trainer)
            if checkpoint is not None:
                trainer.restore(checkpoint)
            trainer.run(progress=progress and processes.first)
            return logger.path


def _check_copy(copy_to: str | None) -> None:
    """Refuse a place out of reach before training begins; later it is tried again and again."""
    if copy_to is not None:
        try:
            reached(copy_to)
        except ValueError as error:
            raise ValueError(f"run.copy_to={copy_to!r} is not usable: {error}") from error


def _trainer(
    config: TrainConfig,
    dataset: PairDataset,
    *,
    batches: BatchSource | PrefetchedBatches,
    processes: Processes,
    precision: Precision,
    logger: RunLogger,
    stop: StopRequest,
) -> Trainer:
    settings = config.model
    corpus = batches.corpus
    model = build_model(
        settings.kind, settings.dim, config.train.seed, corpus.feature_sizes, corpus.backbones
    )
    model.to(processes.device)
    model.computes_in = precision.computes_in
    start_from(model, config)
    if config.loss.accumulate_batches > 1:
        share_statistics(model)
    loss = UWMLLoss(config.loss).to(processes.device)
    return Trainer(
        config=config,
        fingerprint=dataset.fingerprint,
        processes=processes,
        batches=batches,
        model=model,
        encode=as_called(model, processes, config.train),
        precision=precision,
        loss=loss,
        optimizer=build_optimizer(model, loss, config.train),
        logger=logger,
        observer=observer_of(config, dataset, corpus, logger) if processes.first else Bystander(),
        stop=stop,
    )


def load_data(config: DataConfig, path: str | None = None, *, decoded: bool = True) -> PairDataset:
    """The data of a configuration.

    Args:
        config: section ``data``.
        path: where they lie now; None where the configuration says.
        decoded: False where features will stand for the pictures, which are then not decoded.

    Raises:
        DataError, ValueError: as ``open_data``.
    """
    dataset = open_data(
        config.path if path is None else path,
        split_column=config.split_column,
        captions=config.captions,
        only=config.only,
        pictures=config.pictures,
        decode=config.decode if decoded else "needed",
    )
    return swap_captions(dataset, config.swapped)


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
    # the default stands for "what the data shows"
    if config.loss.modalities not in (UWMLConfig().modalities, dataset.modalities):
        raise ValueError(
            f"loss.modalities={list(config.loss.modalities)} contradicts data.path={config.data.path!r}, "
            f"whose rows pair {dataset.modality} and text; leave it out"
        )
    loss = dataclasses.replace(config.loss, total_steps=total, modalities=dataset.modalities)
    return dataclasses.replace(
        config, loss=loss, train=with_warmup(config.train, trained=config.model.fine_tune)
    )


def _check_same(config: TrainConfig, dataset: PairDataset, checkpoint: Checkpoint) -> None:
    # settings that are younger than the checkpoint had their defaults then
    now, before = (_flat(c.to_dict()) for c in (config, TrainConfig.from_dict(checkpoint.config)))
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


def _opened(
    config: TrainConfig,
    run: Path | None,
    checkpoint: Checkpoint | None,
    run_id: str | None,
    processes: Processes,
    *,
    alert_seconds: float | None = None,
) -> RunLogger:
    """The log of a new run, or of the one to continue; the first process opens it, the others join."""
    try:
        if not processes.first:
            return _open_log(config, run, checkpoint, processes.told(run_id), processes)
        logger = _open_log(config, run, checkpoint, run_id, processes, alert_seconds=alert_seconds)
    except OSError as error:
        where = f"run.root={config.run.root!r}" if run is None else f"train.resume={config.train.resume!r}"
        raise OSError(
            f"{where} cannot be written ({error.strerror or error}); choose a folder with space where you "
            "may write"
        ) from error
    processes.told(logger.run_id)
    return logger


def _open_log(
    config: TrainConfig,
    run: Path | None,
    checkpoint: Checkpoint | None,
    run_id: str | None,
    processes: Processes,
    *,
    alert_seconds: float | None = None,
) -> RunLogger:
    shared: dict[str, Any] = {
        "modalities": config.loss.modalities,
        "pairs_every": config.train.pairs_every,
        "rank": processes.rank,
        "world_size": processes.size,
        "alert_seconds": alert_seconds,
        "copy_to": config.run.copy_to,
    }
    if run is not None and checkpoint is not None:
        return RunLogger(run.parent, run.name, resume_from_step=checkpoint.step, **shared)
    return RunLogger(
        config.run.root,
        run_id,
        name=config.run.name,
        config=config.to_dict(),
        seed=config.train.seed,
        parent=config.run.parent,
        total_steps=config.loss.total_steps,
        **shared,
    )
