"""The weighted loss as a pure function of similarities.

No state, no loop over anchors, no host read, no branch on values: it compiles as one graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from uwml_core.losses.bases import anchor_loss
from uwml_core.losses.candidates import (
    Both,
    both_directions,
    hardest_negative,
    negative_spread,
    negative_statistic,
)
from uwml_core.losses.distributed import ALONE, OneProcess
from uwml_core.losses.pairs import pair_loss
from uwml_core.losses.terms import AnchorTerms
from uwml_core.losses.wei2020 import calibrated
from uwml_core.losses.weigh import Weighing, combine, direction_factors, weigh
from uwml_core.weighting import UWMLConfig


def base_terms(
    sides: Both,
    config: UWMLConfig,
    scale: float | torch.Tensor,
    bias: float | torch.Tensor = 0.0,
    *,
    detach: bool = True,
    peers: OneProcess = ALONE,
) -> AnchorTerms:
    """Terms of the configured base loss and statistic; the plain, fully differentiable form.

    Args:
        sides: candidates of the two directions.
        config: base loss, statistic of the negatives, scale of the margins.
        scale: 1 / temperature; only losses with logits use it.
        bias: added to the logits of ``sigmoid``.
        detach: False lets gradient flow through the weights; for the benchmark of that choice only.
        peers: the processes that share the batch.
    """
    hardest, index = zip(*(hardest_negative(side) for side in sides), strict=True)
    weighing = [side.detached() if detach else side for side in sides]
    statistic = [negative_statistic(s, best, config) for s, best in zip(weighing, hardest, strict=True)]
    scaled = config.margin_scale == "negative_std"
    spread = [negative_spread(side, peers) for side in weighing] if scaled else None
    if config.weighs_pairs:
        base = _over_pairs(sides, config, scale, bias, detach=detach)
    else:
        base = _over_anchors(sides, hardest, config, scale, peers)
    return AnchorTerms(
        **base,
        positive=sides[0].positive,
        negative=torch.stack(hardest),
        negative_index=torch.stack(index),
        statistic=torch.stack(statistic),
        margin_scale=None if spread is None else torch.stack(spread),
    )


def _over_anchors(
    sides: Both,
    hardest: Sequence[torch.Tensor],
    config: UWMLConfig,
    scale: float | torch.Tensor,
    peers: OneProcess,
) -> dict[str, Any]:
    if config.base == "wei2020_calibrated":
        sides, hardest = calibrated(sides, hardest, peers)
    both = [anchor_loss(side, best, config, scale) for side, best in zip(sides, hardest, strict=True)]
    zones = [base.zones for base in both if base.zones is not None]
    return {
        "pair_loss": torch.stack([base.loss for base in both]),
        "gradient_mass": torch.stack([base.mass for base in both]),
        "zones": torch.stack(zones, 1) if zones else None,
    }


def _over_pairs(
    sides: Both,
    config: UWMLConfig,
    scale: float | torch.Tensor,
    bias: float | torch.Tensor,
    *,
    detach: bool,
) -> dict[str, Any]:
    both = tuple(pair_loss(side, config, scale, bias, detach=detach) for side in sides)
    return {
        "pair_loss": torch.stack([base.loss.sum(1) + base.positive_loss for base in both]),
        "gradient_mass": torch.stack([base.slope.sum(1) + base.positive_slope for base in both]),
        "pairs": both,
    }


def weighted_loss(
    similarity: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    same_label: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    steepness: float | torch.Tensor,
    direction_weight: torch.Tensor,
    *,
    config: UWMLConfig,
    scale: float | torch.Tensor,
    bias: float | torch.Tensor = 0.0,
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
        bias: added to the logits of ``sigmoid``; like ``scale``.
        detach_weights: False lets gradient flow through the weights.

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
    terms = base_terms(sides, config, scale, bias, detach=detach_weights)
    losses = weigh(terms, Weighing(config, steepness, direction_weight, detach_weights)).losses
    return combine(losses, direction_factors(config, direction_weight))
