"""One direction of retrieval: anchors against candidates, and what their negatives say.

Shapes: ``B`` anchors, ``C`` candidates, of which the first ``B`` are the batch: the positive of anchor i is
candidate i.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from uwml_core.losses.distributed import ALONE, OneProcess
from uwml_core.losses.search import max_with_index
from uwml_core.weighting import UWMLConfig

_SMALLEST_SCALE = 1e-3


class Candidates(NamedTuple):
    """Anchors and candidates of one direction.

    Attributes:
        similarity: ``[B, C]`` cosine similarities; the diagonal holds the positives.
        excluded: ``[B, C]`` bool, True where a candidate is no negative, the diagonal included.
        false_negatives: ``[B, C]`` bool, those of them that were left out as suspected false negatives;
            None where none are looked for.
    """

    similarity: torch.Tensor
    excluded: torch.Tensor
    false_negatives: torch.Tensor | None = None

    @property
    def positive(self) -> torch.Tensor:
        """Similarity of each anchor to its positive, ``[B]``."""
        return self.similarity.diagonal()

    def detached(self) -> Candidates:
        """The same without a graph."""
        return self._replace(similarity=self.similarity.detach())


Both = tuple[Candidates, Candidates]


def both_directions(
    similarity: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    same_label: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    config: UWMLConfig,
) -> Both:
    """Candidates of the two directions, suspected false negatives left out.

    Args:
        similarity: ``[B, B]``, read by rows and by columns; or one ``[B, C]`` for each direction.
        same_label: bool of the same shape, True where a candidate is no negative.
        config: whose ``false_negative_margin`` counts.
    """
    if isinstance(similarity, torch.Tensor):
        similarity = (similarity, similarity.T)
    if isinstance(same_label, torch.Tensor):
        same_label = (same_label, same_label.T)
    margin = config.false_negative_margin
    first, second = (
        _without_false_negatives(Candidates(values, excluded), margin)
        for values, excluded in zip(similarity, same_label, strict=True)
    )
    return first, second


def _without_false_negatives(side: Candidates, margin: float | None) -> Candidates:
    if margin is None:
        return side
    values = side.similarity.detach()
    found = (values > values.diagonal()[:, None] + margin) & ~side.excluded
    return side._replace(excluded=side.excluded | found, false_negatives=found)


def hardest_negative(side: Candidates) -> tuple[torch.Tensor, torch.Tensor]:
    """Most similar negative of every anchor.

    Returns:
        Similarity ``[B]`` (-inf where there is none) and int64 position ``[B]`` (-1 there).
    """
    with torch.no_grad():
        best, index = max_with_index(side.similarity.masked_fill(side.excluded, -torch.inf), 1)
        index = index.masked_fill(best == -torch.inf, -1)
    # Read again by index, so that exactly one entry per anchor gets the gradient, ties included.
    read = side.similarity.gather(1, index.clamp(min=0)[:, None])[:, 0]
    return torch.where(index < 0, best, read), index


def negative_statistic(side: Candidates, hardest: torch.Tensor, config: UWMLConfig) -> torch.Tensor:
    """What the margin of every anchor is taken to, ``[B]``; meaningless where it has no negatives.

    Args:
        side: the direction.
        hardest: similarity to the hardest negative, ``[B]``.
        config: statistic, ``topk`` and ``quantile``.
    """
    if config.negative_statistic == "hardest":
        return hardest
    if config.negative_statistic == "quantile":
        return masked_quantile(side.similarity, side.excluded, config.quantile)
    count = (~side.excluded).sum(1)
    if config.negative_statistic == "topk_mean":
        return _mean_of_largest(side, count, config.topk)
    return side.similarity.masked_fill(side.excluded, 0.0).sum(1) / count.clamp(min=1)


def _mean_of_largest(side: Candidates, count: torch.Tensor, topk: int) -> torch.Tensor:
    width = min(topk, side.similarity.shape[1])
    largest = side.similarity.masked_fill(side.excluded, -torch.inf).topk(width, dim=1).values
    missing = torch.arange(width, device=count.device) >= count[:, None]
    return largest.masked_fill(missing, 0.0).sum(1) / count.clamp(min=1, max=width)


def masked_quantile(values: torch.Tensor, excluded: torch.Tensor, level: float) -> torch.Tensor:
    """Quantile of each row over what is not excluded, interpolated linearly; NaN or inf of nothing.

    Example:
        >>> masked_quantile(torch.tensor([[3.0, 1.0, 9.0]]), torch.tensor([[False, False, True]]), 0.25)
        tensor([1.5000])
    """
    ordered = values.masked_fill(excluded, torch.inf).sort(1).values
    last = (~excluded).sum(1).clamp(min=1) - 1
    place = level * last.to(torch.float64)
    low = place.floor().to(torch.int64)
    high = torch.minimum(low + 1, last)
    below, above = (ordered.gather(1, index[:, None])[:, 0] for index in (low, high))
    return torch.lerp(below, above, (place - low).to(below.dtype))


def negative_spread(side: Candidates, peers: OneProcess = ALONE) -> torch.Tensor:
    """Standard deviation of the similarities to negatives, a scalar >= 1e-3: the scale of margins.

    The square root of the mean over anchors of the biased variance over their negatives. Anchors with
    fewer than two are left out; 1 where none is left. The anchors are those of all processes.
    """
    negative = ~side.excluded
    count = negative.sum(1)
    several = count >= 2
    safe = count.clamp(min=1)
    mean = side.similarity.masked_fill(side.excluded, 0.0).sum(1) / safe
    deviation = (side.similarity - mean[:, None]).masked_fill(side.excluded, 0.0)
    variance = (deviation * deviation).sum(1) / safe
    summed, anchors = peers.total(variance.masked_fill(~several, 0.0).sum(), several.sum())
    spread = (summed / anchors.clamp(min=1)).clamp(min=_SMALLEST_SCALE**2).sqrt()
    return torch.where(anchors > 0, spread, torch.ones_like(spread))
