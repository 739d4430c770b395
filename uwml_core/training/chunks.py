"""A batch encoded in chunks, with the gradients of the whole batch, batch normalization included."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from uwml_core.losses import cached_backward
from uwml_core.training.batch_norm import (
    Moments,
    SharedBatchNorm2d,
    gradient_sums,
    moment_sums,
    moments_of,
    normalised,
    over_processes,
)

Tensors = Sequence[torch.Tensor]


class _EnoughError(Exception):
    """Ends a pass whose rest is not needed."""


def backward_in_chunks(
    loss: Callable[..., torch.Tensor],
    model: nn.Module,
    wrapped: nn.Module,
    chunks: Sequence[Tensors],
    *,
    backward: Callable[[torch.Tensor], None] = torch.Tensor.backward,
) -> None:
    """Leave the gradients of a whole batch in the parameters, encoding it chunk by chunk.

    ``cached_backward`` alone would normalise each chunk by itself. Here a layer of batch normalization
    finds its statistics in a pass over all chunks after the layers before it have theirs, and what flows
    back through them in a pass after the layers behind it: exact, at the price of two more passes for each
    such layer. Encoders without one cost what ``cached_backward`` does.

    Args:
        loss: of all embeddings.
        model: the encoders, whose ``SharedBatchNorm2d`` follow each other in the order of ``modules()``.
        wrapped: the same as it is called in training.
        chunks: the batch in order, in equal parts: arguments of the model.
        backward: runs the backward pass of the loss.
    """
    # a frozen layer keeps the statistics that it has
    layers = [
        module for module in model.modules() if isinstance(module, SharedBatchNorm2d) and module.training
    ]
    leaves: list[torch.Tensor] = []

    def loss_of(*embeddings: torch.Tensor) -> torch.Tensor:
        leaves.extend(embeddings)
        return loss(*embeddings)

    def settled_backward(value: torch.Tensor) -> None:
        backward(value)
        flows = zip(*(leaf.grad.chunk(len(chunks)) for leaf in leaves if leaf.grad is not None), strict=True)
        _settle_gradients(settled, model, list(zip(chunks, flows, strict=True)))

    with _forgotten_afterwards(layers):
        settled = _settle_moments(layers, model, chunks)
        cached_backward(
            loss_of,
            lambda chunk: wrapped(*chunk),
            chunks,
            backward=settled_backward,
            no_sync=getattr(wrapped, "no_sync", None),
        )


@contextmanager
def _forgotten_afterwards(layers: Sequence[SharedBatchNorm2d]) -> Iterator[None]:
    try:
        yield
    finally:
        for layer in layers:
            layer.moments = layer.gradient_sums = None


@torch.no_grad()
def _settle_moments(
    layers: Sequence[SharedBatchNorm2d], model: nn.Module, chunks: Sequence[Tensors]
) -> list[tuple[SharedBatchNorm2d, Moments]]:
    """Find the moments of each layer, the first layer's first."""
    settled = []
    for layer in layers:
        sums: list[torch.Tensor] = []
        with layer.register_forward_pre_hook(partial(_take_moments, sums)):
            for chunk in chunks:
                with contextlib.suppress(_EnoughError):
                    model(*chunk)
        layer.moments = moments = moments_of(torch.stack(sums).sum(0))
        layer.remember(moments)
        settled.append((layer, moments))
    return settled


def _take_moments(sums: list[torch.Tensor], layer: nn.Module, inputs: Any) -> None:
    sums.append(moment_sums(inputs[0]))
    raise _EnoughError


def _settle_gradients(
    layers: Sequence[tuple[SharedBatchNorm2d, Moments]],
    model: nn.Module,
    flows: Sequence[tuple[Tensors, Tensors]],
) -> None:
    """Find each layer's sums, the last layer's first.

    Args:
        layers: with moments of the whole batch.
        model: the encoders.
        flows: chunks, and the gradients by their embeddings.
    """
    for layer, moments in reversed(layers):
        sums: list[torch.Tensor] = []
        for chunk, gradients in flows:
            cut: list[torch.Tensor] = []
            with layer.register_forward_hook(partial(_cut_graph, cut, moments)):
                outputs = model(*chunk)
            leaf, normal = cut
            # gradients by the cut alone: those by the parameters come with the last pass
            [gradient] = torch.autograd.grad(outputs, [leaf], gradients)
            sums.append(gradient_sums(gradient, normal))
        layer.gradient_sums = over_processes(torch.stack(sums).sum(0))


def _cut_graph(
    cut: list[torch.Tensor], moments: Moments, layer: SharedBatchNorm2d, inputs: Any, output: torch.Tensor
) -> torch.Tensor:
    leaf = output.detach().requires_grad_()
    cut += [leaf, normalised(inputs[0].detach(), moments, layer.eps)]
    # a copy, which the layer behind may change in place
    return leaf.clone()
