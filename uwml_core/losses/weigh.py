"""From margins to weights, and from weights and base losses to one loss per direction.

Shapes: ``B`` anchors, ``C`` candidates; axis 0 of ``[2, B]`` is the direction.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from uwml_core.losses.distributed import ALONE, OneProcess
from uwml_core.losses.pairs import PairLoss
from uwml_core.losses.terms import AnchorTerms
from uwml_core.weighting import (
    UWMLConfig,
    combined_weight,
    difficulty_weight,
    effective_sample_size,
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


class Weighted(NamedTuple):
    """A step after weighting.

    Attributes:
        margin, pair_weight, weight: ``[2, B]`` as in ``AnchorWeights``. Where weights belong to pairs,
            ``weight`` is the anchor's weighted loss over its loss of equal weights, NaN where that is 0.
        pair_loss: ``[2, B]`` base loss; where weights belong to pairs, weighted.
        mass: ``[2, B]`` proportional to the L1 norm of the gradient by the anchor's similarities.
        losses: ``[2]`` this process's part of the loss of each direction, in the graph.
        ess: ``[2]`` float64, effective sample size over the anchors of all processes, or over their pairs.
        clamped: ``[2]`` number of this process's at the clamp.
        weighed: ``[2]`` number of its pairs with a weight; None where weights belong to anchors.
    """

    margin: torch.Tensor
    pair_weight: torch.Tensor
    weight: torch.Tensor
    pair_loss: torch.Tensor
    mass: torch.Tensor
    losses: torch.Tensor
    ess: torch.Tensor
    clamped: torch.Tensor
    weighed: torch.Tensor | None = None


class Weighing(NamedTuple):
    """What weights depend on beside the similarities.

    Attributes:
        config: curve, center, hard_floor, combination, max_weight and normalization.
        steepness: of the curve at this stage, per cosine unit (or multiple of the margin scale).
        direction_weight: of the two directions; only ``combination="add"`` uses it.
        detach: False lets gradient flow through the weights; for the benchmark of that choice only.
        peers: the processes that share the batch.
    """

    config: UWMLConfig
    steepness: float | torch.Tensor
    direction_weight: DirectionWeight = (0.5, 0.5)
    detach: bool = True
    peers: OneProcess = ALONE

    def curve(self, margin: torch.Tensor) -> torch.Tensor:
        """Pair weight at each margin."""
        config = self.config
        weight: torch.Tensor = difficulty_weight(
            margin,
            curve=config.curve,
            center=config.center,
            steepness=self.steepness,
            hard_floor=config.hard_floor,
        )
        return weight

    def combined(self, weight: torch.Tensor, direction: int | slice = slice(None)) -> torch.Tensor:
        """Pair weights with what ``combination="add"`` adds: ``[2, n]``, or those of one direction."""
        config = self.config
        if config.combination != "add":
            return weight
        of_direction = torch.as_tensor(self.direction_weight, dtype=weight.dtype, device=weight.device)
        factor = stage_factor(self.steepness, config.steepness_start, config.steepness_end)
        combined: torch.Tensor = combined_weight(weight, of_direction[:, None][direction], factor)
        return combined

    def relative(self, weight: torch.Tensor) -> torch.Tensor:
        """Weights relative to their mean over the last axis, clamped."""
        relative: torch.Tensor = relative_weight(weight, self.config.max_weight, total=self.peers.total)
        return relative


def anchor_weights(terms: AnchorTerms, how: Weighing) -> AnchorWeights:
    """Margin, curve and clamped relative weight of every anchor."""
    positive = terms.positive
    statistic = terms.negative if terms.statistic is None else terms.statistic
    if how.detach:
        positive, statistic = positive.detach(), statistic.detach()
    margin = torch.where(terms.negative_index < 0, torch.nan, positive - statistic)
    scaled = margin if terms.margin_scale is None else margin / terms.margin_scale[:, None]
    pair_weight = how.curve(scaled)
    return AnchorWeights(margin, pair_weight, how.relative(how.combined(pair_weight)))


def weigh(terms: AnchorTerms, how: Weighing) -> Weighted:
    """Weights, losses of the directions and what they say about a step."""
    anchors, config, peers = anchor_weights(terms, how), how.config, how.peers
    if terms.pairs is not None:
        return _weigh_pairs(terms, anchors, how)
    weight = anchors.weight
    if config.own_weights:
        losses = terms.pair_loss.sum(-1) / (peers.size * terms.pair_loss.shape[-1])
    else:
        losses = direction_losses(terms.pair_loss, weight, config.normalization, peers)
    with torch.no_grad():
        clamped = (weight >= config.max_weight).sum(-1)
        ess = effective_sample_size(weight.to(torch.float64), total=peers.total)
        mass = weight * terms.gradient_mass
    return Weighted(*anchors, terms.pair_loss, mass, losses, ess, clamped)


class _OfPairs(NamedTuple):
    weight: torch.Tensor
    pair_loss: torch.Tensor
    mass: torch.Tensor
    loss: torch.Tensor
    ess: torch.Tensor
    clamped: torch.Tensor
    weighed: torch.Tensor


def _weigh_pairs(terms: AnchorTerms, anchors: AnchorWeights, how: Weighing) -> Weighted:
    sides = []
    for direction, pairs in enumerate(terms.pairs or ()):
        margin = pairs.margin
        if terms.margin_scale is not None:
            margin = margin / terms.margin_scale[direction]
        weight = how.combined(how.curve(margin), direction)
        relative = how.relative(weight.reshape(-1)).reshape(weight.shape)
        sides.append(_of_pairs(pairs, relative, terms.negative_index[direction] >= 0, how))
    both = (torch.stack(values) for values in zip(*sides, strict=True))
    return Weighted(anchors.margin, anchors.pair_weight, *both)


def _of_pairs(pairs: PairLoss, relative: torch.Tensor, has_negative: torch.Tensor, how: Weighing) -> _OfPairs:
    weighted = (relative * pairs.loss).sum(1) + pairs.positive_loss
    (count,) = how.peers.total(has_negative.sum())
    loss = weighted.sum() / count.clamp(min=1)
    with torch.no_grad():
        equal = pairs.loss.sum(1) + pairs.positive_loss
        weight = torch.where(has_negative, weighted / equal, 0.0)
        flat = relative.detach().reshape(-1).to(torch.float64)
        clamped, weighed = (relative >= how.config.max_weight).sum(), (flat > 0).sum()
        mass = (relative * pairs.slope).sum(1) + pairs.positive_slope
        ess = effective_sample_size(flat, total=how.peers.total)
    return _OfPairs(weight, weighted, mass, loss, ess, clamped, weighed)


def direction_losses(
    pair_loss: torch.Tensor, weight: torch.Tensor, normalization: str, peers: OneProcess = ALONE
) -> torch.Tensor:
    """Weighted loss of each direction, ``[2]``, from base losses and relative weights ``[2, B]``.

    With several processes it is this one's part of a sum over all.
    """
    denominator = loss_denominator(weight, normalization, total=peers.total)
    losses: torch.Tensor = (weight * pair_loss).sum(-1) / denominator
    return losses


def direction_factors(config: UWMLConfig, direction_weight: DirectionWeight) -> DirectionWeight:
    """What each direction's loss is multiplied by.

    Its weight; a half where that is inside the sum; 1 for a base loss with weights of its own, whose
    authors add the directions.
    """
    if config.own_weights:
        return (1.0, 1.0)
    return (0.5, 0.5) if config.combination == "add" else direction_weight


def combine(losses: torch.Tensor, factors: DirectionWeight) -> torch.Tensor:
    """Sum of the two direction losses ``[2]``, each times its factor."""
    return losses[0] * factors[0] + losses[1] * factors[1]
