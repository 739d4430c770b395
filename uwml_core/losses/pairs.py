"""Base losses that are sums over pairs of anchor and negative, and their weights per pair.

Shapes: ``B`` anchors, ``C`` candidates, as in ``candidates``.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from uwml_core.losses.candidates import Candidates
from uwml_core.weighting import UWMLConfig


class PairLoss(NamedTuple):
    """What a direction says about its pairs.

    Attributes:
        loss: ``[B, C]`` loss of each anchor with each negative, in the graph; 0 elsewhere.
        slope: ``[B, C]`` detached, the size of its derivative by the similarity.
        margin: ``[B, C]`` S_ii - S_ij; NaN where a candidate is no negative.
        positive_loss: ``[B]`` loss of the positive by itself, which carries no weight.
        positive_slope: ``[B]`` detached, the size of its derivative.
    """

    loss: torch.Tensor
    slope: torch.Tensor
    margin: torch.Tensor
    positive_loss: torch.Tensor
    positive_slope: torch.Tensor


def pair_loss(
    side: Candidates,
    config: UWMLConfig,
    scale: float | torch.Tensor,
    bias: float | torch.Tensor,
    *,
    detach: bool = True,
) -> PairLoss:
    """Loss of every pair of a direction.

    Args:
        side: the direction.
        config: which base loss, and its margin.
        scale, bias: of the logits of ``sigmoid``.
        detach: whether margins leave the graph.

    Reference:
        Sum of hinges: A. Karpathy, L. Fei-Fei, Deep Visual-Semantic Alignments, CVPR 2015 (VSE0 in the
        code of VSE++). Sigmoid: X. Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023.
    """
    weighing = side.detached() if detach else side
    margin = weighing.positive[:, None] - weighing.similarity
    margin = torch.where(side.excluded, torch.nan, margin)
    if config.base == "triplet":
        hinge = torch.relu(config.triplet_margin - side.positive[:, None] + side.similarity)
        hinge = hinge.masked_fill(side.excluded, 0.0)
        none = torch.zeros_like(side.positive)
        # its slope by the positive is the sum of these, so shares of the gradient are the same without it
        return PairLoss(hinge, (hinge.detach() > 0).to(hinge.dtype), margin, none, none)
    logits = side.similarity * scale + bias
    alone = side.excluded.all(1)
    of_positive = logits.diagonal()
    return PairLoss(
        loss=-F.logsigmoid(-logits).masked_fill(side.excluded, 0.0),
        slope=logits.detach().sigmoid().masked_fill(side.excluded, 0.0),
        margin=margin,
        positive_loss=-F.logsigmoid(of_positive).masked_fill(alone, 0.0),
        positive_slope=(-of_positive.detach()).sigmoid().masked_fill(alone, 0.0),
    )
