"""The training loop: steps, evaluations, checkpoints."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from uwml_core.losses import UWMLLoss
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.batches import Batch, BatchSource
from uwml_core.training.checkpoint import Checkpoint
from uwml_core.training.config import OptimizationConfig, TrainConfig
from uwml_core.training.encoders import TwoTower
from uwml_core.training.observer import Observer
from uwml_core.training.schedule import learning_rate_at
from uwml_core.training.stop import StopRequest, TrainingStopped


class NonFiniteLossError(ValueError):
    """Loss or gradient is not a number any more; the message names the step and what to try."""

    def __init__(self, step: int, what: str) -> None:
        super().__init__(
            f"{what} is not finite at step {step}; lower train.learning_rate or set train.gradient_clip, "
            "then start again"
        )


def build_optimizer(model: nn.Module, loss: nn.Module, config: OptimizationConfig) -> torch.optim.AdamW:
    """AdamW over encoders and loss; biases, norms and a learnable temperature do not decay."""
    parameters = [*model.parameters(), *loss.parameters()]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    # one pass over the parameters instead of one per operation: an eighth of the time on a processor
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)


@dataclass(kw_only=True)
class Trainer:
    """Carries a model through the steps of its configuration.

    Attributes:
        config: the run's configuration.
        fingerprint: of the data, kept in checkpoints.
        batches, model, loss, optimizer, logger, observer: the parts.
        step: steps completed; that of the checkpoint when resumed.
        saved: steps completed at the newest checkpoint, None before the first.
        fresh: False once a checkpoint was restored; its evaluations are in the log already.
    """

    config: TrainConfig
    fingerprint: str
    batches: BatchSource
    model: TwoTower
    loss: UWMLLoss
    optimizer: torch.optim.AdamW
    logger: RunLogger
    observer: Observer
    step: int = 0
    saved: int | None = None
    fresh: bool = True

    @property
    def total_steps(self) -> int:
        """Steps of the whole training."""
        return self.config.train.epochs * self.batches.steps_per_epoch

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        self.model.load_state_dict(checkpoint.model)
        self.optimizer.load_state_dict(checkpoint.optimizer)
        self.loss.load_state_dict(checkpoint.loss)
        self.step, self.saved, self.fresh = checkpoint.step, checkpoint.step, False

    def run(self, stop: StopRequest, *, progress: bool) -> None:
        """Train to the end.

        Args:
            stop: asked after each step.
            progress: show a bar on standard error.

        Raises:
            TrainingStopped: after a stop was requested and a checkpoint tried.
            NonFiniteLossError: as soon as loss or gradient is not finite; the weights stay as before.
        """
        self.model.train()
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
            self._stop_if_asked(stop)
            while self.step < self.total_steps:
                self._one_step(bar)
                if self.step % self.batches.steps_per_epoch == 0:
                    self._observe(bar, epoch=self.step // self.batches.steps_per_epoch - 1)
                self._stop_if_asked(stop)

    def save(self) -> None:
        """Write a checkpoint, after the steps before it are in the log; a failure is told, not raised."""
        # Otherwise a kill between the two would leave steps out that the resumed run does not repeat.
        self.logger.flush()
        state = Checkpoint(
            step=self.step,
            config=self.config.to_dict(),
            fingerprint=self.fingerprint,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            loss=self.loss.state_dict(),
        )
        try:
            state.save(self.logger.path)
        except OSError as error:
            self.logger.log_event("checkpoint", str(error), level="error", step=self.step - 1)
            warnings.warn(str(error), stacklevel=2)
            return
        self.saved = self.step
        self.logger.log_event("checkpoint", f"saved after {self.step} steps", step=self.step - 1)

    def _one_step(self, bar: Any) -> None:
        began = time.perf_counter()
        batch = self.batches.at(self.step)
        rate = learning_rate_at(self.step, self.total_steps, self.config.train.learning_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        value = self._forward(batch)
        self.optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        clip = self.config.train.gradient_clip
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        norm = nn.utils.clip_grad_norm_(parameters, float("inf") if clip is None else clip)
        sound = bool(norm.isfinite())
        if sound:
            self.optimizer.step()
        self.logger.log_step(
            self.loss.last,
            item_ids=batch.item_ids,
            captions=batch.captions,
            step=self.step,
            epoch=self.step // self.batches.steps_per_epoch,
            phase="train",
            learning_rate=rate,
            gradient_norm=norm,
            step_time_ms=(time.perf_counter() - began) * 1e3,
        )
        if not sound:
            raise NonFiniteLossError(self.step, "loss" if not value.isfinite() else "gradient")
        self.step += 1
        bar.update()
        _show(bar, loss=f"{value.item():.3f}")

    def _forward(self, batch: Batch) -> torch.Tensor:
        pictures, texts = self.model(batch.pictures, *batch.texts)
        done = self.step / self.total_steps
        try:
            value: torch.Tensor = self.loss(
                pictures, texts, labels=batch.labels, item_ids=batch.item_ids, progress=done
            )
        except ValueError as error:
            if pictures.isfinite().all() and texts.isfinite().all():
                raise
            failure = NonFiniteLossError(self.step, "embedding")
            self.logger.log_event("non_finite", str(failure), level="error", step=self.step)
            raise failure from error
        return value

    def _observe(self, bar: Any, epoch: int) -> None:
        recalls = self.observer.observe(self.model, step=self.step - 1, epoch=epoch)
        _show(bar, **{f"R@1 {direction}": f"{value:.1f}" for direction, value in recalls.items()})
        self.save()

    def _stop_if_asked(self, stop: StopRequest) -> None:
        if stop.signal is None or self.step == self.total_steps:
            return
        if self.step % self.batches.steps_per_epoch:
            self.save()
        raise TrainingStopped(self.logger.path, self.step, self.saved, stop.signal)


def _show(bar: Any, **values: str) -> None:
    """Change what stands behind the bar, keeping the rest."""
    shown: Mapping[str, str] = getattr(bar, "shown", {})
    bar.shown = {**shown, **values}
    bar.set_postfix(bar.shown, refresh=False)
