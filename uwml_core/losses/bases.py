"""Base losses of one direction, in their plain, fully differentiable form.

Each takes the candidates of a direction and gives, per anchor, its loss and a number proportional to the
L1 norm of that loss's gradient with respect to the anchor's similarities (detached). Shapes as in
``candidates``.
"""

from __future__ import annotations

import math

import torch

from uwml_core.losses.candidates import Candidates
from uwml_core.losses.terms import AnchorLoss, negative_odds_to_loss
from uwml_core.losses.wei2020 import polynomial_loss
from uwml_core.weighting import UWMLConfig


def anchor_loss(
    side: Candidates, hardest: torch.Tensor, config: UWMLConfig, scale: float | torch.Tensor
) -> AnchorLoss:
    """Base loss of every anchor of a direction.

    Args:
        side: the direction.
        hardest: similarity to the hardest negative, ``[B]``, in the graph; -inf where there is none.
        config: which base loss, and its parameters.
        scale: 1 / temperature; only losses with a softmax use it.
    """
    if config.own_weights:
        return polynomial_loss(side, hardest, config)
    if config.base == "triplet":
        return _hinge(side, hardest, config.triplet_margin)
    if config.base == "dcl":
        return _reweighted(side, scale, alpha=0.0, beta=0.0)
    if config.base == "hn_nce":
        return _reweighted(side, scale, alpha=config.hn_alpha, beta=config.hn_beta)
    return _infonce(side, scale)


def _infonce(side: Candidates, scale: float | torch.Tensor) -> AnchorLoss:
    logits = (side.similarity * scale).masked_fill(side.excluded, -torch.inf)
    log_odds = logits.logsumexp(1) - side.positive * scale
    return AnchorLoss(negative_odds_to_loss(log_odds), log_odds.detach().sigmoid())


def _reweighted(side: Candidates, scale: float | torch.Tensor, *, alpha: float, beta: float) -> AnchorLoss:
    """log(alpha + odds) of negatives that are weighted by e^(beta logit), the weights of mean 1.

    alpha = 1 and beta = 0 is InfoNCE, alpha = beta = 0 is DCL. The weights are part of the loss: their
    gradient flows.

    Reference:
        F. Radenovic et al., Filtering, Distillation, and Hard Negatives for Vision-Language Pre-Training,
        CVPR 2023. C.-H. Yeh et al., Decoupled Contrastive Learning, ECCV 2022; across modalities only.
    """
    count = (~side.excluded).sum(1)
    alone = count == 0
    # an anchor without negatives gets harmless numbers here, and 0 below
    fill = torch.where(alone, 0.0, -torch.inf)[:, None]
    raised, weights = (
        torch.where(side.excluded, fill, factor * scale * side.similarity) for factor in (1.0 + beta, beta)
    )
    negatives = raised.logsumexp(1) - weights.logsumexp(1) + count.clamp(min=1).to(raised.dtype).log()
    log_odds = negatives - side.positive * scale
    with torch.no_grad():
        slopes = (1.0 + beta) * raised.softmax(1) - beta * weights.softmax(1)
        taken = torch.ones_like(log_odds) if alpha == 0.0 else (log_odds - math.log(alpha)).sigmoid()
        mass = (taken * (1.0 + slopes.abs().sum(1)) / 2.0).masked_fill(alone, 0.0)
    if alpha > 0.0:
        log_odds = math.log(alpha) + negative_odds_to_loss(log_odds - math.log(alpha))
    return AnchorLoss(log_odds.masked_fill(alone, 0.0), mass)


def _hinge(side: Candidates, hardest: torch.Tensor, margin: float) -> AnchorLoss:
    hinge = torch.relu(margin - side.positive + hardest)
    return AnchorLoss(hinge, (hinge.detach() > 0).to(hinge.dtype))
