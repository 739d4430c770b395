"""One loss over the batches of several processes.

Each process has its own anchors and meets the candidates of all. Sums over anchors run over the anchors of
all processes, so that every one has the same weights. Each returns its part of the loss times the number of
processes: averaging gradients over processes, as ``DistributedDataParallel`` does, then gives the gradient
that one process with the whole batch has.

``OneProcess`` is the same for a process by itself: nothing is exchanged. An error in one process is raised in
all, so that none waits for one that is gone.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist

from uwml_core.losses.first_order import first_order
from uwml_core.losses.further import FurtherPairs, PerDirection, further_pairs
from uwml_core.losses.logits import Number

T = TypeVar("T")

_INSTEAD = "use UWMLLoss(distributed=False), or uwml_core.losses.weighted_loss over gathered similarities"


class Claim(NamedTuple):
    """What a process says of its batch before anything is gathered; all but the item ids must be equal.

    ``call`` is what its loss brings to the batch, by name: progress, counters, settings.
    """

    shape: tuple[int, ...]
    dtype: str
    numbered: bool
    item_ids: tuple[Any, ...]
    call: Mapping[str, Any]

    def compared(self) -> dict[str, Any]:
        """What must be equal, under the words that tell of it."""
        own = {
            "image_features has shape": self.shape,
            "image_features has dtype": self.dtype,
            "labels is None:": self.numbered,
        }
        return own | {f"{name} is": value for name, value in self.call.items()}


class OneProcess:
    """A process without others."""

    rank, size = 0, 1

    def share(self, make: Callable[[], T], say: Callable[[T], Any]) -> tuple[T, list[Any]]:
        """What this process makes, and what all say of theirs in rank order; nothing where it is alone.

        Raises:
            ValueError: where making or saying it fails in another process, which it names; what fails in this
                one is raised as it is.
        """
        return make(), []

    def total(self, *parts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Each of the sums of this process, added over all processes; in the graph."""
        return parts

    def collect(self, values: torch.Tensor) -> torch.Tensor:
        """The values ``[n]`` of all processes in rank order, without a graph."""
        return values

    def gather(
        self, units: PerDirection, labels: torch.Tensor, claims: list[Claim]
    ) -> tuple[FurtherPairs, FurtherPairs] | None:
        """The pairs of the other processes in rank order, in the graph, and those of all; None if alone.

        Args:
            units: unit rows of both modalities, ``[B, D]``.
            labels: ``[B]`` int64.
            claims: of all processes.
        """
        return None

    def shared(self, value: Number) -> Number:
        """A number computed alike in all processes; its gradient becomes the mean over them."""
        return value

    def returned(self, part: torch.Tensor, whole: float) -> torch.Tensor:
        """What a process returns for its part of the loss.

        Args:
            part: the sum of all parts is the loss; in the graph.
            whole: the loss, which becomes the value of what is returned.
        """
        return part


class ManyProcesses(OneProcess):
    """The processes of the default group of ``torch.distributed``."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def share(self, make: Callable[[], T], say: Callable[[T], Any]) -> tuple[T, list[Any]]:
        """See ``OneProcess``."""
        heard: list[Any] = [None] * self.size
        try:
            made = make()
            # here, so that the others hear of what cannot be sent, too
            said = pickle.dumps(say(made))
        except Exception as error:
            dist.all_gather_object(heard, (_refusal(error), b""))
            raise
        dist.all_gather_object(heard, (None, said))
        for rank, (refusal, _) in enumerate(heard):
            if refusal is not None:
                raise ValueError(f"process {rank} of {self.size} refuses its batch: {refusal}")
        return made, [pickle.loads(said) for _, said in heard]

    def total(self, *parts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """See ``OneProcess``."""
        dtype = reduce(torch.promote_types, [part.dtype for part in parts])
        joined = torch.cat([part.reshape(-1).to(dtype) for part in parts])
        flat: torch.Tensor = _AllSum.apply(joined)  # type: ignore[no-untyped-call]
        sums = torch.split(flat, [part.numel() for part in parts])
        return tuple(x.reshape(part.shape).to(part.dtype) for x, part in zip(sums, parts, strict=True))

    def collect(self, values: torch.Tensor) -> torch.Tensor:
        """See ``OneProcess``."""
        return torch.cat(_gathered(values.detach(), self.size))

    def gather(
        self, units: PerDirection, labels: torch.Tensor, claims: list[Claim]
    ) -> tuple[FurtherPairs, FurtherPairs]:
        """See ``OneProcess``."""
        everyone: torch.Tensor = _Gather.apply(  # type: ignore[no-untyped-call]
            torch.stack(units), self.rank, self.size
        )
        all_labels = torch.stack(_gathered(labels, self.size))
        ids = [claim.item_ids for claim in claims]
        order = list(range(self.size))

        def pairs(ranks: list[int]) -> FurtherPairs:
            image, text = everyone[ranks].transpose(0, 1).flatten(1, 2)
            item_ids = [item for rank in ranks for item in ids[rank]]
            return further_pairs(
                (image, text), all_labels[ranks].flatten(), item_ids, numbered=claims[0].numbered
            )

        return pairs([rank for rank in order if rank != self.rank]), pairs(order)

    def shared(self, value: Number) -> Number:
        """See ``OneProcess``."""
        if not isinstance(value, torch.Tensor):
            return value
        mean: torch.Tensor = _MeanGradient.apply(value, self.size)  # type: ignore[no-untyped-call]
        return mean

    def returned(self, part: torch.Tensor, whole: float) -> torch.Tensor:
        """See ``OneProcess``."""
        scaled = self.size * part
        return scaled + (whole - scaled.detach())


ALONE = OneProcess()


def processes(*, sharing: bool) -> OneProcess:
    """The processes that share a batch: all of ``torch.distributed`` where it runs, else this one alone."""
    if sharing and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return ManyProcesses()
    return ALONE


def check_claims(claims: list[Claim]) -> None:
    """Refuse batches that differ over processes, and losses that stand or are set otherwise.

    Raises:
        ValueError: naming what differs, and its values in rank order.
    """
    said = [claim.compared() for claim in claims]
    for words in said[0] if said else ():
        values = [each[words] for each in said]
        if any(value != values[0] for value in values):
            shown = ", ".join(map(str, values))
            sizes = {claim.shape[0] for claim in claims}
            advice = ", such as from a sampler that drops the last incomplete batch" if len(sizes) > 1 else ""
            raise ValueError(
                f"{words} {shown} in processes 0 to {len(values) - 1}; expected the same in all{advice}"
            )


def _refusal(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _gathered(values: torch.Tensor, size: int) -> list[torch.Tensor]:
    values = values.contiguous()
    parts = [torch.empty_like(values) for _ in range(size)]
    dist.all_gather(parts, values)
    return parts


def _summed(values: torch.Tensor) -> torch.Tensor:
    values = values.contiguous().clone()
    dist.all_reduce(values)
    return values


class _AllSum(torch.autograd.Function):
    """Sum over processes; what each process's result depends on flows back to all of them."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
        return _summed(values)

    @staticmethod
    @first_order(_INSTEAD)
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return _summed(grad)


class _Gather(torch.autograd.Function):
    """The tensors of all processes on a new first axis; each gets back the sum of its gradients."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, rank: int, size: int) -> torch.Tensor:
        ctx.rank = rank
        return torch.stack(_gathered(values, size))

    @staticmethod
    @first_order(_INSTEAD)
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return _summed(grad)[ctx.rank], None, None


class _MeanGradient(torch.autograd.Function):
    """The value itself; its gradient is the mean over processes."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, size: int) -> torch.Tensor:
        ctx.size = size
        return value.clone()

    @staticmethod
    @first_order(_INSTEAD)
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return _summed(grad) / ctx.size, None
