"""Processes that train together, as torchrun starts them; one process alone answers the same calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from uwml_core.training.batch_norm import share_statistics
from uwml_core.training.stop import AgreedEnd

# The others wait while the first process evaluates and saves; one that dies is noticed at once.
TIMEOUT = timedelta(hours=1)

_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")

DEVICES = ("auto", "cpu", "cuda")

# Groups that were left. The last reference to a group joins gloo's thread, and where DistributedDataParallel
# holds it, with the interpreter's lock: that thread may be waiting for it to drop its last tensor.
_LEFT: list[dist.ProcessGroup | None] = []

T = TypeVar("T")


class Processes:
    """One process alone; ``ProcessGroup`` does the same among several.

    Args:
        device: one of ``DEVICES``; auto is the processor.

    Attributes:
        rank: number of this process, from 0.
        size: how many there are.
        device: where this process computes.

    Raises:
        ValueError: for cuda without a GPU.
    """

    rank, size = 0, 1

    def __init__(self, device: str = "auto") -> None:
        self.device = torch.device("cpu")
        if device == "cuda":
            _check_gpus(1)
            self.device = torch.device("cuda", 0)

    @property
    def first(self) -> bool:
        """Whether this is the process that evaluates, saves and talks."""
        return self.rank == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing behind."""

    def wrapped(self, model: nn.Module) -> nn.Module:
        """The model as it is called in training: its gradients are then those of the whole batch."""
        return model

    def agree(self, signal: int | None, sound: torch.Tensor) -> bool:
        """Tell the others and hear from them; nobody goes on before all have come here.

        Args:
            signal: number of the signal that asked this process to stop, None without one.
            sound: bool scalar, whether this process may go on.

        Returns:
            Whether all may go on.
        """
        return bool(sound)

    def asked(self, signal: int | None) -> int | None:
        """Number of the signal that asked one of the processes to stop, as far as all know of it.

        Args:
            signal: what asked this process.
        """
        return signal

    def told(self, value: T) -> T:
        """The value that the first process gives."""
        return value

    def wait(self) -> None:
        """Go on when all have come here."""


class ProcessGroup(Processes):
    """Several processes with a group of torch.distributed: NCCL where each has a GPU, else gloo.

    Left with the same end in all of them (no error, or an ``AgreedEnd``), they part after the last one has
    come; after any other error the group is given up at once, so that the others do not wait for it.

    Args:
        environment: variables that torchrun sets.
        device: one of ``DEVICES``; auto is a GPU where there is one for each process of this machine.

    Raises:
        ValueError: for cuda with fewer GPUs than processes.
    """

    def __init__(self, environment: Mapping[str, str], device: str = "auto") -> None:
        super().__init__()
        self.rank, self.size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        self._local_rank = int(environment["LOCAL_RANK"])
        self._asked: int | None = None
        wanted = int(environment["LOCAL_WORLD_SIZE"])
        if device == "cuda":
            _check_gpus(wanted)
        if device != "cpu" and _gpus() >= wanted:
            self.device = torch.device("cuda", self._local_rank)

    def __enter__(self) -> Self:
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo", timeout=TIMEOUT)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None or issubclass(kind, AgreedEnd):
                self.wait()
        finally:
            _LEFT.append(dist.group.WORLD)
            dist.destroy_process_group()

    def wrapped(self, model: nn.Module) -> nn.Module:
        """Share the statistics of batch normalization and average the gradients."""
        share_statistics(model)
        ids = None if self.device.type == "cpu" else [self._local_rank]
        return DistributedDataParallel(model, device_ids=ids)

    def agree(self, signal: int | None, sound: torch.Tensor) -> bool:
        """Tell the others and hear from them, in one message of two numbers."""
        known = torch.stack((torch.full_like(sound, signal or 0, dtype=torch.int64), (~sound).long()))
        dist.all_reduce(known, op=dist.ReduceOp.MAX)
        heard, unsound = known.tolist()
        self._asked = heard or None
        return not unsound

    def asked(self, signal: int | None) -> int | None:
        """What all heard when they last agreed: what came since is for the next time."""
        return self._asked

    def told(self, value: T) -> T:
        """The value that the first process gives."""
        box = [value]
        dist.broadcast_object_list(box, src=0, device=self.device)
        return box[0]

    def wait(self) -> None:
        """Go on when all have come here."""
        number = torch.ones(1, device=self.device)
        dist.all_reduce(number)
        # a GPU's message is only under way until its result is read
        number.item()


def _gpus() -> int:
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _check_gpus(wanted: int) -> None:
    if _gpus() < wanted:
        raise ValueError(
            f"train.device='cuda' needs {wanted} GPU(s) on this machine, torch finds {_gpus()}; choose "
            "train.device=cpu, or a torch that knows them"
        )


def processes_of_torchrun(environment: Mapping[str, str] = os.environ, device: str = "auto") -> Processes:
    """The processes that this one belongs to, from the variables that torchrun sets.

    Args:
        environment: the variables.
        device: one of ``DEVICES``.

    Raises:
        ValueError: if there are several and some of the variables are missing, or too few GPUs.

    Example:
        >>> processes_of_torchrun({"HOME": "/root"}).size
        1
    """
    missing = [name for name in _VARIABLES if name not in environment]
    if not missing:
        return ProcessGroup(environment, device)
    if environment.get("WORLD_SIZE", "1") == "1":
        return Processes(device)
    raise ValueError(
        f"WORLD_SIZE={environment['WORLD_SIZE']} is set but {', '.join(missing)} is not; start several "
        "processes with torchrun, or unset it"
    )
