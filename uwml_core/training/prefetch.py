"""Batches that worker processes make ahead, the same as one process makes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from uwml_core.training.batches import Batch, BatchSource, Corpus

_AHEAD = 2


class _Steps(Dataset[Any]):
    """The batches from a step on; instead of one, the words of an error, which a worker cannot raise."""

    def __init__(self, source: BatchSource, first: int, end: int) -> None:
        self._source, self._first, self._end = source, first, end

    def __len__(self) -> int:
        return self._end - self._first

    def __getitem__(self, index: int) -> Batch | str:
        try:
            return self._source.at(self._first + index)
        except ValueError as error:
            return str(error)


class PrefetchedBatches:
    """The batches of a source, made ahead by processes of their own; for pictures decoded when needed.

    Workers share the memory of the process that starts them, where the system can fork.

    Args:
        source: makes the batches.
        workers: how many processes.
        end: steps of the whole training.
    """

    def __init__(self, source: BatchSource, workers: int, end: int) -> None:
        self._source, self._workers, self._end = source, workers, end
        self._next, self._made = 0, iter(())  # type: tuple[int, Iterator[Any]]

    @property
    def corpus(self) -> Corpus:
        """The data."""
        return self._source.corpus

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch."""
        return self._source.steps_per_epoch

    @property
    def batch_size(self) -> int:
        """Pairs of a batch, those of all processes."""
        return self._source.batch_size

    def over(self, corpus: Corpus) -> BatchSource:
        """The same batches of another corpus, made when they are asked for."""
        return self._source.over(corpus)

    def at(self, step: int) -> Batch:
        """The batch of a step; steps in order are ready, any other starts the workers anew.

        Raises:
            ValueError: for what the source cannot make a batch of.
        """
        if step != self._next or step == 0:
            self._made = self._started(step)
        self._next = step + 1
        made = next(self._made)
        if self._next == self._end:
            # ends the workers
            self._made = iter(())
        if isinstance(made, str):
            raise ValueError(made)
        batch: Batch = made
        return batch

    def _started(self, step: int) -> Iterator[Any]:
        forks = "fork" in multiprocessing.get_all_start_methods()
        return iter(
            DataLoader(
                _Steps(self._source, step, self._end),
                batch_size=None,
                num_workers=self._workers,
                prefetch_factor=_AHEAD,
                multiprocessing_context="fork" if forks else None,
                # of its own: training's random numbers stay what they are without workers
                generator=torch.Generator(),
            )
        )
