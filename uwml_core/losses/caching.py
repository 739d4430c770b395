"""Gradient caching: the gradients of a large batch in the memory of a small one.

Averaging the gradients of small batches, plain accumulation, gives a contrastive loss no more negatives. Here
the whole batch is encoded twice, chunk by chunk: once without a graph, for the loss and its gradient by the
embeddings, then with one, for the gradient by the encoders' parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch

from uwml_core.losses.uwml import UWMLLoss

Encode = Callable[[Any], Sequence[torch.Tensor]]


def cached_backward(
    loss: Callable[..., torch.Tensor],
    encode: Encode,
    chunks: Sequence[Any],
    *,
    backward: Callable[[torch.Tensor], Any] = torch.Tensor.backward,
    no_sync: Callable[[], AbstractContextManager[Any]] | None = None,
    **loss_arguments: Any,
) -> torch.Tensor:
    """Loss of a whole batch and its gradients, encoded chunk by chunk; in place of ``loss.backward()``.

    The gradients are those of one pass over the whole batch: random numbers (dropout) repeat in the second
    pass, autocast holds in both if the call is inside it. An encoder that mixes the rows of its input, as
    BatchNorm does in training mode, sees chunks: it normalises each by itself and counts it twice. A
    ``UWMLLoss`` takes the call for a whole optimizer step.

    Args:
        loss: called once with all embeddings; ``UWMLLoss`` or any other with its call signature.
        encode: from a chunk to ``(image_features, text_features)``, ``[chunk, dim]`` each. Further tensors,
            such as a model's own ``logit_scale``, follow them to the loss: those of the last chunk, whose
            gradient enters once.
        chunks: the batch in order, in as many parts as it takes.
        backward: runs the backward pass of the loss, such as ``accelerator.backward`` or
            ``lambda value: scaler.scale(value).backward()``.
        no_sync: makes the context in which gradients are not averaged over processes; ``encode.no_sync``
            unless given, as ``DistributedDataParallel`` has it. The last chunk is outside it.
        **loss_arguments: for the loss, such as ``labels`` and ``item_ids`` of the whole batch.

    Returns:
        The loss, a scalar without a graph.

    Raises:
        ValueError: if there are no chunks.

    Reference:
        L. Gao et al., Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, RepL4NLP 2021.

    Example:
        >>> encoder, loss = torch.nn.Linear(3, 2), UWMLLoss(accumulate_batches=4, total_steps=10)
        >>> image, text = torch.eye(8, 3) + 1, torch.eye(8, 3) + 2
        >>> chunks = list(zip(image.chunk(4), text.chunk(4), strict=True))
        >>> value = cached_backward(loss, lambda chunk: [encoder(x) for x in chunk], chunks)
        >>> encoder.weight.grad.shape, loss.step
        (torch.Size([2, 3]), 1)
    """
    if not chunks:
        raise ValueError("chunks is empty; expected the batch in at least one part")
    if isinstance(loss, UWMLLoss):
        loss_arguments = {**loss_arguments, "whole_step": True}
    first = [_first_pass(encode, chunk) for chunk in chunks]
    # earlier releases of torch reuse a cast that autocast made without a graph
    torch.clear_autocast_cache()
    leaves = _leaves([encoded.outputs for encoded in first])
    value = loss(*leaves, **loss_arguments)
    backward(value)
    gradients = _by_chunk([leaf.grad for leaf in leaves], [len(encoded.outputs[0]) for encoded in first])
    apart = no_sync or _no_sync_of(encode)
    for number, (chunk, encoded) in enumerate(zip(chunks, first, strict=True), start=1):
        with nullcontext() if number == len(chunks) else apart():
            encoded.random.restore()
            _second_pass(encode(chunk), gradients[number - 1])
    return value.detach()


def _no_sync_of(encode: Encode) -> Callable[[], AbstractContextManager[Any]]:
    own: Callable[[], AbstractContextManager[Any]] = getattr(encode, "no_sync", nullcontext)
    return own


class _RandomState(NamedTuple):
    cpu: torch.Tensor
    cuda: list[torch.Tensor]

    @classmethod
    def now(cls) -> _RandomState:
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        return cls(torch.get_rng_state(), cuda)

    def restore(self) -> None:
        torch.set_rng_state(self.cpu)
        if self.cuda:
            torch.cuda.set_rng_state_all(self.cuda)


class _FirstPass(NamedTuple):
    random: _RandomState
    outputs: Sequence[torch.Tensor]


def _first_pass(encode: Encode, chunk: Any) -> _FirstPass:
    random = _RandomState.now()
    with torch.no_grad():
        return _FirstPass(random, tuple(encode(chunk)))


def _leaves(outputs: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
    """The embeddings of the whole batch and the further tensors of the last chunk, a graph's new start."""
    image, text = (torch.cat([chunk[place] for chunk in outputs]) for place in range(2))
    return [x.detach().requires_grad_() for x in (image, text, *outputs[-1][2:])]


def _by_chunk(gradients: Sequence[torch.Tensor | None], sizes: list[int]) -> list[list[torch.Tensor | None]]:
    """What flows into the outputs of each chunk; None where nothing does."""
    image, text, *further = gradients
    parts = [
        [None] * len(sizes) if whole is None else list(torch.split(whole, sizes)) for whole in (image, text)
    ]
    by_chunk = [list(pair) for pair in zip(*parts, strict=True)]
    by_chunk[-1] += further
    return by_chunk


def _second_pass(outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor | None]) -> None:
    # a frozen encoder's output has no graph; outputs without a gradient are those of earlier chunks
    flows = [
        (x, gradient)
        for x, gradient in zip(outputs, gradients, strict=False)
        if x.requires_grad and gradient is not None
    ]
    if flows:
        tensors, into = zip(*flows, strict=True)
        torch.autograd.backward(tensors, into)
