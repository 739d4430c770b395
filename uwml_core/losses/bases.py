"""Base losses of one direction, in their plain, fully differentiable form.

Each takes the candidates of a direction and gives, per anchor, its loss and a number proportional to the
L1 norm of that loss's gradient with respect to the anchor's similarities (detached). Shapes as in
``candidates``.
"""

from __future__ import annotations

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
    return _infonce(side, scale)


def _infonce(side: Candidates, scale: float | torch.Tensor) -> AnchorLoss:
    logits = (side.similarity * scale).masked_fill(side.excluded, -torch.inf)
    log_odds = logits.logsumexp(1) - side.positive * scale
    return AnchorLoss(negative_odds_to_loss(log_odds), log_odds.detach().sigmoid())


def _hinge(side: Candidates, hardest: torch.Tensor, margin: float) -> AnchorLoss:
    hinge = torch.relu(margin - side.positive + hardest)
    return AnchorLoss(hinge, (hinge.detach() > 0).to(hinge.dtype))
