"""One training of the study: the trainer's own steps, without a run log, and what it retrieves at the end."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.study.configuration import Configuration
from benchmarks.study.material import Material, material
from benchmarks.study.meter import Meter
from uwml_core.losses import UWMLLoss
from uwml_core.training.batches import BatchSource, Corpus
from uwml_core.training.distributed import Processes
from uwml_core.training.embedding import embed_pictures, embed_texts
from uwml_core.training.encoders import TwoTower, build_model
from uwml_core.training.evaluation import retrieve, rsum
from uwml_core.training.loop import NonFiniteLossError, Trainer, build_optimizer
from uwml_core.training.observer import Bystander
from uwml_core.training.stop import StopRequest
from uwml_core.weighting import LOSS_PRESETS

# Mean R@1 over both directions, in percent, under which nothing was learned.
DEAD_BELOW = 1.0
DIRECTIONS = ("there", "back")


class StudyTrainer(Trainer):
    """Keeps no checkpoint: nobody resumes these runs."""

    def save(self) -> None:
        """Do nothing."""


class WarmedUp(nn.Module):
    """One loss for the first part of the steps, then another.

    Args:
        first, second: the losses.
        share: of the steps that the first has.
    """

    def __init__(self, first: UWMLLoss, second: UWMLLoss, share: float) -> None:
        super().__init__()
        self.first, self.second, self.share = first, second, share
        self._now = first

    def forward(self, *features: torch.Tensor, progress: float, **named: Any) -> torch.Tensor:
        """Value of the loss whose turn it is."""
        self._now = self.first if progress < self.share else self.second
        value: torch.Tensor = self._now(*features, progress=progress, **named)
        return value

    @property
    def last(self) -> Any:
        """Diagnostics of the last step."""
        return self._now.last

    @property
    def last_logs(self) -> dict[str, float]:
        """Figures of the last step."""
        return self._now.last_logs


def train(configuration: Configuration, seed: int) -> dict[str, Any]:
    """Train once and evaluate.

    Args:
        configuration: what to train.
        seed: of initial weights, order, captions and of what is swapped.

    Returns:
        Figures of the run by name; recalls in percent, of the test split only where that is the purpose.
    """
    torch.set_num_threads(1)
    source = material(configuration.modality, configuration.encoder)
    corpus = source.corpus(configuration.noise, seed)
    began = time.process_time()
    trainer, meter = _trainer(configuration, source, corpus, seed)
    finite = True
    try:
        trainer.run(progress=False)
    except NonFiniteLossError:
        finite = False
    seconds = time.process_time() - began
    found = {"steps": trainer.step, "train_s": seconds, **meter.summary()}
    splits = ("val", "test") if configuration.purpose == "test" else ("val",)
    for split in splits:
        found |= evaluate(trainer.model, source, split)
    r1 = [found[f"val_{direction}_r1"] for direction in DIRECTIONS]
    found["dead"] = not finite or float(np.mean(r1)) < DEAD_BELOW
    return found


def _trainer(
    configuration: Configuration, source: Material, corpus: Corpus, seed: int
) -> tuple[Trainer, Meter]:
    config = configuration.train_config(seed)
    dataset, batch_size = corpus.dataset, config.data.batch_size
    batches = BatchSource(corpus, dataset.rows("train"), batch_size=batch_size, seed=seed)
    known: dict[str, Any] = {
        "total_steps": config.train.epochs * batches.steps_per_epoch,
        "modalities": dataset.modalities,
    }
    config = dataclasses.replace(config, loss=dataclasses.replace(config.loss, **known))
    model = build_model(config.model.kind, config.model.dim, seed, corpus.feature_sizes)
    attached = bool(configuration.settings.get("study.attached", False))
    loss: Any = UWMLLoss(config.loss, detach_weights=not attached)
    if configuration.warmup is not None:
        first = dataclasses.replace(LOSS_PRESETS[configuration.warmup].config, **known)
        loss = WarmedUp(UWMLLoss(first), loss, configuration.warmup_share)
    meter: Any = Meter(source.wrong(corpus))
    trainer = StudyTrainer(
        config=config,
        fingerprint="",
        processes=Processes(),
        batches=batches,
        model=model,
        encode=model,
        loss=loss,
        optimizer=build_optimizer(model, loss, config.train),
        logger=meter,
        observer=Bystander(),
        stop=StopRequest(),
    )
    return trainer, meter


def evaluate(model: TwoTower, source: Material, split: str) -> dict[str, float]:
    """Recalls of all pictures against all captions of a split; any true partner counts."""
    model.eval()
    corpus, candidates = source.clean, source.candidates[split]
    rows = source.dataset.rows(split)
    with torch.inference_mode():
        results = retrieve(
            embed_pictures(model, corpus, rows),
            embed_texts(model, corpus, candidates.rows, candidates.captions),
            source.dataset.labels[rows].astype(np.int64),
            candidates,
        )
    metrics = [row for name, found in zip(DIRECTIONS, results, strict=True) for row in found.metrics(name)]
    named = {
        f"{split}_{direction}_r{metric[2:]}": value
        for direction, metric, value, _n, _tied in metrics
        if metric.startswith("R@")
    }
    return {**named, f"{split}_rsum": rsum(metrics)[2]}
