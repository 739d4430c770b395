"""The training loop: steps, evaluations, checkpoints."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from uwml_core.losses import UWMLLoss
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.batches import Batch, BatchSource
from uwml_core.training.checkpoint import Checkpoint
from uwml_core.training.chunks import backward_in_chunks
from uwml_core.training.config import OptimizationConfig, TrainConfig
from uwml_core.training.distributed import Processes
from uwml_core.training.encoders import TwoTower
from uwml_core.training.frozen import frozen_corpus
from uwml_core.training.observer import Bystander, Observer
from uwml_core.training.precision import Precision
from uwml_core.training.prefetch import PrefetchedBatches
from uwml_core.training.schedule import learning_rate_at
from uwml_core.training.stop import AgreedEnd, StopRequest, TrainingStopped
from uwml_core.training.usage import UsageMeter


class NonFiniteLossError(AgreedEnd, ValueError):
    """Loss or gradient is not a number any more; the message names the step and what to try."""

    def __init__(self, step: int, what: str) -> None:
        super().__init__(
            f"{what} is not finite at step {step}; lower train.learning_rate or set train.gradient_clip, "
            "then start again"
        )


def build_optimizer(model: TwoTower, loss: nn.Module, config: OptimizationConfig) -> torch.optim.AdamW:
    """AdamW over encoders and loss; biases, norms and a learnable temperature do not decay.

    What is fine-tuned learns at a ``share`` of the rate.
    """
    tuned = model.fine_tuned()
    own = [p for p in (*model.parameters(), *loss.parameters()) if p not in tuned]
    groups = _groups(own, config.weight_decay)
    if tuned:
        # in the order of the model: that of a set changes from process to process
        others = [p for p in model.parameters() if p in tuned]
        groups += [
            {**group, "share": config.backbone_share} for group in _groups(others, config.weight_decay)
        ]
    # one pass over the parameters instead of one per operation: an eighth of the time on a processor
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)


def _groups(parameters: Sequence[nn.Parameter], decay: float) -> list[dict[str, Any]]:
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]


def as_called(model: nn.Module, processes: Processes, config: OptimizationConfig) -> nn.Module:
    """The model as it is called in training: shared among processes, and compiled where that is wished."""
    wrapped = processes.wrapped(model)
    return torch.compile(wrapped) if config.compile else wrapped  # type: ignore[return-value]


@dataclass(kw_only=True)
class Trainer:
    """Carries a model through the steps of its configuration.

    Attributes:
        config: the run's configuration.
        fingerprint: of the data, kept in checkpoints.
        processes: those that train together, this one among them.
        batches, model, loss, optimizer, logger, observer, precision: the parts.
        encode: the model as it is called in training.
        stop: what asks this process to stop.
        step: steps completed; that of the checkpoint when resumed.
        saved: steps completed at the newest checkpoint, None before the first.
        fresh: False once a checkpoint was restored; its evaluations are in the log already.
    """

    config: TrainConfig
    fingerprint: str
    processes: Processes
    batches: BatchSource | PrefetchedBatches
    model: TwoTower
    encode: nn.Module
    loss: UWMLLoss
    optimizer: torch.optim.AdamW
    logger: RunLogger
    observer: Observer | Bystander
    stop: StopRequest
    step: int = 0
    saved: int | None = None
    fresh: bool = True
    precision: Precision = field(default_factory=Precision)
    # batches of what the backbones give, while they are frozen
    _warm: BatchSource | None = field(default=None, init=False)

    @property
    def total_steps(self) -> int:
        """Steps of the whole training."""
        return self.config.train.epochs * self.batches.steps_per_epoch

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        self.model.load_state_dict(checkpoint.model)
        self.optimizer.load_state_dict(checkpoint.optimizer)
        self.loss.load_state_dict(checkpoint.loss)
        self.precision.load_state_dict(checkpoint.precision)
        self.step, self.saved, self.fresh = checkpoint.step, checkpoint.step, False

    def run(self, *, progress: bool) -> None:
        """Train to the end.

        Args:
            progress: show a bar on standard error.

        Raises:
            TrainingStopped: after a stop was requested and a checkpoint tried.
            NonFiniteLossError: as soon as loss or gradient is not finite; the weights stay as before.
        """
        self.encode.train()
        self.loss.train()
        with tqdm(
            total=self.total_steps,
            initial=self.step,
            unit="step",
            disable=not progress,
            mininterval=0.5,
            dynamic_ncols=True,
        ) as bar:
            if self.fresh:
                self._observe(bar, epoch=-1)
            self._stop_if_asked()
            usage = UsageMeter(self.processes.device)
            while self.step < self.total_steps:
                self._begin_phase()
                self._one_step(bar)
                usage.count(self.batches.batch_size)
                if self.step % self.batches.steps_per_epoch == 0:
                    epoch = self.step // self.batches.steps_per_epoch - 1
                    self._tell_usage(bar, usage, epoch)
                    self._observe(bar, epoch=epoch)
                    usage.begin()
                self._stop_if_asked()

    def _tell_usage(self, bar: Any, usage: UsageMeter, epoch: int) -> None:
        """Say and log how fast an epoch was, or the part of it after a resume."""
        if not self.processes.first:
            return
        found = usage.report()
        said = f"epoch {epoch}: {found.sentence()}"
        details = {**asdict(found), "pairs_per_second": found.pairs_per_second, "epoch": epoch}
        self.logger.log_event("throughput", said, step=self.step - 1, **details)
        if not bar.disable:
            bar.write(said, file=sys.stderr)

    def save(self) -> None:
        """Write a checkpoint, after the steps before it are in the log; a failure is told, not raised."""
        # Otherwise a kill between the two would leave steps out that the resumed run does not repeat.
        self.logger.flush()
        self.processes.wait()
        if self.processes.first:
            self._write_checkpoint()
        self.processes.wait()

    def _write_checkpoint(self) -> None:
        state = Checkpoint(
            step=self.step,
            config=self.config.to_dict(),
            fingerprint=self.fingerprint,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            loss=self.loss.state_dict(),
            precision=self.precision.state_dict(),
        )
        try:
            state.save(self.logger.path)
        except OSError as error:
            self.logger.log_event("checkpoint", str(error), level="error", step=self.step - 1)
            warnings.warn(str(error), stacklevel=2)
            return
        self.saved = self.step
        self.logger.log_event("checkpoint", f"saved after {self.step} steps", step=self.step - 1)

    @property
    def phase(self) -> str:
        """``warmup`` while the backbones are frozen, then ``train``."""
        warmup = (self.config.train.warmup_epochs or 0) * self.batches.steps_per_epoch
        return "warmup" if self.step < warmup else "train"

    def _begin_phase(self) -> None:
        if self.model.frozen == (self.phase == "warmup"):
            return
        self.model.freeze(self.phase == "warmup")
        self._warm = self._frozen_batches() if self.model.frozen else None
        # what is wrapped averages the gradients of the parameters that learned when it was made
        self.encode = as_called(self.model, self.processes, self.config.train)
        self.encode.train()

    def _frozen_batches(self) -> BatchSource:
        self.model.train()
        corpus = self.batches.corpus
        return self.batches.over(frozen_corpus(self.model, corpus, corpus.dataset.rows("train")))

    def _one_step(self, bar: Any) -> None:
        began = time.perf_counter()
        batch = (self._warm or self.batches).at(self.step)
        rate = learning_rate_at(self.step, self.total_steps, self.config.train.learning_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("share", 1.0)
        self.optimizer.zero_grad()
        self._backward(batch)
        clip = self.config.train.gradient_clip
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        most = float("inf") if clip is None else clip
        norm, sound = self.precision.update(self.optimizer, parameters, most)
        self.logger.log_step(
            self.loss.last,
            item_ids=batch.item_ids,
            captions=batch.captions,
            step=self.step,
            epoch=self.step // self.batches.steps_per_epoch,
            phase=self.phase,
            learning_rate=rate,
            gradient_norm=norm,
            step_time_ms=(time.perf_counter() - began) * 1e3,
        )
        value = self.loss.last_logs["loss"]
        if not sound:
            raise NonFiniteLossError(self.step, "gradient" if math.isfinite(value) else "loss")
        self.step += 1
        bar.update()
        _show(bar, loss=f"{value:.3f}")

    def _backward(self, batch: Batch) -> None:
        """Leave the gradients of the whole batch in all parameters; the loss sees to its own."""
        loss, chunks = partial(self._loss_of, batch), batch.chunks(self.config.loss.accumulate_batches)
        inputs = [chunk.inputs(self.processes.device) for chunk in chunks]
        if len(inputs) == 1:
            self.precision.backward(loss(*self.encode(*inputs[0])))
        else:
            backward_in_chunks(loss, self.model, self.encode, inputs, backward=self.precision.backward)

    def _loss_of(self, batch: Batch, pictures: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        finite = pictures.isfinite().all() & texts.isfinite().all()
        # before the loss, which waits for every process to come to it
        if not self.processes.agree(self.stop.signal, finite):
            failure = NonFiniteLossError(self.step, "embedding")
            self.logger.log_event("non_finite", str(failure), level="error", step=self.step)
            raise failure
        value: torch.Tensor = self.loss(
            pictures,
            texts,
            labels=batch.labels,
            item_ids=batch.item_ids,
            progress=self.step / self.total_steps,
            whole_step=True,
        )
        return value

    def _observe(self, bar: Any, epoch: int) -> None:
        recalls = self.observer.observe(self.model, step=self.step - 1, epoch=epoch)
        _show(bar, **{f"R@1 {direction}": f"{value:.1f}" for direction, value in recalls.items()})
        self.save()

    def _stop_if_asked(self) -> None:
        signal = self.processes.asked(self.stop.signal)
        if signal is None or self.step == self.total_steps:
            return
        if self.step % self.batches.steps_per_epoch:
            self.save()
        raise TrainingStopped(self.logger.path, self.step, self.saved, signal)


def _show(bar: Any, **values: str) -> None:
    """Change what stands behind the bar, keeping the rest."""
    shown: Mapping[str, str] = getattr(bar, "shown", {})
    bar.shown = {**shown, **values}
    bar.set_postfix(bar.shown, refresh=False)
