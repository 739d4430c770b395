"""Item ids, labels and captions of a batch in one tensor, for trainers that carry nothing but labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

_UNKNOWN = -1


class PairNames(NamedTuple):
    """What the pairs of a batch are called, as ``UWMLLoss`` and ``RunLogger`` take it; None is unknown."""

    labels: torch.Tensor | None = None
    item_ids: torch.Tensor | None = None
    captions: torch.Tensor | None = None


def pack_pairs(
    item_ids: Sequence[int], labels: Sequence[int] | None = None, captions: Sequence[int] | None = None
) -> torch.Tensor:
    """Names of pairs as one tensor, to travel as the labels of a batch.

    Args:
        item_ids: ``[n]`` rows of the data set.
        labels: ``[n]`` what they show; the item ids when None, so each item is its own.
        captions: ``[n]`` index of the caption within the item, or None.

    Returns:
        int64 ``[n, 3]``.

    Raises:
        ValueError: for lengths that differ, or for -100, which trainers take for "no label".

    Example:
        >>> pack_pairs([7, 8], labels=[1, 1]).tolist()
        [[7, 1, -1], [8, 1, -1]]
    """
    labels = item_ids if labels is None else labels
    captions = [_UNKNOWN] * len(item_ids) if captions is None else captions
    if not len(item_ids) == len(labels) == len(captions):
        raise ValueError(
            f"{len(item_ids)} item_ids, {len(labels)} labels and {len(captions)} captions; "
            "expected equal lengths"
        )
    columns = [torch.as_tensor(values, dtype=torch.int64) for values in (item_ids, labels, captions)]
    packed = torch.stack(columns, dim=1)
    if (packed == -100).any():
        raise ValueError("labels or item_ids hold -100, which trainers take for no label; expected others")
    return packed


def unpack_pairs(labels: Any) -> PairNames:
    """What ``pack_pairs`` put together; a plain ``[batch]`` of labels stays labels.

    Raises:
        ValueError: for another shape.

    Example:
        >>> unpack_pairs(pack_pairs([7, 8])).item_ids.tolist()
        [7, 8]
    """
    if labels is None or labels.ndim == 1:
        return PairNames(labels)
    if labels.ndim != 2 or labels.shape[1] != 3:
        raise ValueError(
            f"labels has shape {tuple(labels.shape)}; expected [batch], or [batch, 3] from pack_pairs"
        )
    item_ids, shown, captions = labels.unbind(1)
    return PairNames(shown, item_ids, None if (captions == _UNKNOWN).any() else captions)
