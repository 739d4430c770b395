"""The callback for the Hugging Face Trainer and those built on it, such as sentence-transformers'."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn

from uwml_core.integrations.extras import require
from uwml_core.integrations.step_log import StepLog, find_loss

require("transformers", extra="transformers")

from transformers import TrainerCallback  # noqa: E402


class UWMLCallback(TrainerCallback):  # type: ignore[misc]
    """Schedule, checkpoints and run log of a ``UWMLLoss`` that a Trainer calls.

    The loss is told how far the training is, unless it knows ``total_steps``. Each optimizer step is logged
    with the item ids and captions that the loss was called with, and the metrics of each evaluation.
    Checkpoints get the loss's state; a training resumed from one continues its run.

    A training that ends closes the run as finished. A Trainer does not tell its callbacks of errors:
    ``UWMLTrainerMixin`` does, and ``with UWMLCallback(...) as callback:`` around another Trainer's
    ``train()``. Otherwise the run stays open until the process ends.

    Args:
        loss: the ``UWMLLoss``, or a module that holds it.
        logs: logs folder; None keeps no log.
        run_id, name, alert_seconds: as for ``RunLogger``.

    Attributes:
        steps: what writes the log; ``steps.log`` takes snapshots and the like, ``steps.path`` is the folder.
        resume_from: checkpoint folder that the training goes on from; ``output_dir/checkpoint-<step>``
            unless it is a path. ``UWMLTrainerMixin`` sets it.

    Raises:
        ValueError: if there is not one ``UWMLLoss``.
    """

    def __init__(
        self,
        loss: nn.Module,
        logs: str | os.PathLike[str] | None = None,
        *,
        run_id: str | None = None,
        name: str | None = None,
        alert_seconds: float | None = None,
    ) -> None:
        self._loss = find_loss(loss)
        self.steps = StepLog(logs, run_id=run_id, name=name, alert_seconds=alert_seconds)
        self.resume_from: str | bool | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Follow the loss, restore its state where training is resumed, and open the log."""
        if state.global_step:
            self._restore(args, state)
        self.steps.attach(self._loss, lambda: progress_of(state)).open(
            self._loss,
            total_steps=state.max_steps,
            first_step=state.global_step,
            seed=args.seed,
            rank=args.process_index,
            world_size=args.world_size,
        )

    def on_optimizer_step(
        self, args: Any, state: Any, control: Any, optimizer: Any = None, **kwargs: Any
    ) -> None:
        """Log the step that was just made; the Trainer counts it afterwards."""
        rate = float(optimizer.param_groups[0]["lr"])
        self.steps.step(state.global_step, epoch=int(state.epoch), learning_rate=rate)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Log the metrics of an evaluation."""
        # the Trainer counts epochs begun; the log names the one of the last step
        epoch = max(math.ceil(state.epoch or 0.0) - 1, 0)
        self.steps.evaluation(metrics or {}, split="eval", epoch=epoch)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Put the loss's state into the checkpoint, after the steps before it are in the log."""
        self.steps.log.flush()
        path = _state_path(_folder(args, state), args.process_index)
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"loss": self._loss.state_dict(), "run_id": self.steps.run_id}, path)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the run as finished."""
        self.steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.steps.close(error)

    def _restore(self, args: Any, state: Any) -> None:
        given = self.resume_from
        folder = _folder(args, state) if given is None or isinstance(given, bool) else Path(given)
        path = _state_path(folder, args.process_index)
        if not path.is_file():
            warnings.warn(
                f"{path} does not exist, so direction weights and memory of the loss begin anew",
                stacklevel=2,
            )
            return
        saved = torch.load(path, map_location="cpu", weights_only=True)
        self._loss.load_state_dict(saved["loss"])
        self.steps.run_id = self.steps.run_id or saved["run_id"]


def progress_of(state: Any) -> float:
    """Optimizer steps done / total of a ``TrainerState``, 0 before training."""
    return float(min(state.global_step / max(state.max_steps, 1), 1.0))


def _folder(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"


def _state_path(folder: Path, rank: int) -> Path:
    return folder / f"uwml_loss_{rank}.pt"
