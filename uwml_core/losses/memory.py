"""Negatives beyond the batch: the embeddings of the last batches, detached, with labels and item ids."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch


class Remembered(NamedTuple):
    """Candidates from earlier batches, oldest first; ``Q`` of them.

    Attributes:
        image: ``[Q, D]`` unit rows of the first modality; None where only the second is kept.
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


class MemoryQueue:
    """First in, first out, in whole batches: embeddings grow stale with steps, not with pairs.

    Args:
        batches: how many are kept.
        modalities: ``both``, or ``text`` for the second modality only: candidates of the first direction.

    Reference:
        X. Wang et al., Cross-Batch Memory for Embedding Learning, CVPR 2020; here a queue per modality.
    """

    def __init__(self, batches: int, modalities: str) -> None:
        self._batches: deque[Remembered] = deque(maxlen=batches)
        self._both = modalities == "both"

    @property
    def dim(self) -> int | None:
        """Size of the embeddings kept, None while there are none."""
        return self._batches[0].text.shape[1] if self._batches else None

    def remembered(self, like: torch.Tensor) -> Remembered | None:
        """All that is kept, in dtype and on device of ``like``; None while that is nothing."""
        if not self._batches:
            return None
        images, texts, labels, numbered, item_ids = zip(*self._batches, strict=True)
        return Remembered(
            image=torch.cat([image.to(like) for image in images]) if self._both else None,
            text=torch.cat([text.to(like) for text in texts]),
            labels=torch.cat([values.to(like.device) for values in labels]),
            numbered=torch.cat([values.to(like.device) for values in numbered]),
            item_ids=tuple(item for items in item_ids for item in items),
        )

    def push(
        self, image: torch.Tensor, text: torch.Tensor, labels: torch.Tensor, item_ids: Any, *, numbered: bool
    ) -> None:
        """Keep a batch; the oldest leaves when the queue is full.

        Args:
            image, text: unit rows ``[B, D]``.
            labels: ``[B]`` int64.
            item_ids: of the pairs, None where unknown.
            numbered: whether the labels are running numbers.
        """
        kept = image.detach() if self._both else None
        flags = torch.full_like(labels, numbered, dtype=torch.bool)
        self._batches.append(Remembered(kept, text.detach(), labels, flags, _plain(item_ids, len(labels))))

    def clear(self) -> None:
        """Forget everything."""
        self._batches.clear()

    def state_dict(self) -> list[dict[str, Any]]:
        """What ``load_state_dict`` takes back: tensors and plain values."""
        return [{**batch._asdict(), "item_ids": list(batch.item_ids)} for batch in self._batches]

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Continue from a ``state_dict``; older batches than fit are dropped."""
        self.clear()
        for batch in state:
            self._batches.append(Remembered(**{**batch, "item_ids": tuple(batch["item_ids"])}))


def _plain(item_ids: Any, count: int) -> tuple[Any, ...]:
    if item_ids is None:
        return (None,) * count
    # a checkpoint takes Python's own numbers and texts
    values = item_ids.tolist() if hasattr(item_ids, "tolist") else item_ids
    return tuple(value.item() if hasattr(value, "item") else value for value in values)


def similarities(
    image: torch.Tensor,
    text: torch.Tensor,
    same: torch.Tensor,
    memory: Remembered | None,
    labels: torch.Tensor,
    *,
    numbered: bool,
) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Similarities and masks of both directions, the candidates of the memory behind the batch.

    Args:
        image, text: unit rows of the batch, ``[B, D]``.
        same: ``[B, B]`` bool, no negatives within the batch.
        memory: None where there is none.
        labels: ``[B]`` of the batch.
        numbered: whether they are running numbers.
    """
    inside = image @ text.T
    if memory is None:
        return (inside, inside.T), (same, same.T)
    rows = torch.cat((inside, image @ memory.text.T), 1)
    excluded = torch.cat((same, memory.same_label(labels, numbered=numbered)), 1)
    if memory.image is None:
        return (rows, inside.T), (excluded, same.T)
    return (rows, torch.cat((inside.T, text @ memory.image.T), 1)), (excluded, excluded)
