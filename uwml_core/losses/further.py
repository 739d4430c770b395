"""Candidates behind the own batch: the pairs of other processes, and those of earlier batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

PerDirection = tuple[torch.Tensor, torch.Tensor]


class FurtherPairs(NamedTuple):
    """Pairs that are candidates, but no anchors; ``Q`` of them.

    Attributes:
        image: ``[Q, D]`` unit rows of the first modality; None where only the second is a candidate.
        text: ``[Q, D]`` unit rows of the second modality.
        labels: ``[Q]`` int64.
        numbered: ``[Q]`` bool, True where a label is a running number: it equals no given label.
        item_ids: of the ``Q`` pairs, None where unknown.
    """

    image: torch.Tensor | None
    text: torch.Tensor
    labels: torch.Tensor
    numbered: torch.Tensor
    item_ids: tuple[Any, ...]

    def same_label(self, labels: torch.Tensor, *, numbered: bool) -> torch.Tensor:
        """True where a candidate is no negative of a pair of the batch, ``[B, Q]``."""
        return (labels[:, None] == self.labels) & (self.numbered == numbered)


def further_pairs(
    units: PerDirection, labels: torch.Tensor, item_ids: Any, *, numbered: bool
) -> FurtherPairs:
    """Pairs of one origin.

    Args:
        units: unit rows of both modalities, ``[Q, D]``.
        labels: ``[Q]`` int64.
        item_ids: of the pairs, None where unknown.
        numbered: whether the labels are running numbers.
    """
    flags = torch.full_like(labels, numbered, dtype=torch.bool)
    return FurtherPairs(*units, labels, flags, plain_ids(item_ids, len(labels)))


def plain_ids(item_ids: Any, count: int) -> tuple[Any, ...]:
    """Item ids as a checkpoint takes them, Python's own numbers and texts; None each where there are none.

    Example:
        >>> plain_ids(torch.tensor([4, 9]), 2), plain_ids(None, 2)
        ((4, 9), (None, None))
    """
    if item_ids is None:
        return (None,) * count
    values = item_ids.tolist() if hasattr(item_ids, "tolist") else item_ids
    return tuple(value.item() if hasattr(value, "item") else value for value in values)


def similarities(
    units: PerDirection,
    same: torch.Tensor,
    further: Sequence[FurtherPairs],
    labels: torch.Tensor,
    *,
    numbered: bool,
) -> tuple[PerDirection, PerDirection]:
    """Similarities and masks of both directions, further candidates behind the batch.

    Args:
        units: unit rows of the batch, ``[B, D]`` each.
        same: ``[B, B]`` bool, no negatives within the batch.
        further: in the order in which they follow.
        labels: ``[B]`` of the batch.
        numbered: whether they are running numbers.
    """
    image, text = units
    inside = image @ text.T
    rows, columns, row_masks, column_masks = [inside], [inside.T], [same], [same.T]
    for pairs in further:
        excluded = pairs.same_label(labels, numbered=numbered)
        rows.append(image @ pairs.text.T)
        row_masks.append(excluded)
        if pairs.image is not None:
            columns.append(text @ pairs.image.T)
            column_masks.append(excluded)
    return (_side_by_side(rows), _side_by_side(columns)), (
        _side_by_side(row_masks),
        _side_by_side(column_masks),
    )


def _side_by_side(blocks: Sequence[torch.Tensor]) -> torch.Tensor:
    return blocks[0] if len(blocks) == 1 else torch.cat(list(blocks), 1)
