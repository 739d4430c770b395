"""Records to part files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from uwml_core.runlog import assemble, columns
from uwml_core.runlog.jobs import Job
from uwml_core.runlog.nearest import neighbors_table
from uwml_core.runlog.pair_rows import pairs_table
from uwml_core.runlog.records import (
    EventRecord,
    NeighborsRecord,
    Record,
    RowsRecord,
    SnapshotRecord,
    StepRecord,
)
from uwml_core.runlog.rollup_log import PATIENCE, Counted, RollupLog
from uwml_core.runlog.watch import StepWatch

_Kind = TypeVar("_Kind", bound=Record)


class RankJobMaker:
    """Turns the steps of a process behind the first into jobs: its share of the pairs and nothing else.

    Args:
        segment, rank: of this process.
        directions: names of both directions.
        pairs_every: the steps that are multiples of it keep their pairs.
    """

    def __init__(self, segment: int, rank: int, directions: tuple[str, str], pairs_every: int = 1) -> None:
        self.segment, self.rank, self.directions = segment, rank, directions
        # of thinned pairs nobody can count the rollups again
        self.thinned = pairs_every > 1
        self._pairs = PairJobs(segment, rank, directions, pairs_every)
        self.cut, self.begin_anew = self._pairs.cut, self._pairs.begin_anew

    @property
    def epoch(self) -> int | None:
        """Epoch of the last step."""
        return self._pairs.epoch

    def jobs(self, records: Sequence[Record]) -> list[Job]:
        """Jobs of these records.

        Raises:
            Exception: whatever a value that fits no column raises; nothing is counted then.
        """
        steps = _Sorted(records).only(StepRecord)
        return [*self._pairs.jobs(steps, self._pairs.rows(steps)), *self._pairs.counted()]


class JobMaker(RankJobMaker):
    """Turns all records of the first process into jobs.

    Counts the rows of the tables whose parts are named by row.

    Args:
        segment: that is written.
        directions: names of both directions.
        rank_count: processes that train together.
        pairs_every: the steps that are multiples of it keep their pairs.
    """

    def __init__(
        self, segment: int, directions: tuple[str, str], *, rank_count: int = 1, pairs_every: int = 1
    ) -> None:
        super().__init__(segment, 0, directions, pairs_every)
        self._rank_count = rank_count
        self._rows: dict[str, int] = {}
        self._watch = StepWatch()

    def jobs(self, records: Sequence[Record]) -> list[Job]:
        """Jobs of these records; ``steps`` behind ``pairs``, so a step that is listed has its pairs.

        Raises:
            Exception: whatever a value that fits no column raises; nothing is counted then.
        """
        kinds = _Sorted(records)
        steps = kinds.only(StepRecord)
        assemble.settle_scalars(steps)
        # all that may fail comes first, as what is counted and numbered below cannot be taken back
        step_jobs = self._step_jobs(steps) if steps else []
        pairs = self._pairs.rows(steps)
        snapshots = [self._snapshot_job(record) for record in kinds.only(SnapshotRecord)]
        snapshots += [self._neighbors_job(record) for record in kinds.only(NeighborsRecord)]
        rows = {
            name: assemble.rows_table(group, self.directions)
            for name, group in _by_table(kinds.only(RowsRecord)).items()
        }
        events = [*kinds.only(EventRecord), *self._watch.events(steps)]
        if events:
            events.sort(key=lambda event: event.time)
            rows["events"] = assemble.events_table(events, self.directions)
        numbered = [self._numbered(name, data) for name, data in rows.items()]
        return [*numbered, *snapshots, *self._pairs.jobs(steps, pairs), *step_jobs, *self._pairs.counted()]

    def _step_jobs(self, steps: list[StepRecord]) -> list[Job]:
        data = assemble.steps_table(steps, self.directions, self._rank_count)
        return [Job(table="steps", first=steps[0].step, last=steps[-1].step, data=data)]

    def _snapshot_job(self, record: SnapshotRecord) -> Job:
        data = assemble.snapshot_table(record, self.segment, self.directions)
        return Job(table="snapshots", first=record.step, last=record.step, data=data)

    def _neighbors_job(self, record: NeighborsRecord) -> Job:
        data = neighbors_table(record, self.segment, self.directions)
        return Job(table="neighbors", first=record.step, last=record.step, data=data)

    def _numbered(self, name: str, data: pa.Table) -> Job:
        first = self._rows.get(name, 0)
        self._rows[name] = first + data.num_rows
        return Job(table=name, first=first, last=self._rows[name] - 1, data=data)


class PairJobs:
    """``pairs`` of the steps that keep theirs, and the rollups of all steps."""

    def __init__(self, segment: int, rank: int, directions: tuple[str, str], pairs_every: int) -> None:
        self._rank, self._directions, self._every = rank, directions, pairs_every
        self._rollups = RollupLog(segment, rank, directions, patience=PATIENCE if pairs_every == 1 else 1)
        self._counted: list[Job] = []
        self.epoch: int | None = None

    def rows(self, steps: list[StepRecord]) -> pa.Table | None:
        """Rows of ``pairs`` of all steps; None without steps.

        Raises:
            Exception: whatever a value that fits no column raises.
        """
        return pairs_table(steps, self._directions) if steps else None

    def jobs(self, steps: list[StepRecord], rows: pa.Table | None) -> list[Job]:
        """Count the rows, and a job for those that are kept."""
        if rows is None:
            return []
        self.epoch = steps[-1].epoch
        self._counted = self._as_jobs(self._rollups.add(steps, rows))
        kept = [step.step for step in steps if step.step % self._every == 0]
        if len(kept) < len(steps):
            rows = rows.filter(columns.booleans(rows["step"].to_numpy() % self._every == 0))
        if not kept:
            return []
        return [Job(table="pairs", first=kept[0], last=kept[-1], data=rows, rank=self._rank)]

    def counted(self) -> list[Job]:
        """Rollups that are due, once; to be written behind the pairs that they count."""
        counted, self._counted = self._counted, []
        return counted

    def cut(self) -> list[Job]:
        """End the stretch of steps that the rollups count together."""
        return self._as_jobs(self._rollups.cut())

    def begin_anew(self) -> None:
        """Count what comes as a stretch of its own, and leave what was counted and not written uncounted."""
        self._rollups.begin_anew()

    def _as_jobs(self, files: Iterable[Counted]) -> list[Job]:
        return [Job(**file._asdict(), rank=self._rank) for file in files]


class _Sorted:
    def __init__(self, records: Sequence[Record]) -> None:
        self._kinds: dict[type, list[Any]] = {}
        for record in records:
            self._kinds.setdefault(type(record), []).append(record)

    def only(self, kind: type[_Kind]) -> list[_Kind]:
        return self._kinds.get(kind, [])


def _by_table(records: list[RowsRecord]) -> dict[str, list[RowsRecord]]:
    grouped: dict[str, list[RowsRecord]] = {}
    for record in records:
        grouped.setdefault(record.table, []).append(record)
    return grouped
