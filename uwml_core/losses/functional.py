"""The weighted loss as a pure function of similarities, and the pieces it is made of.

No state, no loop over anchors, no host read, no branch on values. Shapes: ``B`` pairs; axis 0 of
``[2, B]`` is the direction: rows of the similarity matrix, then columns.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from uwml_core.losses.bases import anchor_loss
from uwml_core.losses.candidates import (
    Both,
    both_directions,
    hardest_negative,
    negative_spread,
    negative_statistic,
)
from uwml_core.losses.terms import AnchorTerms
from uwml_core.weighting import (
    UWMLConfig,
    combined_weight,
    difficulty_weight,
    loss_denominator,
    relative_weight,
    stage_factor,
)

DirectionWeight = torch.Tensor | tuple[float, float]


class AnchorWeights(NamedTuple):
    """Weights of every anchor, ``[2, B]`` each.

    Attributes:
        margin: positive minus the statistic of the negatives, cosine units; NaN where an anchor has none.
        pair_weight: difficulty curve at the margin; 0 there.
        weight: relative weight after the clamp; 0 there.
    """

    margin: torch.Tensor
    pair_weight: torch.Tensor
    weight: torch.Tensor


def base_terms(
    sides: Both, config: UWMLConfig, scale: float | torch.Tensor, *, detach: bool = True
) -> AnchorTerms:
    """Terms of the configured base loss and statistic; the plain, fully differentiable form.

    Args:
        sides: candidates of the two directions.
        config: base loss, statistic of the negatives, scale of the margins.
        scale: 1 / temperature; only losses with a softmax use it.
        detach: see ``anchor_weights``.
    """
    hardest, index = zip(*(hardest_negative(side) for side in sides), strict=True)
    bases = [anchor_loss(side, best, config, scale) for side, best in zip(sides, hardest, strict=True)]
    weighing = [side.detached() if detach else side for side in sides]
    statistic = [negative_statistic(s, best, config) for s, best in zip(weighing, hardest, strict=True)]
    spread = [negative_spread(side) for side in weighing] if config.margin_scale == "negative_std" else None
    return AnchorTerms(
        pair_loss=torch.stack([base.loss for base in bases]),
        positive=sides[0].positive,
        negative=torch.stack(hardest),
        negative_index=torch.stack(index),
        gradient_mass=torch.stack([base.mass for base in bases]),
        statistic=torch.stack(statistic),
        margin_scale=None if spread is None else torch.stack(spread),
    )


def anchor_weights(
    terms: AnchorTerms,
    config: UWMLConfig,
    steepness: float | torch.Tensor,
    direction_weight: DirectionWeight = (0.5, 0.5),
    *,
    detach: bool = True,
) -> AnchorWeights:
    """Margin, curve and clamped relative weight of every anchor.

    Args:
        terms: what the base loss found.
        config: curve, center, hard_floor, combination and max_weight.
        steepness: of the curve at this stage, per cosine unit (or multiple of the margin scale).
        direction_weight: of the two directions; only ``combination="add"`` uses it.
        detach: False lets gradient flow through the weights; for the benchmark of that choice only.
    """
    positive = terms.positive
    statistic = terms.negative if terms.statistic is None else terms.statistic
    if detach:
        positive, statistic = positive.detach(), statistic.detach()
    margin = torch.where(terms.negative_index < 0, torch.nan, positive - statistic)
    scaled = margin if terms.margin_scale is None else margin / terms.margin_scale[:, None]
    pair_weight = difficulty_weight(
        scaled,
        curve=config.curve,
        center=config.center,
        steepness=steepness,
        hard_floor=config.hard_floor,
    )
    combined = pair_weight
    if config.combination == "add":
        of_direction = torch.as_tensor(direction_weight, dtype=margin.dtype, device=margin.device)
        combined = combined_weight(pair_weight, of_direction[:, None], _stage_factor(steepness, config))
    return AnchorWeights(margin, pair_weight, relative_weight(combined, config.max_weight))


def _stage_factor(steepness: float | torch.Tensor, config: UWMLConfig) -> float | torch.Tensor:
    factor: float | torch.Tensor = stage_factor(steepness, config.steepness_start, config.steepness_end)
    return factor


def direction_losses(pair_loss: torch.Tensor, weight: torch.Tensor, normalization: str) -> torch.Tensor:
    """Weighted loss of each direction, ``[2]``, from base losses and relative weights ``[2, B]``."""
    losses: torch.Tensor = (weight * pair_loss).sum(-1) / loss_denominator(weight, normalization)
    return losses


def direction_factors(config: UWMLConfig, direction_weight: DirectionWeight) -> DirectionWeight:
    """What each direction's loss is multiplied by: its weight, or a half where that is inside the sum."""
    return (0.5, 0.5) if config.combination == "add" else direction_weight


def combine(losses: torch.Tensor, factors: DirectionWeight) -> torch.Tensor:
    """Sum of the two direction losses ``[2]``, each times its factor."""
    return losses[0] * factors[0] + losses[1] * factors[1]


def weighted_loss(
    similarity: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    same_label: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
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
        similarity: ``[B, B]`` cosine similarities, the diagonal holds the positives; or one such matrix
            per direction, ``[B, C]``, where there are more candidates than the batch.
        same_label: bool, shaped alike, True where a candidate is no negative, the diagonal included.
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
    sides = both_directions(similarity, same_label, config)
    terms = base_terms(sides, config, scale, detach=detach_weights)
    weights = anchor_weights(terms, config, steepness, direction_weight, detach=detach_weights)
    losses = direction_losses(terms.pair_loss, weights.weight, config.normalization)
    return combine(losses, direction_factors(config, direction_weight))
