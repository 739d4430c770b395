"""What a step knows about every anchor, and the pieces that the plain and the fused path share.

Shapes: ``B`` pairs in the batch; axis 0 of ``[2, B]`` is the direction.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from uwml_core.losses.pairs import PairLoss
from uwml_core.losses.search import max_with_index


class AnchorLoss(NamedTuple):
    """Base loss ``[B]`` of one direction, in the graph, and its gradient's mass ``[B]``; 0 without negatives.

    ``zones`` are those of ``wei2020``, bool ``[2, B]``: dead, wrong sign.
    """

    loss: torch.Tensor
    mass: torch.Tensor
    zones: torch.Tensor | None = None


class AnchorTerms(NamedTuple):
    """What a base loss says about every anchor.

    Attributes:
        pair_loss: ``[2, B]`` base loss, in the graph; 0 where an anchor has no negatives.
        positive: ``[B]`` similarity to the positive, cosine units.
        negative: ``[2, B]`` similarity to the hardest negative; -inf where there is none.
        negative_index: ``[2, B]`` int64 position of that negative among the candidates; -1 where none.
        gradient_mass: ``[2, B]`` detached, proportional to the L1 norm of the gradient of ``pair_loss``
            with respect to the anchor's similarities.
        statistic: ``[2, B]`` what the margin is taken to; None where that is ``negative``.
        margin_scale: ``[2]`` what margins are divided by before the curve; None where by nothing.
        zones: ``[2, 2, B]`` bool, whether the negative is in the dead zone, then whether in the wrong-sign
            zone, per direction; None for losses without them.
        pairs: what the directions say about pairs, where weights belong to pairs; ``pair_loss`` and
            ``gradient_mass`` are then those of equal weights.
    """

    pair_loss: torch.Tensor
    positive: torch.Tensor
    negative: torch.Tensor
    negative_index: torch.Tensor
    gradient_mass: torch.Tensor
    statistic: torch.Tensor | None = None
    margin_scale: torch.Tensor | None = None
    zones: torch.Tensor | None = None
    pairs: tuple[PairLoss, PairLoss] | None = None


def hardest_negatives(masked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Most similar negative of every anchor in both directions.

    Args:
        masked: ``[B, B]`` similarities, -inf where a candidate is not a negative.

    Returns:
        ``[2, B]`` similarities (-inf where there is no negative) and ``[2, B]`` indices (-1 there).
    """
    row, row_index = max_with_index(masked, 1)
    column, column_index = max_with_index(masked, 0)
    hardest = torch.stack((row, column))
    return hardest, torch.stack((row_index, column_index)).masked_fill_(hardest == -torch.inf, -1)


def negative_odds_to_loss(log_odds: torch.Tensor) -> torch.Tensor:
    """Cross entropy log(1 + e^x) of the log odds x of all negatives against the positive.

    Exact for small losses, where -log p has long rounded to 0; 0 for x = -inf (no negatives).
    """
    return -F.logsigmoid(-log_odds)
