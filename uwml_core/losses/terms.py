"""What a step knows about every anchor, and the pieces that the plain and the fused path share.

Shapes: ``B`` pairs in the batch; axis 0 of ``[2, B]`` is the direction.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

# Below this width torch.max with indices is as fast as the blocked search.
_BLOCKED_FROM = 512
_BLOCK = 64


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
    """

    pair_loss: torch.Tensor
    positive: torch.Tensor
    negative: torch.Tensor
    negative_index: torch.Tensor
    gradient_mass: torch.Tensor
    statistic: torch.Tensor | None = None
    margin_scale: torch.Tensor | None = None


def max_with_index(values: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Largest value along a dimension of a matrix, and where it is.

    Equal to ``values.max(dim)`` up to the choice among ties; on a CPU the indices are found in blocks,
    because there only ``amax`` without indices is vectorised.

    Args:
        values: ``[n, m]`` without NaN.
        dim: 0 or 1, the dimension to search.

    Returns:
        Values and int64 indices, each of the length of the other dimension.

    Example:
        >>> max_with_index(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), 0)[1].tolist()
        [1, 0]
    """
    size = values.shape[dim]
    if size < _BLOCKED_FROM or values.device.type != "cpu":
        best, index = values.max(dim)
        return best, index
    blocks = torch.stack([block.amax(dim) for block in torch.split(values, _BLOCK, dim)])
    best, block = blocks.max(0)
    inside = torch.arange(_BLOCK, device=values.device)
    candidates = (block[:, None] * _BLOCK + inside).clamp_(max=size - 1)
    found = values.gather(1, candidates) if dim == 1 else values.gather(0, candidates.T).T
    return best, (block * _BLOCK + found.argmax(1)).clamp_(max=size - 1)


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
