"""Part files to be written: made once, written until it works."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from uwml_core.runlog.parts import BRIEF, LASTING, part_name, write_parquet
from uwml_core.runlog.schema import TABLES

# One file each.
NEVER_JOINED = frozenset({"snapshots", "neighbors"})


@dataclass(frozen=True, kw_only=True)
class Job:
    """One part file; ``replaced`` is the last step of a narrower one that it makes superfluous."""

    table: str
    first: int
    last: int
    data: pa.Table
    rank: int = 0
    replaced: int | None = None

    def write(self, run: Path, segment: int) -> None:
        """Write the file; writing it again replaces it with the same content."""
        folder = _folder(run, self.table)
        path = folder / part_name(segment, self.first, self.last, self.rank)
        compression = LASTING if self.table in NEVER_JOINED else BRIEF
        write_parquet(self.data, path, TABLES[self.table], compression)
        if self.replaced is not None:
            with contextlib.suppress(OSError):
                (folder / part_name(segment, self.first, self.replaced, self.rank)).unlink()


def _folder(run: Path, table: str) -> Path:
    # level by level: a run's folder that vanished is not made again here
    folder = run
    for level in table.split("/"):
        folder /= level
        folder.mkdir(exist_ok=True)
    return folder


class Backlog:
    """Jobs that wait for the disk; once it fails, at most ``limit_bytes`` of them go on waiting.

    Args:
        lose: is told of each job that had to make room.
        limit_bytes: that the jobs may take while nothing can be written.
    """

    def __init__(self, lose: Callable[[Job], None], limit_bytes: int = 64 * 2**20) -> None:
        self._jobs: deque[Job] = deque()
        self._limit_bytes = limit_bytes
        self._lose = lose

    def add(self, jobs: Iterable[Job]) -> None:
        """Append jobs."""
        self._jobs.extend(jobs)

    def make_room(self) -> None:
        """Lose the oldest jobs until the others keep to the limit: the disk has just refused them."""
        while len(self._jobs) > 1 and sum(job.data.nbytes for job in self._jobs) > self._limit_bytes:
            self._lose(self._jobs.popleft())

    def write(self, run: Path, segment: int, written: Callable[[Job], None]) -> None:
        """Write everything that waits, oldest first, and tell of each.

        Raises:
            OSError: from the first job that fails; it and the later ones stay.
        """
        while self._jobs:
            self._jobs[0].write(run, segment)
            written(self._jobs.popleft())

    def give_up(self, given_up: Callable[[Job], bool]) -> list[Job]:
        """Take out the jobs of which a function says so."""
        taken = [job for job in self._jobs if given_up(job)]
        self._jobs = deque(job for job in self._jobs if not given_up(job))
        return taken

    def __len__(self) -> int:
        return len(self._jobs)
