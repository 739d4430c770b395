"""Batch normalization over a batch that several processes or chunks share.

PyTorch's own ``SyncBatchNorm`` does this for processes, on GPUs only; this one works with any backend.

Shapes: B rows, C channels; statistics are ``[C]``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import distributed as dist
from torch import nn

_DIMS = (0, 2, 3)


class Moments(NamedTuple):
    """Of the whole batch, float64: values per channel ``[1]``, their mean and their biased variance."""

    values: torch.Tensor
    mean: torch.Tensor
    variance: torch.Tensor


class SharedBatchNorm2d(nn.BatchNorm2d):
    """``BatchNorm2d`` whose statistics in training are those of all processes' rows together.

    Each process gets the outputs, gradients and running statistics that one process with all rows would
    have. Parameters and buffers keep their names.

    Attributes:
        moments: of the whole batch, where it is more than the rows of a call in all processes; None else.
        gradient_sums: float ``[2, C]`` over the whole batch, of the gradient by the output and of its
            product with the normalised values; None where ``moments`` is.
    """

    moments: Moments | None = None
    gradient_sums: torch.Tensor | None = None

    # its statistics come and go between calls, which would compile it again and again
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Normalise ``[B, C, H, W]``."""
        if not self.training:
            return super().forward(values)
        moments = self.moments
        if moments is None:
            moments = moments_of(moment_sums(values))
            self.remember(moments)
        normal: torch.Tensor = _Normalize.apply(values, self.weight, self.bias, moments, self)  # type: ignore[no-untyped-call]
        return normal.to(values.dtype)

    @torch.no_grad()
    def remember(self, moments: Moments) -> None:
        """Let the running statistics follow a batch."""
        unbiased = moments.variance * (moments.values / (moments.values - 1))
        for kept, value in ((self.running_mean, moments.mean), (self.running_var, unbiased)):
            if kept is not None:
                kept.lerp_(value.to(kept), self.momentum or 0.0)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)


def share_statistics(model: nn.Module) -> None:
    """Let every ``BatchNorm2d`` of a model share its statistics.

    Args:
        model: changed in place; its parameters and buffers stay the same objects.
    """
    for name, child in model.named_children():
        if type(child) is nn.BatchNorm2d:
            shared = SharedBatchNorm2d(child.num_features, child.eps, child.momentum)
            for key, value in (*child.named_parameters(), *child.named_buffers()):
                setattr(shared, key, value)
            setattr(model, name, shared)
        share_statistics(child)


@torch.no_grad()
def moment_sums(values: torch.Tensor) -> torch.Tensor:
    """Number, sums and sums of squares of values ``[B, C, H, W]``, float64 ``[1 + 2C]``; they add up."""
    variance, mean = torch.var_mean(_not_half(values), _DIMS, correction=0)
    # in float64 the difference of two large numbers in moments_of keeps what float32 knows of it
    mean, variance = mean.double(), variance.double()
    count = mean.new_full((1,), values.numel() / len(mean))
    return torch.cat((count, count * mean, count * (variance + mean.square())))


def moments_of(sums: torch.Tensor) -> Moments:
    """Moments of the whole batch from each process's ``moment_sums``."""
    sums = over_processes(sums)
    mean, square = (sums[1:] / sums[:1]).chunk(2)
    variance = (square - mean.square()).clamp(min=0.0)
    return Moments(sums[:1], mean, variance)


def normalised(values: torch.Tensor, moments: Moments, eps: float) -> torch.Tensor:
    """Values ``[B, C, H, W]`` of mean 0 and variance 1 over the whole batch."""
    values = _not_half(values)
    return (values - _wide(moments.mean.to(values))) * _wide(_scale(moments, eps).to(values))


def _not_half(values: torch.Tensor) -> torch.Tensor:
    # as PyTorch's own layer: sums of half precision numbers are kept in float32
    return values if values.dtype == torch.float64 else values.float()


def _scale(moments: Moments, eps: float) -> torch.Tensor:
    return (moments.variance + eps).rsqrt()


def over_processes(sums: torch.Tensor) -> torch.Tensor:
    """The sum over all processes."""
    if dist.is_initialized():
        sums = sums.clone()
        dist.all_reduce(sums)
    return sums


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, *others: Any) -> torch.Tensor:
        weight, bias, moments, layer = others
        normal = normalised(values, moments, layer.eps)
        ctx.save_for_backward(normal, weight * _scale(moments, layer.eps).to(weight), moments.values)
        ctx.layer = layer
        return normal * _wide(weight) + _wide(bias)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        normal, slope, count = ctx.saved_tensors
        gradient = gradients[0].to(normal)
        own = gradient_sums(gradient, normal)
        whole = ctx.layer.gradient_sums
        mean, along = (over_processes(own) if whole is None else whole) / count.to(own)
        # what the statistics pass on: they are functions of all rows
        passed = _wide(slope) * (gradient - _wide(mean) - normal * _wide(along))
        return passed, own[1], own[0], None, None


def gradient_sums(gradient: torch.Tensor, normal: torch.Tensor) -> torch.Tensor:
    """Sums per channel ``[2, C]`` of a gradient and of its product with normalised values."""
    return torch.stack((gradient.sum(_DIMS), (gradient * normal).sum(_DIMS)))


def _wide(statistic: torch.Tensor) -> torch.Tensor:
    wide: torch.Tensor = statistic[:, None, None]
    return wide
