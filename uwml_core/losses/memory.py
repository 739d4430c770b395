"""Negatives beyond the batch: the embeddings of the last batches, detached, with labels and item ids."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from uwml_core.losses.further import FurtherPairs


class MemoryQueue:
    """First in, first out, in whole batches: embeddings grow stale with steps, not with pairs.

    Args:
        batches: how many are kept.
        modalities: ``both``, or ``text`` for the second modality only: candidates of the first direction.

    Reference:
        X. Wang et al., Cross-Batch Memory for Embedding Learning, CVPR 2020; here a queue per modality.
    """

    def __init__(self, batches: int, modalities: str) -> None:
        self._batches: deque[FurtherPairs] = deque(maxlen=batches)
        self._both = modalities == "both"

    @property
    def dim(self) -> int | None:
        """Size of the embeddings kept, None while there are none."""
        return self._batches[0].text.shape[1] if self._batches else None

    def remembered(self, like: torch.Tensor) -> FurtherPairs | None:
        """All that is kept, oldest first, in dtype and on device of ``like``; None while that is nothing."""
        if not self._batches:
            return None
        images, texts, labels, numbered, item_ids = zip(*self._batches, strict=True)
        return FurtherPairs(
            image=torch.cat([image.to(like) for image in images]) if self._both else None,
            text=torch.cat([text.to(like) for text in texts]),
            labels=torch.cat([values.to(like.device) for values in labels]),
            numbered=torch.cat([values.to(like.device) for values in numbered]),
            item_ids=tuple(item for items in item_ids for item in items),
        )

    def push(self, pairs: FurtherPairs) -> None:
        """Keep a batch without its graph; the oldest leaves when the queue is full."""
        kept = pairs.image.detach() if self._both and pairs.image is not None else None
        self._batches.append(pairs._replace(image=kept, text=pairs.text.detach()))

    def clear(self) -> None:
        """Forget everything."""
        self._batches.clear()

    def state_dict(self) -> list[dict[str, Any]]:
        """What ``load_state_dict`` takes back: tensors and plain values."""
        return [{**batch._asdict(), "item_ids": list(batch.item_ids)} for batch in self._batches]

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Continue from a ``state_dict``; older batches than fit are dropped.

        Raises:
            ValueError: if it holds texts only and both modalities are asked for; the queue is then as before.
        """
        kept = [FurtherPairs(**{**batch, "item_ids": tuple(batch["item_ids"])}) for batch in state]
        if self._batches.maxlen and self._both and any(pairs.image is None for pairs in kept):
            raise ValueError(
                "memory_modalities='both' contradicts the state of the loss, whose memory holds texts only; "
                "expected memory_modalities='text', or a state without memory"
            )
        self.clear()
        for pairs in kept:
            self.push(pairs)
