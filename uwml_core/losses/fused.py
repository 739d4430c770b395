"""InfoNCE in both directions from one matrix product, with the backward pass written by hand.

Nothing of size ``[B, B]`` is kept but the exponentials that the backward pass needs, and no pass runs over
the transposed matrix: on a CPU this is faster than two cross entropies, diagnostics included.

Shapes: ``B`` pairs, ``D`` dimensions. Axis 0 of ``[2, B]`` is the direction: rows, then columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from uwml_core.losses.first_order import first_order
from uwml_core.losses.similarity import row_norms
from uwml_core.losses.terms import AnchorTerms, hardest_negatives, negative_odds_to_loss
from uwml_core.weighting import UWMLConfig

# exp(+-40) and the sums of thousands of them stay far inside float32, with room for a loss scaler.
LARGEST_SHARED_SCALE = 40.0
# The same loss: the mean of the one largest is the hardest.
_INSTEAD = (
    'use uwml_core.losses.weighted_loss, or UWMLLoss(negative_statistic="topk_mean", topk=1), the same loss '
    "without the fused backward pass"
)


def fusible(config: UWMLConfig) -> bool:
    """Whether the fused path computes this loss: InfoNCE over the batch, margins to the hardest negative."""
    return (
        config.base == "infonce"
        and config.negative_statistic == "hardest"
        and config.margin_scale == "none"
        and config.false_negative_margin is None
        and config.memory_batches == 0
    )


def fused_infonce_terms(
    image: torch.Tensor,
    text: torch.Tensor,
    same_label: torch.Tensor | None,
    scale: float | torch.Tensor,
) -> tuple[AnchorTerms, torch.Tensor]:
    """Terms of InfoNCE straight from features, with the norms that normalising found.

    Only ``pair_loss`` is in the graph. A float scale of at most 40 (temperature >= 0.025) takes one
    exponential for both directions; a larger one, or a tensor, takes one per direction, shifted by each
    anchor's hardest negative.

    Args:
        image: ``[B, D]`` float32 or float64 features, any length.
        text: ``[B, D]``, row k is the partner of row k of ``image``.
        same_label: ``[B, B]`` bool, True where a candidate is not a negative (the diagonal included);
            None where only the diagonal is not.
        scale: 1 / temperature; gradient flows into a tensor.

    Returns:
        The terms and the ``[2, B]`` row norms of ``image`` and ``text``.
    """
    apply: Callable[..., tuple[torch.Tensor, ...]] = _ExpPerDirection.apply
    if not isinstance(scale, torch.Tensor):
        if scale <= LARGEST_SHARED_SCALE:
            apply = _SharedExp.apply
        else:
            scale = image.new_full((), scale)
    loss, positive, negative, index, mass, norms = apply(image, text, same_label, scale)
    return AnchorTerms(loss, positive, negative, index, mass), norms


class _SharedExp(torch.autograd.Function):
    """One exponential for both directions; sound for unit features and a float scale up to 40."""

    @staticmethod
    def forward(
        ctx: Any, image: torch.Tensor, text: torch.Tensor, same: torch.Tensor | None, scale: float
    ) -> tuple[torch.Tensor, ...]:
        image_BD, text_BD, norms = _unit_rows(image, text, scale)
        logits_BB, positive, hardest, index = _logits(image_BD, text_BD, same)
        exp_BB = logits_BB.exp_()
        negatives = torch.stack((exp_BB.sum(1), exp_BB.sum(0)))
        log_odds = negatives.log() - positive
        mass = log_odds.sigmoid()
        ctx.save_for_backward(image_BD, text_BD, exp_BB, negatives + positive.exp(), mass, norms)
        ctx.scale = scale
        out = (positive / scale, hardest / scale, index, mass, norms)
        ctx.mark_non_differentiable(*out)
        return negative_odds_to_loss(log_odds), *out

    @staticmethod
    @first_order(_INSTEAD)
    def backward(ctx: Any, grad: torch.Tensor, *_: Any) -> tuple[torch.Tensor | None, ...]:
        image_BD, text_BD, exp_BB, total, mass, norms = ctx.saved_tensors
        with torch.autocast(grad.device.type, enabled=False):
            row, column = grad / total
            grad_BB = torch.add(row[:, None], column[None, :]).mul_(exp_BB)
            grad_BB.diagonal().copy_((grad * mass).sum(0).neg_())
            image_grad, text_grad = grad_BB @ text_BD, grad_BB.T @ image_BD
            # gone before what follows makes room for itself: the peak of a small batch is here
            del grad_BB
            return (
                _through_norm(image_grad, image_BD, norms[0], ctx.scale),
                _through_norm(text_grad, text_BD, norms[1], 1.0),
                None,
                None,
            )


class _ExpPerDirection(torch.autograd.Function):
    """One exponential per direction, each shifted by its anchors' largest logit; any scale, any gradient."""

    @staticmethod
    def forward(
        ctx: Any, image: torch.Tensor, text: torch.Tensor, same: torch.Tensor | None, scale: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        image_BD, text_BD, norms = _unit_rows(image, text, scale)
        logits_BB, positive, hardest, index = _logits(image_BD, text_BD, same)
        shift = hardest.masked_fill(index < 0, 0.0)
        row_BB = torch.sub(logits_BB, shift[0][:, None]).exp_()
        column_BB = logits_BB.sub_(shift[1]).exp_()
        negatives = torch.stack((row_BB.sum(1), column_BB.sum(0)))
        log_odds = negatives.log() + (shift - positive)
        mass = log_odds.sigmoid()
        # 1 - p over the shifted sum is what each exponential counts for; 0 where there are no negatives.
        per_exp = torch.where(index < 0, 0.0, mass / negatives)
        ctx.save_for_backward(image_BD, text_BD, row_BB, column_BB, per_exp, mass, norms, scale)
        out = (positive / scale, hardest / scale, index, mass, norms)
        ctx.mark_non_differentiable(*out)
        return negative_odds_to_loss(log_odds), *out

    @staticmethod
    @first_order(_INSTEAD)
    def backward(ctx: Any, grad: torch.Tensor, *_: Any) -> tuple[torch.Tensor | None, ...]:
        image_BD, text_BD, row_BB, column_BB, per_exp, mass, norms, scale = ctx.saved_tensors
        with torch.autocast(grad.device.type, enabled=False):
            row, column = grad * per_exp
            grad_BB = torch.mul(row_BB, row[:, None]).addcmul_(column_BB, column[None, :])
            grad_BB.diagonal().copy_((grad * mass).sum(0).neg_())
            image_grad, text_grad = grad_BB @ text_BD, grad_BB.T @ image_BD
            del grad_BB
            # the sum over grad_BB * similarity, without keeping the similarities
            scale_grad = (image_grad * image_BD).sum() / scale if ctx.needs_input_grad[3] else None
            return (
                _through_norm(image_grad, image_BD, norms[0], scale),
                _through_norm(text_grad, text_BD, norms[1], 1.0),
                None,
                scale_grad,
            )


def _unit_rows(
    image: torch.Tensor, text: torch.Tensor, scale: float | torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    # The scale rides on one operand, so the [B, B] logits need no pass of their own for it.
    norms = row_norms(image, text)
    return image * (scale / norms[0])[:, None], text / norms[1][:, None], norms


def _logits(
    image_BD: torch.Tensor, text_BD: torch.Tensor, same: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    logits_BB = image_BD @ text_BD.T
    positive = logits_BB.diagonal().clone()
    if same is None:
        logits_BB.fill_diagonal_(-torch.inf)
    else:
        logits_BB.masked_fill_(same, -torch.inf)
    return logits_BB, positive, *hardest_negatives(logits_BB)


def _through_norm(
    grad_BD: torch.Tensor, scaled_BD: torch.Tensor, norm: torch.Tensor, scale: float | torch.Tensor
) -> torch.Tensor:
    # With scaled = scale * x / |x|: dx = (scale / |x|) (g - u (u . g)), u the unit row.
    factor = (scale / norm)[:, None]
    along = (grad_BD * scaled_BD).sum(1, keepdim=True).mul_(factor / scale**2)
    return grad_BD.mul_(factor).addcmul_(scaled_BD, along, value=-1.0)
