"""Parts of a trainer that make a run ill, put in before its first step."""

from __future__ import annotations

import dataclasses
import time
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from uwml_core.losses import UWMLLoss
from uwml_core.training.loop import Trainer

TrainerFault = Callable[[Trainer], None]

# What claims to be one batch is so many steps whose gradients add up.
ACCUMULATED = 8
_GRID = 8
_TELEMETRY_S, _WAIT_S = 0.02, 0.6
_NoDiagnostics = namedtuple("_NoDiagnostics", ["similarity", "loss"])


class Around:
    """Stands for a part of the trainer and passes on what it does not change."""

    def __init__(self, part: Any, **changed: Callable[..., Any]) -> None:
        self._part = part
        self.__dict__.update(changed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


def frozen_text(trainer: Trainer) -> None:
    """The text encoder keeps its initial weights."""
    trainer.model.texts.requires_grad_(False)


def coarse(trainer: Trainer) -> None:
    """Embeddings of a few bits, whose similarities tie as those of half precision do in large sets."""
    for encoder in (trainer.model.pictures, trainer.model.texts):
        encoder.register_forward_hook(_rounded)


def _rounded(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
    unit = F.normalize(output, dim=1)
    return unit + ((unit * _GRID).round() / _GRID - unit).detach()


def nan_at(step: int) -> TrainerFault:
    """Embeddings that are no numbers at one step."""

    def change(trainer: Trainer) -> None:
        def broken(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            return output * float("nan") if module.training and trainer.step == step else output

        trainer.model.texts.register_forward_hook(broken)

    return change


def attached_weights(trainer: Trainer) -> None:
    """Gradient flows through the weights."""
    trainer.loss = UWMLLoss(trainer.config.loss, detach_weights=False)


def moving_scale(change: float, start: float | None = None) -> TrainerFault:
    """Add to the logarithm of the logit scale at every step."""

    def put(trainer: Trainer) -> None:
        scale, step = trainer.loss.logit_scale, trainer.optimizer.step
        if not isinstance(scale, torch.Tensor):
            raise ValueError("loss.learnable_temperature=False leaves no logit scale to move; set it to True")
        if start is not None:
            scale.data.fill_(start)

        def moved() -> None:
            step()
            scale.data.add_(change)

        trainer.optimizer = Around(trainer.optimizer, step=moved)  # type: ignore[assignment]

    return put


def accumulated(trainer: Trainer) -> None:
    """Steps add up gradients of small batches, and the log claims the sum as the batch."""
    optimizer, log_step = trainer.optimizer, trainer.logger.log_step

    def step() -> None:
        if (trainer.step + 1) % ACCUMULATED == 0:
            optimizer.step()

    def zero_grad() -> None:
        if trainer.step % ACCUMULATED == 0:
            optimizer.zero_grad()

    trainer.optimizer = Around(optimizer, step=step, zero_grad=zero_grad)  # type: ignore[assignment]
    claimed = float(ACCUMULATED * trainer.config.data.batch_size)
    logged = partial(log_step, effective_batch_size=claimed)
    trainer.logger = Around(trainer.logger, log_step=logged)  # type: ignore[assignment]


def costly_telemetry(trainer: Trainer) -> None:
    """Reading what a step tells takes longer than the step, as it does where it waits for a device."""
    log_step = trainer.logger.log_step

    class Slow:
        def __init__(self, last: Any) -> None:
            self._last = last

        def __getattr__(self, name: str) -> Any:
            if name == "directions":
                time.sleep(_TELEMETRY_S)
            return getattr(self._last, name)

    def slow_step(last: Any, **named: Any) -> None:
        log_step(Slow(last), **named)

    trainer.logger = Around(trainer.logger, log_step=slow_step)  # type: ignore[assignment]


class RawProducts(nn.Module):
    """InfoNCE over scalar products of features that nobody has normalised."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature, self.last_logs = temperature, {"loss": float("nan")}
        self.last: Any = None

    def forward(self, image: torch.Tensor, text: torch.Tensor, **ignored: Any) -> torch.Tensor:
        """Mean of both directions."""
        similarity = image @ text.T
        logits, target = similarity / self.temperature, torch.arange(len(image))
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
        self.last_logs = {"loss": float(loss.detach())}
        self.last = _NoDiagnostics(similarity.detach(), self.last_logs["loss"])
        return loss


def not_normalised(trainer: Trainer) -> None:
    """A loop with a loss of its own, logged by the similarities of its features."""
    logger = trainer.logger

    def log(last: Any, **named: Any) -> None:
        logger.log_similarities(last.similarity, loss=last.loss, **named)

    trainer.loss = RawProducts(trainer.config.loss.temperature)  # type: ignore[assignment]
    trainer.logger = Around(logger, log_step=log)  # type: ignore[assignment]


def narrowed(trainer: Trainer) -> None:
    """After half of the steps the same two batches come again and again, their pictures shifted by one."""
    batches, begin = trainer.batches, trainer.total_steps // 2

    def at(step: int) -> Any:
        if step < begin:
            return batches.at(step)
        batch = batches.at(begin + (step - begin) % 2)
        return dataclasses.replace(batch, pictures=batch.pictures.roll(1, 0))

    trainer.batches = Around(batches, at=at)  # type: ignore[assignment]


def slowing(trainer: Trainer) -> None:
    """From the middle on every step waits, as it does for a disk that is full of other work."""
    encode = trainer.model.pictures

    def wait(module: nn.Module, inputs: Any, output: torch.Tensor) -> None:
        if module.training and trainer.step >= trainer.total_steps // 2:
            time.sleep(_WAIT_S)

    encode.register_forward_hook(wait)
