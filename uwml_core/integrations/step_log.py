"""What the callbacks of all trainers share: follow a loss that somebody else calls, and log what it does."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from torch import distributed, nn
from torch.utils.hooks import RemovableHandle

from uwml_core.losses import UWMLLoss
from uwml_core.runlog.writer import NullLogger, RunLogger

_SPEED = ("_runtime", "_per_second", "epoch", "_preparation_time")


def find_loss(module: nn.Module) -> UWMLLoss:
    """The weighted loss that a module is or holds.

    Raises:
        ValueError: if it holds none, or several.
    """
    found = [child for child in module.modules() if isinstance(child, UWMLLoss)]
    if len(found) != 1:
        raise ValueError(f"loss is a {type(module).__name__} with {len(found)} UWMLLoss in it; expected one")
    return found[0]


class StepLog:
    """A loss, followed within a trainer that calls it, and its run log.

    While attached, a training call that is told neither ``progress`` nor ``total_steps`` gets the trainer's
    progress, and the log gets the ``item_ids`` and ``captions`` that the loss was called with. Where it was
    given no item ids, the label stands for the item.

    Args:
        logs: logs folder; None logs nothing.
        run_id, name, alert_seconds: as for ``RunLogger``.

    Attributes:
        log: the open ``RunLogger``, for whatever else is to be logged; a ``NullLogger`` before and after.
        path: folder of the run, None before the first step and without a log.
        run_id: of the run, None as long as it is unknown.
    """

    def __init__(
        self,
        logs: str | os.PathLike[str] | None,
        *,
        run_id: str | None = None,
        name: str | None = None,
        alert_seconds: float | None = None,
    ) -> None:
        self._logs, self._name, self._asked, self._alert_seconds = logs, name, run_id, alert_seconds
        self.run_id = run_id
        self.path: Path | None = None
        self.log: RunLogger | NullLogger = NullLogger()
        self._hooks: list[RemovableHandle] = []
        self._call: dict[str, Any] | None = None
        self._evaluated = 0

    def attach(self, loss: UWMLLoss, progress: Callable[[], float | None]) -> Self:
        """Follow a loss; ``progress`` tells optimizer steps done / total when it is called."""
        self.detach()

        def before(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            if kwargs.get("progress") is None and loss.config.total_steps is None:
                kwargs = {**kwargs, "progress": progress()}
            return args, kwargs

        def after(module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
            if not loss.training:
                self._evaluated += 0 if loss.last is None else loss.last.batch_size
                return
            self._call = {"last": loss.last, **{n: kwargs.get(n) for n in ("item_ids", "captions")}}

        self._hooks = [
            loss.register_forward_pre_hook(before, with_kwargs=True),
            loss.register_forward_hook(after, with_kwargs=True),
        ]
        return self

    def detach(self) -> None:
        """Leave the loss alone again."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def open(
        self,
        loss: UWMLLoss,
        *,
        total_steps: int | None,
        first_step: int = 0,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """Open the run log; continues the run of ``run_id`` where one is there and training goes on.

        All processes call it: the first names the run, the others join.
        """
        if self._logs is None:
            return
        root, config = Path(self._logs).expanduser(), loss.config
        if config.total_steps is None:
            config = dataclasses.replace(config, total_steps=total_steps)
        goes_on = first_step > 0 and self.run_id is not None and (root / self.run_id / "run.json").exists()
        of_run: dict[str, Any] = {
            # a second training with the same callback is a run of its own
            "run_id": self.run_id if goes_on or self.path is None else self._asked,
            "resume_from_step": first_step if goes_on else None,
            "name": self._name,
            "modalities": config.modalities,
            "config": config,
            "seed": seed,
            "total_steps": total_steps,
        }
        if rank == 0:
            self.log = RunLogger(root, **of_run, world_size=world_size, alert_seconds=self._alert_seconds)
        if world_size > 1:
            told: list[Any] = [self.log.run_id, of_run["resume_from_step"]]
            distributed.broadcast_object_list(told, src=0)
            of_run["run_id"], of_run["resume_from_step"] = told
        if rank > 0:
            self.log = RunLogger(root, **of_run, rank=rank, world_size=world_size)
        self.path, self.run_id = self.log.path, self.log.run_id

    def step(self, number: int, *, epoch: int | None, **scalars: Any) -> None:
        """Log an optimizer step: what the last training call of the loss since the step before told.

        Args:
            number: of the step, from 0.
            epoch: where training is.
            **scalars: as for ``RunLogger.log_step``.
        """
        call, self._call = self._call, None
        if call is None:
            return
        if call["item_ids"] is None:
            call["item_ids"] = call["last"].label[0]
        self.log.log_step(**call, step=number, epoch=epoch, phase="train", **scalars)

    def evaluation(self, metrics: Mapping[str, Any], *, split: str, epoch: int | None) -> None:
        """Log a trainer's metrics whose names begin with the split, as ``split_name`` or ``split/name``.

        ``i2t_R@1`` is R@1 of the direction i2t. Times and speeds are left out. ``n`` is the number of pairs
        that the loss saw meanwhile, 0 where it saw none.
        """
        seen, self._evaluated = self._evaluated, 0
        named = {
            name[len(split) + 1 :]: float(value)
            for name, value in metrics.items()
            if name.startswith((f"{split}_", f"{split}/")) and not name.endswith(_SPEED)
        }
        directions = getattr(self.log, "directions", ())
        rows = [(*_directed(name, directions), value, seen, None) for name, value in named.items()]
        self.log.log_eval(split=split, metrics=rows, epoch=epoch)

    def close(self, error: BaseException | None = None) -> None:
        """Close the run: finished, stopped after an interrupt, failed after another error."""
        self.detach()
        log, self.log = self.log, NullLogger()
        log.__exit__(None if error is None else type(error), error, None)


def _directed(name: str, directions: tuple[str, ...]) -> tuple[str | None, str]:
    for direction in directions:
        if name.startswith(f"{direction}_"):
            return direction, name[len(direction) + 1 :]
    return None, name
