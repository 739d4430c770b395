"""What one step sees, as tensors, for any step on its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data import PairDataset, draw_captions, epoch_batches
from uwml_core.training.text import TextTable

Ints = npt.NDArray[np.int64]


class Corpus:
    """Pictures and texts of a data set, addressed by row and by caption within the row.

    Args:
        dataset: the data.
    """

    def __init__(self, dataset: PairDataset) -> None:
        self.dataset = dataset
        numbers: dict[str, int] = {}
        flat = [numbers.setdefault(text, len(numbers)) for row in dataset.captions for text in row]
        self._text_numbers = np.array(flat, dtype=np.int64)
        self._first = np.cumsum(dataset.caption_counts) - dataset.caption_counts
        self._table = TextTable(list(numbers))

    def pictures(self, rows: Ints) -> torch.Tensor:
        """Pictures of these rows, uint8 [n, 3, S, S], or clips [n, frames, 3, S, S]."""
        return self.dataset.pictures[torch.from_numpy(rows)]

    def texts(self, rows: Ints, captions: Ints) -> tuple[torch.Tensor, torch.Tensor]:
        """Features of one caption of each row, as ``TextTable.take`` gives them."""
        return self._table.take(self._text_numbers[self._first[rows] + captions])


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """One step's pairs: item ids, captions drawn and labels int64 [B]; pictures; text features."""

    item_ids: Ints
    captions: Ints
    labels: torch.Tensor
    pictures: torch.Tensor
    texts: tuple[torch.Tensor, torch.Tensor]


class BatchSource:
    """Batches of the training rows as a pure function of seed and step.

    Args:
        corpus: the data.
        rows: int64 [n], training rows.
        batch_size: pairs per step, clipped to n.
        seed: seed of the run.
    """

    def __init__(self, corpus: Corpus, rows: Ints, *, batch_size: int, seed: int) -> None:
        self._corpus, self._rows, self._batch_size, self._seed = corpus, rows, batch_size, seed
        self._labels = corpus.dataset.labels[rows]
        self._order = lru_cache(maxsize=1)(self._epoch)
        self.steps_per_epoch = len(rows) // min(batch_size, len(rows))

    def _epoch(self, epoch: int) -> Ints:
        return epoch_batches(self._seed, epoch, self._rows, self._labels, self._batch_size)

    def at(self, step: int) -> Batch:
        """The batch of a step, counted from 0 over all epochs."""
        epoch, index = divmod(step, self.steps_per_epoch)
        rows = self._order(epoch)[index]
        dataset = self._corpus.dataset
        captions = draw_captions(self._seed, epoch, rows, dataset.caption_counts[rows])
        return Batch(
            item_ids=dataset.item_ids[rows],
            captions=captions,
            labels=torch.from_numpy(dataset.labels[rows].astype(np.int64)),
            pictures=self._corpus.pictures(rows),
            texts=self._corpus.texts(rows, captions),
        )
