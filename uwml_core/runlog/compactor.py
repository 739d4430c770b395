"""Which part files of a run that is being written are joined, and when."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from uwml_core.runlog.jobs import NEVER_JOINED, Job
from uwml_core.runlog.joining import join_parts, joined_name
from uwml_core.runlog.parts import PartName
from uwml_core.runlog.rollups import Directions
from uwml_core.runlog.schema import TABLES

COMPACTED = tuple(name for name in TABLES if name not in NEVER_JOINED)
FAN_IN = 20
# As much as is joined in about a second, and decoded in 100 MB.
MOST_ROWS = 1_000_000

# A raw file of so many rows is as good as a larger one: each row is joined once where they come fast.
ENOUGH_ROWS = 262_144
# What was written a moment ago need not be read again, as far as there is room for it.
_KEPT_BYTES = 64 * 2**20

# Levels: of a file that stays as it is, and of those that are joined though they are few.
_DONE, _ALL, _YOUNGEST, _NONE = 99, 98, 0, -1


@dataclass
class _File:
    name: PartName
    rows: int
    level: int = 0
    data: pa.Table | None = None
    kept_bytes: int = 0


class Compactor:
    """Joins the part files that this process writes, a slice at a time.

    Twenty neighbouring files of a level become one of the next; at the end of an epoch the youngest are
    joined, however few, and at the end of the run all that stay below ``MOST_ROWS`` together.

    Args:
        run: the run's folder.
        segment, rank: of this process; files of others are never touched.
        directions: names of both directions.
    """

    def __init__(self, run: Path, segment: int, rank: int, directions: Directions) -> None:
        self._run, self._segment, self._rank, self._directions = run, segment, rank, directions
        self._files: dict[str, list[_File]] = {table: [] for table in COMPACTED}
        self._task: Generator[None, None, None] | None = None
        self._few = _NONE
        self._ended = False

    def written(self, job: Job) -> None:
        """Take note of a file that was written."""
        if job.table not in self._files:
            return
        files = self._files[job.table]
        if files and files[-1].name.first == job.first:
            # a stretch of rollups that has grown
            files.pop()
        name = PartName(self._segment, job.first, job.last, self._rank)
        file = _File(name, job.data.num_rows, _level(job.table, job.data.num_rows, 0))
        held = sum(file.kept_bytes for known in self._files.values() for file in known)
        size = job.data.get_total_buffer_size()
        if file.level != _DONE and held + size <= _KEPT_BYTES:
            file.data, file.kept_bytes = job.data, size
        files.append(file)

    def forget(self) -> None:
        """All files are gone."""
        self.leave_off()
        self._files = {table: [] for table in COMPACTED}

    def leave_off(self) -> None:
        """Delete what a join has written so far; it begins anew when its turn comes."""
        if self._task is not None:
            self._task.close()
        self._task = None

    def end_epoch(self) -> None:
        """Have the youngest files joined, however few they are."""
        self._few = max(self._few, _YOUNGEST)

    def finish(self, *, ended: bool) -> None:
        """Have everything joined, however few files there are; nothing is written any more.

        Args:
            ended: whether no resume is to be expected, so that rollups need not be told apart for one.
        """
        self._few, self._ended = _ALL, ended

    def step(self) -> bool:
        """Do a slice; False when there is nothing to do.

        Raises:
            OSError: from a file that cannot be read or written; the files stay as they are.
            pa.ArrowException: likewise.
        """
        if self._task is None:
            self._task = self._next_task()
        if self._task is None:
            self._few = _NONE
            return False
        if next(self._task, _ENDED) is _ENDED:
            self._task = None
        return True

    def _next_task(self) -> Generator[None, None, None] | None:
        for table, files in self._files.items():
            # the last file of a rollup may still grow
            closed = files[:-1] if table.startswith("rollups/") and self._few < _ALL else files
            if group := self._chosen(closed):
                return self._joined(table, files, group)
        return None

    def _chosen(self, files: list[_File]) -> list[_File]:
        """The first neighbours that are to become one file; none where all is well."""
        start = 0
        while start < len(files):
            group, whole = _neighbours(files, start, self._few)
            if len(group) > 1 and (whole or files[start].level <= self._few):
                return group
            start += len(group)
        return []

    def _joined(self, table: str, files: list[_File], group: list[_File]) -> Generator[None, None, None]:
        place, level = files.index(group[0]), max(file.level for file in group) + 1
        if self._few == _ALL:
            level = _DONE
        names = [file.name for file in group]
        known = {file.name: file.data for file in group if file.data is not None}
        try:
            rows = yield from join_parts(
                self._run / table, names, TABLES[table], self._directions, known, ended=self._ended
            )
        except Exception:
            # once is enough: the command may do it later
            for file in group:
                file.level, file.data, file.kept_bytes = _DONE, None, 0
            raise
        files[place : place + len(group)] = [_File(joined_name(names), rows, _level(table, rows, level))]


_ENDED = object()


def _level(table: str, rows: int, level: int) -> int:
    """Level of a file; rollups get shorter by being joined, so there no number of rows is enough."""
    return _DONE if rows >= ENOUGH_ROWS and not table.startswith("rollups/") else level


def _neighbours(files: list[_File], start: int, few: int) -> tuple[list[_File], bool]:
    """Files from ``start`` on, at least one, that may become one; whether no further one fits in."""
    first, rows = files[start], 0
    group: list[_File] = []
    for file in files[start:]:
        other = file.level != first.level and max(file.level, first.level) > few
        if group and (other or first.level == _DONE):
            return group, False
        rows += file.rows
        if group and (rows > MOST_ROWS or (len(group) == FAN_IN and first.level > few)):
            return group, True
        group.append(file)
    return group, len(group) == FAN_IN
