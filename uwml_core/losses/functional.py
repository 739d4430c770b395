"""The weighted loss as a pure function of similarities, and the pieces it is made of.

No state, no loop over anchors, no host read, no branch on values. Shapes: ``B`` pairs; axis 0 of
``[2, B]`` is the direction: rows of the similarity matrix, then columns.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from uwml_core.losses.terms import AnchorTerms, infonce_terms, triplet_terms
from uwml_core.weighting import UWMLConfig, difficulty_weight, loss_denominator, relative_weight


class AnchorWeights(NamedTuple):
    """Weights of every anchor, ``[2, B]`` each.

    Attributes:
        margin: positive minus hardest negative, cosine units; NaN where an anchor has no negatives.
        pair_weight: difficulty curve at the margin; 0 there.
        weight: relative weight after the clamp; 0 there.
    """

    margin: torch.Tensor
    pair_weight: torch.Tensor
    weight: torch.Tensor


def base_terms(
    similarity: torch.Tensor,
    same_label: torch.Tensor,
    config: UWMLConfig,
    scale: float | torch.Tensor,
) -> AnchorTerms:
    """Terms of the configured base loss from similarities; the plain, fully differentiable form.

    Args:
        similarity: ``[B, B]``, the diagonal holds the positives.
        same_label: ``[B, B]`` bool, True where a candidate is no negative, the diagonal included.
        config: says which base loss, and its margin.
        scale: 1 / temperature; only ``infonce`` uses it.
    """
    if config.base == "triplet":
        return triplet_terms(similarity, same_label, config.triplet_margin)
    return infonce_terms(similarity, same_label, scale)


def anchor_weights(
    terms: AnchorTerms,
    config: UWMLConfig,
    steepness: float | torch.Tensor,
    *,
    detach: bool = True,
) -> AnchorWeights:
    """Margin, curve and clamped relative weight of every anchor.

    Args:
        terms: what the base loss found.
        config: curve, center, hard_floor and max_weight.
        steepness: of the curve at this stage, per cosine unit.
        detach: False lets gradient flow through the weights; for the benchmark of that choice only.
    """
    positive, negative = terms.positive, terms.negative
    if detach:
        positive, negative = positive.detach(), negative.detach()
    margin = torch.where(terms.negative_index < 0, torch.nan, positive - negative)
    pair_weight = difficulty_weight(
        margin,
        curve=config.curve,
        center=config.center,
        steepness=steepness,
        hard_floor=config.hard_floor,
    )
    return AnchorWeights(margin, pair_weight, relative_weight(pair_weight, config.max_weight))


def direction_losses(pair_loss: torch.Tensor, weight: torch.Tensor, normalization: str) -> torch.Tensor:
    """Weighted loss of each direction, ``[2]``, from base losses and relative weights ``[2, B]``."""
    losses: torch.Tensor = (weight * pair_loss).sum(-1) / loss_denominator(weight, normalization)
    return losses


def combine(losses: torch.Tensor, direction_weight: torch.Tensor | tuple[float, float]) -> torch.Tensor:
    """Sum of the two direction losses ``[2]``, each times its direction's weight."""
    return losses[0] * direction_weight[0] + losses[1] * direction_weight[1]


def weighted_loss(
    similarity: torch.Tensor,
    same_label: torch.Tensor,
    steepness: float | torch.Tensor,
    direction_weight: torch.Tensor,
    *,
    config: UWMLConfig,
    scale: float | torch.Tensor,
    detach_weights: bool = True,
) -> torch.Tensor:
    """The whole weighted loss of one step as a scalar, with the step's schedule values given.

    ``UWMLLoss`` is this plus checks, state and the fused path.

    Args:
        similarity: ``[B, B]`` cosine similarities, the diagonal holds the positives.
        same_label: ``[B, B]`` bool, True where a candidate is no negative, the diagonal included.
        steepness: of the difficulty curve, per cosine unit.
        direction_weight: ``[2]``, sum 1.
        config: everything that does not change from step to step.
        scale: 1 / temperature, a float or a scalar tensor that stays in the graph.
        detach_weights: see ``anchor_weights``.

    Example:
        >>> similarity = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
        >>> weights = torch.tensor([0.5, 0.5])
        >>> same = torch.eye(2, dtype=torch.bool)
        >>> config = UWMLConfig(curve="uniform")
        >>> loss = weighted_loss(similarity, same, 1.0, weights, config=config, scale=1.0)
        >>> round(float(loss), 4)
        0.4037
    """
    terms = base_terms(similarity, same_label, config, scale)
    weights = anchor_weights(terms, config, steepness, detach=detach_weights)
    losses = direction_losses(terms.pair_loss, weights.weight, config.normalization)
    return combine(losses, direction_weight)
