"""Rollups of a run that is being written: counted as the pairs come, written again while they grow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from uwml_core.runlog.records import StepRecord
from uwml_core.runlog.rollups import (
    ROLLUPS,
    Directions,
    Rollup,
    Values,
    count_values,
    joined_values,
    merged,
    pair_values,
    to_table,
)

# A stretch ends where rewriting it would take too long.
_MOST_ROWS = 200_000
# Rows are counted many at a time, but no more than the processor keeps close.
_MOST_WAITING = 32_768
# A reader counts what is behind the last file from pairs, which costs it this many part files at most.
PATIENCE = 10


class Counted(NamedTuple):
    """One part file of a rollup, and the last step of the narrower one that it replaces, if any."""

    table: str
    first: int
    last: int
    replaced: int | None
    data: pa.Table


class RollupLog:
    """Counts the steps of one segment and process.

    What is counted between two *cuts* is a stretch: one file for each rollup, written anew from time to
    time under a wider name until the next cut. A cut is where the epoch changes, where the trainer asks
    for a flush (before a checkpoint) and at the end, so that a resume from a checkpoint drops whole
    stretches. Pairs that no file covers yet are for the reader to count from the raw rows.

    Args:
        segment, rank: of this process.
        directions: names of both directions.
        patience: flushes after which a growing stretch is written again; 1 where pairs are thinned, as
            then nobody can count them later.
    """

    def __init__(self, segment: int, rank: int, directions: Directions, patience: int = PATIENCE) -> None:
        self._origin = {"segment": segment, "process": rank}
        self._directions, self._patience = directions, patience
        self._waiting: list[pa.Table] = []
        self._parts: dict[str, list[Values]] = {name: [] for name in ROLLUPS}
        self._first: int | None = None
        self._last = self._age = 0
        self._written: int | None = None
        self._epoch: int | None = None

    def add(self, records: Sequence[StepRecord], pairs: pa.Table) -> list[Counted]:
        """Count the rows of these steps, all of them, in the order of the steps; files that are due."""
        files = []
        for steps, rows in _by_epoch(records, pairs):
            if steps[0].epoch != self._epoch:
                files += self.cut()
                self._epoch = steps[0].epoch
            self._first = steps[0].step if self._first is None else self._first
            self._last = steps[-1].step
            self._waiting.append(rows)
            if sum(table.num_rows for table in self._waiting) >= _MOST_WAITING:
                self._count()
        self._age += 1
        if self._age >= self._patience:
            files += self._files()
        if any(len(part["epoch"]) > _MOST_ROWS for parts in self._parts.values() for part in parts):
            files += self.cut()
        return files

    def cut(self) -> list[Counted]:
        """End the stretch; its files, unless they are written."""
        files = [] if self._first is None or self._written == self._last else self._files()
        self.begin_anew()
        return files

    def _count(self) -> None:
        if self._waiting:
            rows = pair_values(_together(self._waiting), self._directions)
            for name, rollup in ROLLUPS.items():
                self._parts[name].append(count_values(rollup, rows))
        self._waiting = []

    def begin_anew(self) -> None:
        """Leave the stretch without writing it."""
        self._waiting = []
        self._parts = {name: [] for name in ROLLUPS}
        self._first = self._written = None

    def _files(self) -> list[Counted]:
        self._count()
        files = []
        for name, rollup in ROLLUPS.items():
            rows = merged(rollup, joined_values(self._parts[name]))
            self._parts[name] = [rows]
            files.append(self._file(rollup, rows))
        self._written, self._age = self._last, 0
        return files

    def _file(self, rollup: Rollup, rows: Values) -> Counted:
        first = self._last if self._first is None else self._first
        origin = {"first_step": first, "step": self._last, **self._origin}
        constant = {name: np.full(len(rows["epoch"]), value) for name, value in origin.items()}
        data = to_table(rollup, {**constant, **rows}, self._directions)
        return Counted(rollup.spec.name, first, self._last, self._written, data)


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    # they may differ in which columns hold null
    return pa.concat_tables(tables, promote_options="default")


def _by_epoch(records: Sequence[StepRecord], pairs: pa.Table) -> Iterator[tuple[list[StepRecord], pa.Table]]:
    """Neighbouring steps of one epoch, and their rows, which are as long as told."""
    row = 0
    for _, group in itertools.groupby(records, key=attrgetter("epoch")):
        steps = list(group)
        length = pairs.num_rows if len(steps) == len(records) else sum(2 * _batch(step) for step in steps)
        yield steps, pairs.slice(row, length)
        row += length


def _batch(record: StepRecord) -> int:
    return int(record.last.negative_index.shape[-1])
