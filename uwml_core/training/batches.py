"""What one step sees, as tensors, for any step on its own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data import PairDataset, draw_captions, epoch_batches
from uwml_core.training.fine_tuned import Backbone
from uwml_core.training.text import FeatureTable, Texts, TextTable, TokenTable, part_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]


class Corpus:
    """Pictures and texts of a data set, addressed by row and by caption within the row.

    Args:
        dataset: the data.
        encode_texts: gives features ``[n, D]`` of texts; None where the encoder takes the words.

    Attributes:
        backbones: of other libraries, for pictures and texts, that learn on; None where there are none.
    """

    backbones: tuple[Backbone | None, Backbone | None] = (None, None)

    def __init__(
        self, dataset: PairDataset, encode_texts: Callable[[Sequence[str]], Floats] | None = None
    ) -> None:
        self.dataset = dataset
        self._pictures: Callable[[Ints], torch.Tensor] = dataset.inputs
        numbers: dict[str, int] = {}
        flat = [numbers.setdefault(text, len(numbers)) for row in dataset.captions for text in row]
        self._text_numbers = np.array(flat, dtype=np.int64)
        self._first = np.cumsum(dataset.caption_counts) - dataset.caption_counts
        self._table: TextTable | FeatureTable | TokenTable
        if encode_texts is None:
            self._table = TextTable(list(numbers))
        else:
            self._table = FeatureTable(encode_texts(list(numbers)))

    @property
    def feature_sizes(self) -> tuple[int | None, int | None]:
        """Numbers of a feature of a picture and of a text; None where the encoder takes what is there."""
        features = self.dataset.features
        return (
            None if features is None else features.size,
            self._table.size if isinstance(self._table, FeatureTable) else None,
        )

    def pictures(self, rows: Ints) -> torch.Tensor:
        """Pictures of these rows, uint8 [n, 3, S, S], clips [n, frames, 3, S, S], or features [n, D]."""
        return self._pictures(rows)

    def texts(self, rows: Ints, captions: Ints) -> Texts:
        """One caption of each row, as ``TextTable.take`` or ``FeatureTable.take`` gives it."""
        return self._table.take(self._text_numbers[self._first[rows] + captions])

    @property
    def text_count(self) -> int:
        """How many different texts there are."""
        return len(self._table)

    def taken(self, numbers: Ints) -> Texts:
        """Some of the different texts, by number."""
        return self._table.take(numbers)

    def with_pictures(self, rows: Ints, features: torch.Tensor) -> Self:
        """The same with features ``[len(rows), W]`` in place of the pictures of these rows."""
        place = np.full(len(self.dataset), -1)
        place[rows] = np.arange(len(rows))
        other = copy.copy(self)
        other._pictures = lambda wanted: features[torch.from_numpy(place[wanted])]
        return other

    def with_texts(self, table: FeatureTable | TokenTable) -> Self:
        """The same with features or tokens in place of the texts, in the order of their numbers."""
        other = copy.copy(self)
        other._table = table
        return other

    def prepared(self, prepare: Callable[[Ints], torch.Tensor]) -> Self:
        """The same with what a function makes of rows in place of their pictures."""
        other = copy.copy(self)
        other._pictures = prepare
        return other

    @property
    def distinct_texts(self) -> list[str]:
        """The different texts, in the order of their numbers."""
        return list(dict.fromkeys(text for row in self.dataset.captions for text in row))


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """One step's pairs: item ids, captions drawn and labels int64 [B]; pictures; text features."""

    item_ids: Ints
    captions: Ints
    labels: torch.Tensor
    pictures: torch.Tensor
    texts: Texts

    def inputs(self, device: torch.device) -> tuple[torch.Tensor, ...]:
        """What the encoders take, on a device: pictures, then the texts."""
        return tuple(values.to(device) for values in (self.pictures, *self.texts))

    def chunks(self, count: int) -> list[Batch]:
        """The batch in so many equal parts, in order; their number divides its size."""
        return [self._taken(equal_part(len(self.item_ids), number, count)) for number in range(count)]

    def _taken(self, part: slice) -> Batch:
        return Batch(
            item_ids=self.item_ids[part],
            captions=self.captions[part],
            labels=self.labels[part],
            pictures=self.pictures[part],
            texts=part_of(self.texts, part),
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

    Attributes:
        batch_size: pairs per step, those of all processes.
        steps_per_epoch: batches of an epoch.

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
        self.corpus, self.rows, self._seed = corpus, rows, seed
        self._labels = corpus.dataset.labels[rows]
        self._order = lru_cache(maxsize=1)(self._epoch)
        self.batch_size = min(batch_size, len(rows))
        _check_divisible(self.batch_size, processes, chunks)
        self.steps_per_epoch = len(rows) // self.batch_size
        self._part = equal_part(self.batch_size, rank, processes)

    def _epoch(self, epoch: int) -> Ints:
        return epoch_batches(self._seed, epoch, self.rows, self._labels, self.batch_size)

    def over(self, corpus: Corpus) -> Self:
        """The same batches of another corpus of the same rows."""
        other = copy.copy(self)
        other.corpus = corpus
        return other

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
