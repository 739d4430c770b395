"""Lightning: a callback that gives the loss its schedule and keeps a run log."""

from __future__ import annotations

import math
import os
from typing import Any

import torch
from torch import nn

from uwml_core.integrations.extras import require
from uwml_core.integrations.step_log import StepLog
from uwml_core.losses import UWMLLoss

require("lightning", extra="lightning")

from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402


class UWMLCallback(Callback):  # type: ignore[misc]
    """Schedule and run log for a ``LightningModule`` that calls a ``UWMLLoss`` in its training step.

    The loss is told how far the training is, unless it knows ``total_steps``. Each optimizer step is logged
    with the item ids and captions that the loss was called with
    (``self.loss(image, text, labels=..., item_ids=...)``), metrics that begin with ``val`` after each
    validation. The run ends as finished, as stopped after an interrupt, or as failed. The loss being part of
    the module, Lightning's checkpoints hold its state; one that is resumed continues its run.

    ``accumulate_grad_batches=k`` is plain accumulation: it adds no negatives, each of the k batches is a
    step of the controller and the memory, and the log shows the last of them.

    Args:
        logs: logs folder; None keeps no log.
        loss: name of the attribute that holds the loss, dotted where it lies deeper.
        run_id, name, alert_seconds: as for ``RunLogger``.

    Attributes:
        steps: what writes the log; ``steps.log`` takes snapshots and the like, ``steps.path`` is the folder.

    Raises:
        ValueError: when fitting begins, if the attribute holds no ``UWMLLoss``.
    """

    def __init__(
        self,
        logs: str | os.PathLike[str] | None = None,
        *,
        loss: str = "loss",
        run_id: str | None = None,
        name: str | None = None,
        alert_seconds: float | None = None,
    ) -> None:
        self.steps = StepLog(logs, run_id=run_id, name=name, alert_seconds=alert_seconds)
        self._attribute = loss
        self._total: int | None = None
        self._logged = 0
        self._scalars: dict[str, Any] = {}

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Follow the loss, from the first validation on."""
        planned = trainer.estimated_stepping_batches
        self._total = int(planned) if math.isfinite(planned) else None

        def progress() -> float | None:
            return None if not self._total else min(trainer.global_step / self._total, 1.0)

        self.steps.attach(self._loss(pl_module), progress)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Open the log, where a checkpoint has been read by now."""
        self._logged = trainer.global_step
        self.steps.open(
            self._loss(pl_module),
            total_steps=self._total,
            first_step=trainer.global_step,
            rank=trainer.global_rank,
            world_size=trainer.world_size,
        )

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        """Take learning rate and gradient norm, before it is clipped."""
        groups = optimizer.param_groups
        gradients = [p.grad for group in groups for p in group["params"] if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        self._scalars = {"learning_rate": float(groups[0]["lr"]), "gradient_norm": norm}

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *batch: Any) -> None:
        """Log the optimizer step, if this batch made one."""
        if trainer.global_step == self._logged:
            return
        self._logged = trainer.global_step
        self.steps.step(self._logged - 1, epoch=trainer.current_epoch, **self._scalars)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log the metrics of a validation; the log is not open yet in the trial run before training."""
        self.steps.evaluation(trainer.callback_metrics, split="val", epoch=trainer.current_epoch)

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Write the steps before the checkpoint, or a kill would leave some out."""
        self.steps.log.flush()

    def state_dict(self) -> dict[str, Any]:
        """Which run a resumed training continues."""
        return {"run_id": self.steps.run_id}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue the run of a checkpoint, unless another one was asked for."""
        self.steps.run_id = self.steps.run_id or state_dict["run_id"]

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Close the run as stopped or failed."""
        self.steps.close(exception)

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Close the run as finished."""
        self.steps.close()

    def _loss(self, module: nn.Module) -> UWMLLoss:
        found: Any = module
        for name in self._attribute.split("."):
            found = getattr(found, name, None)
        if not isinstance(found, UWMLLoss):
            raise ValueError(
                f"loss={self._attribute!r} names a {type(found).__name__} of {type(module).__name__}; "
                "expected the attribute that holds its UWMLLoss"
            )
        return found
