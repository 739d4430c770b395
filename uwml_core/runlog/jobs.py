"""Part files to be written: made from records once, written until it works."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from uwml_core.runlog import assemble
from uwml_core.runlog.nearest import neighbors_table
from uwml_core.runlog.parts import part_name, write_parquet
from uwml_core.runlog.records import (
    EventRecord,
    NeighborsRecord,
    Record,
    RowsRecord,
    SnapshotRecord,
    StepRecord,
)
from uwml_core.runlog.schema import TABLES
from uwml_core.runlog.watch import StepWatch

_Kind = TypeVar("_Kind", bound=Record)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One part file."""

    table: str
    first: int
    last: int
    data: pa.Table
    rank: int = 0

    def write(self, run: Path, segment: int) -> None:
        """Write the file; writing it again replaces it with the same content."""
        folder = run / self.table
        folder.mkdir(exist_ok=True)
        write_parquet(
            self.data, folder / part_name(segment, self.first, self.last, self.rank), TABLES[self.table]
        )


class JobMaker:
    """Turns records into jobs; counts the rows of the tables whose parts are named by row."""

    def __init__(self, segment: int, directions: tuple[str, str], *, rank_count: int = 1) -> None:
        self.segment, self._directions, self._rank_count = segment, directions, rank_count
        self._rows: dict[str, int] = {}
        self._watch = StepWatch()

    def jobs(self, records: Sequence[Record]) -> list[Job]:
        """Jobs of these records; ``steps`` last, so a step that is listed has its pairs.

        Raises:
            Exception: whatever a value that fits no column raises; nothing is counted then.
        """
        steps = _only(records, StepRecord)
        assemble.settle_scalars(steps)
        step_jobs = self._step_jobs(steps)
        snapshots = [self._snapshot_job(record) for record in _only(records, SnapshotRecord)]
        snapshots += [self._neighbors_job(record) for record in _only(records, NeighborsRecord)]
        rows = {
            name: assemble.rows_table(group, self._directions)
            for name, group in _by_table(_only(records, RowsRecord)).items()
        }
        events = [*_only(records, EventRecord), *self._watch.events(steps)]
        if events:
            events.sort(key=lambda event: event.time)
            rows["events"] = assemble.events_table(events, self._directions)
        return [*(self._numbered(name, data) for name, data in rows.items()), *snapshots, *step_jobs]

    def _step_jobs(self, steps: list[StepRecord]) -> list[Job]:
        if not steps:
            return []
        first, last = steps[0].step, steps[-1].step
        tables = {
            "pairs": assemble.pairs_table(steps, self._directions),
            "steps": assemble.steps_table(steps, self._directions, self._rank_count),
        }
        return [Job(table=name, first=first, last=last, data=data) for name, data in tables.items()]

    def _snapshot_job(self, record: SnapshotRecord) -> Job:
        data = assemble.snapshot_table(record, self.segment, self._directions)
        return Job(table="snapshots", first=record.step, last=record.step, data=data)

    def _neighbors_job(self, record: NeighborsRecord) -> Job:
        data = neighbors_table(record, self.segment, self._directions)
        return Job(table="neighbors", first=record.step, last=record.step, data=data)

    def _numbered(self, name: str, data: pa.Table) -> Job:
        first = self._rows.get(name, 0)
        self._rows[name] = first + data.num_rows
        return Job(table=name, first=first, last=self._rows[name] - 1, data=data)


class RankJobMaker:
    """Turns the steps of a process behind the first into jobs: its share of ``pairs`` and nothing else."""

    def __init__(self, segment: int, directions: tuple[str, str], rank: int) -> None:
        self.segment, self._directions, self._rank = segment, directions, rank

    def jobs(self, records: Sequence[Record]) -> list[Job]:
        """Jobs of these records.

        Raises:
            Exception: whatever a value that fits no column raises.
        """
        steps = _only(records, StepRecord)
        if not steps:
            return []
        data = assemble.pairs_table(steps, self._directions)
        return [Job(table="pairs", first=steps[0].step, last=steps[-1].step, data=data, rank=self._rank)]


class Backlog:
    """Jobs that wait for the disk, at most ``limit_bytes`` of them; the oldest make room."""

    def __init__(self, limit_bytes: int = 64 * 2**20) -> None:
        self._jobs: deque[Job] = deque()
        self._limit_bytes = limit_bytes
        self.lost: list[tuple[str, int, int]] = []

    def add(self, jobs: Iterable[Job]) -> None:
        """Append jobs, and note in ``lost`` (table, first, last) what had to make room."""
        self._jobs.extend(jobs)
        while len(self._jobs) > 1 and sum(job.data.nbytes for job in self._jobs) > self._limit_bytes:
            job = self._jobs.popleft()
            self.lost.append((job.table, job.first, job.last))

    def write(self, run: Path, segment: int) -> None:
        """Write everything that waits, oldest first.

        Raises:
            OSError: from the first job that fails; it and the later ones stay.
        """
        while self._jobs:
            self._jobs[0].write(run, segment)
            self._jobs.popleft()

    def __len__(self) -> int:
        return len(self._jobs)


def _only(records: Sequence[Record], kind: type[_Kind]) -> list[_Kind]:
    return [record for record in records if isinstance(record, kind)]


def _by_table(records: list[RowsRecord]) -> dict[str, list[RowsRecord]]:
    grouped: dict[str, list[RowsRecord]] = {}
    for record in records:
        grouped.setdefault(record.table, []).append(record)
    return grouped
