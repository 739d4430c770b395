"""The polynomial loss of Wei et al. (CVPR 2020) as its authors released it, a comparator of its own weights.

Per anchor with positive s+ < 1 - 1e-5 and a negative s- + margin > s+, the hardest of them:
max(0, P(s+)) + max(0, Q(s-)). An anchor without such a negative adds nothing. Both directions are summed and
divided by the batch.

Where Q < 0 the negative has no gradient (dead zone: 0.0955 < s- < 0.3489 for the released Q); where Q > 0 but
falls, the hardest negative is pulled closer (wrong-sign zone, below it).

Reference:
    J. Wei et al., Universal Weighting Metric Learning for Cross-Modal Matching, CVPR 2020; the authors'
    released code (the Max variant is the only one in it).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from uwml_core.losses.candidates import Both, Candidates, masked_quantile
from uwml_core.losses.distributed import ALONE, OneProcess
from uwml_core.losses.terms import AnchorLoss
from uwml_core.weighting import UWMLConfig

_LARGEST_POSITIVE = 1.0 - 1e-5
# Where the calibrated loss puts the medians, and how far apart they are taken to be at least.
_MEDIAN_NEGATIVE = 0.6
_MEDIAN_GAP = 0.2
_SMALLEST_GAP = 0.05
# What the mapping to these medians may round by, in units of the dtype's precision.
_ROUNDING = 64


def polynomial_loss(side: Candidates, hardest: torch.Tensor, config: UWMLConfig) -> AnchorLoss:
    """The loss of every anchor of a direction.

    Args:
        side: the direction.
        hardest: similarity to the hardest negative, ``[B]``, in the graph; -inf where there is none.
        config: coefficients and margin.
    """
    positive = side.positive
    slack = _ROUNDING * torch.finfo(positive.dtype).eps if config.base == "wei2020_calibrated" else 0.0
    active = (positive < _LARGEST_POSITIVE) & (hardest + config.triplet_margin > positive + slack)
    negative = torch.where(active, hardest, 0.0)
    pull, push = config.positive_polynomial, config.negative_polynomial
    attraction, repulsion = _value(pull, positive), _value(push, negative)
    loss = torch.where(active, attraction.clamp(min=0.0) + repulsion.clamp(min=0.0), 0.0)
    with torch.no_grad():
        slope = _value(_derivative(push), negative)
        mass = torch.where(attraction >= 0, _value(_derivative(pull), positive).abs(), 0.0)
        mass = torch.where(active, mass + torch.where(repulsion >= 0, slope.abs(), 0.0), 0.0)
        zones = torch.stack((active & (repulsion < 0), active & (repulsion > 0) & (slope < 0)))
    return AnchorLoss(loss, mass, zones)


def calibrated(
    sides: Both, hardest: Sequence[torch.Tensor], peers: OneProcess = ALONE
) -> tuple[Both, list[torch.Tensor]]:
    """Similarities mapped to the range in which the released constants act.

    S' = 0.6 + 0.2 (S - med s-) / max(med s+ - med s-, 0.05) with the medians of the batch's positives and
    of the hardest negatives of both directions, detached; the batch is that of all processes.

    A pair at both medians then has s+ = 0.8 and s- = 0.6, and at the released margin of 0.2 it is on the edge
    of s- + margin > s+. So that rounding does not decide, ``polynomial_loss`` takes s- for informative only
    above the edge by 64 units of the dtype's precision (8e-6 in float32): such a pair adds nothing.

    Returns:
        The mapped directions and the mapped hardest negatives.
    """
    with torch.no_grad():
        of_negatives = _median(peers.collect(torch.cat(list(hardest)).detach()))
        gap = (_median(peers.collect(sides[0].positive)) - of_negatives).clamp(min=_SMALLEST_GAP)
        slope = _MEDIAN_GAP / gap
        offset = _MEDIAN_NEGATIVE - slope * of_negatives
    first, second = (side._replace(similarity=offset + slope * side.similarity) for side in sides)
    return (first, second), [offset + slope * values for values in hardest]


def _median(values: torch.Tensor) -> torch.Tensor:
    missing = values == -torch.inf
    return masked_quantile(values[None, :], missing[None, :], 0.5).masked_fill(missing.all(), 0.0)[0]


def _value(coefficients: Sequence[float], x: torch.Tensor) -> torch.Tensor:
    # of a constant, too, the graph stays alive
    value = coefficients[-1] + 0.0 * x
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _derivative(coefficients: Sequence[float]) -> tuple[float, ...]:
    return tuple(power * c for power, c in enumerate(coefficients))[1:] or (0.0,)
