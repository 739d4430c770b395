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
        """Pictures of these rows, uint8 [n, 3, S, S], clips [n, frames, 3, S, S], or features [n, D]."""
        return self.dataset.inputs(rows)

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

    def inputs(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What the encoders take, on a device: pictures, and buckets and offsets of the texts."""
        buckets, offsets = self.texts
        return self.pictures.to(device), buckets.to(device), offsets.to(device)

    def chunks(self, count: int) -> list[Batch]:
        """The batch in so many equal parts, in order; their number divides its size."""
        return [self._taken(equal_part(len(self.item_ids), number, count)) for number in range(count)]

    def _taken(self, part: slice) -> Batch:
        buckets, offsets = self.texts
        ends = torch.cat([offsets, offsets.new_tensor([len(buckets)])])
        first = ends[part.start]
        return Batch(
            item_ids=self.item_ids[part],
            captions=self.captions[part],
            labels=self.labels[part],
            pictures=self.pictures[part],
            texts=(buckets[first : ends[part.stop]], offsets[part] - first),
        )


class BatchSource:
    """Batches of the training rows as a pure function of seed and step.

    Args:
        corpus: the data.
        rows: int64 [n], training rows.
        batch_size: pairs per step, clipped to n.
        seed: seed of the run.
        rank, processes: which of how many equal parts of each batch to give.
        chunks: in how many equal chunks each process encodes its part.

    Raises:
        ValueError: if a batch does not divide into that many processes and chunks.
    """

    def __init__(
        self,
        corpus: Corpus,
        rows: Ints,
        *,
        batch_size: int,
        seed: int,
        rank: int = 0,
        processes: int = 1,
        chunks: int = 1,
    ) -> None:
        self.corpus, self._rows, self._batch_size, self._seed = corpus, rows, batch_size, seed
        self._labels = corpus.dataset.labels[rows]
        self._order = lru_cache(maxsize=1)(self._epoch)
        whole = min(batch_size, len(rows))
        _check_divisible(whole, processes, chunks)
        self.steps_per_epoch = len(rows) // whole
        self._part = equal_part(whole, rank, processes)

    def _epoch(self, epoch: int) -> Ints:
        return epoch_batches(self._seed, epoch, self._rows, self._labels, self._batch_size)

    def at(self, step: int) -> Batch:
        """The batch of a step, counted from 0 over all epochs, or this process's part of it."""
        epoch, index = divmod(step, self.steps_per_epoch)
        rows = self._order(epoch)[index][self._part]
        dataset = self.corpus.dataset
        captions = draw_captions(self._seed, epoch, rows, dataset.caption_counts[rows])
        return Batch(
            item_ids=dataset.item_ids[rows],
            captions=captions,
            labels=torch.from_numpy(dataset.labels[rows].astype(np.int64)),
            pictures=self.corpus.pictures(rows),
            texts=self.corpus.texts(rows, captions),
        )


def equal_part(size: int, number: int, count: int) -> slice:
    """One of ``count`` equal parts of ``size`` rows, which ``count`` divides.

    Example:
        >>> equal_part(8, 1, 4)
        slice(2, 4, None)
    """
    share = size // count
    return slice(number * share, (number + 1) * share)


def _check_divisible(size: int, processes: int, chunks: int) -> None:
    if size % (processes * chunks):
        raise ValueError(
            f"data.batch_size={size} is no multiple of processes={processes} x "
            f"loss.accumulate_batches={chunks}; choose a multiple of {processes * chunks}"
        )
