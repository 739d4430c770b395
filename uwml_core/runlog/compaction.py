"""Joining the part files of a run that nobody writes into few."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from uwml_core.runlog.compactor import COMPACTED
from uwml_core.runlog.joining import join_parts
from uwml_core.runlog.listing import Part, list_table, remove_covered
from uwml_core.runlog.location import local_folder
from uwml_core.runlog.parts import PartName, parse_part_name, remove_leftovers
from uwml_core.runlog.runfile import LOCK_FILE, RunFile, RunLock
from uwml_core.runlog.schema import TABLES

MOST_ROWS = 4_000_000
# rollups are merged in memory, not row group by row group
MOST_ROWS_MERGED = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Compacted:
    """What a compaction did.

    Attributes:
        files_before, files_after: part files of the tables that are compacted.
        bytes_before, bytes_after: their size.
        left: tables of which some files could not be joined, with the reason.
    """

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    left: tuple[str, ...]


def compact_run(path: str | os.PathLike[str]) -> Compacted:
    """Join the part files of a run, those of each segment and process for themselves.

    No file gets more than ``MOST_ROWS`` rows, but where a single one has. Snapshots and neighbors stay a
    file each. A reader beside it sees the same rows at every moment; it may die at any instant.

    Args:
        path: the run's folder.

    Returns:
        What was done.

    Raises:
        ValueError: if it is no run of this version.
        RunInUseError: if it is being written.
        OSError: if the folder may not be written.
    """
    folder = local_folder(path, "path").absolute()
    content = RunFile.load(folder).content
    (first, second), ended = content["directions"], _has_ended(content)
    with ExitStack() as held:
        for name in (LOCK_FILE, *sorted(file.name for file in folder.glob("run.r*.lock"))):
            held.callback(RunLock(folder, name).release)
        remove_leftovers(folder)
        files_before, bytes_before = _measured(folder)
        remove_covered(folder, TABLES)
        left = [reason for table in COMPACTED for reason in _compact(folder, table, (first, second), ended)]
        files_after, bytes_after = _measured(folder)
    return Compacted(
        files_before=files_before,
        files_after=files_after,
        bytes_before=bytes_before,
        bytes_after=bytes_after,
        left=tuple(left),
    )


def _measured(folder: Path) -> tuple[int, int]:
    sizes = [path.stat().st_size for table in COMPACTED for path in (folder / table).glob("part-*.parquet")]
    return len(sizes), sum(sizes)


def _has_ended(content: Mapping[str, Any]) -> bool:
    """Whether no resume is to be expected, or it could be counted from the pairs."""
    thinned = any(segment.get("pairs_every", 1) > 1 for segment in content["segments"])
    return content["status"] == "finished" and not thinned


def _compact(folder: Path, table: str, directions: tuple[str, str], ended: bool) -> Iterator[str]:
    """Join the files of a table; yields what could not be joined and why."""
    for group in _groups(folder, table):
        try:
            for _ in join_parts(folder / table, group, TABLES[table], directions, ended=ended):
                pass
        except (OSError, pa.ArrowException) as error:
            yield f"{table}: {error}"


def _groups(folder: Path, table: str) -> list[list[PartName]]:
    """Neighbouring parts that become one file, two or more each."""
    listing = list_table(folder, table, foreign=False)
    broken = [name for issue in listing.issues if (name := parse_part_name(os.path.basename(issue.file)))]
    rows = {_name(part): _rows(part) for part in listing.parts}
    most = MOST_ROWS_MERGED if table.startswith("rollups/") else MOST_ROWS
    groups: list[list[PartName]] = []
    for _, names in itertools.groupby(sorted([*rows, *broken], key=_place), key=lambda n: _place(n)[:2]):
        group: list[PartName] = []
        for name in names:
            count = rows.get(name)
            # a file that cannot be read is not to be hidden behind a wider one
            if count is None or sum(rows[known] or 0 for known in group) + count > most:
                groups.append(group)
                group = []
            if count is not None:
                group.append(name)
        groups.append(group)
    return [group for group in groups if len(group) > 1]


def _name(part: Part) -> PartName:
    return PartName(part.segment, part.first, part.last, part.rank)


def _place(name: PartName) -> tuple[int, int, int]:
    return name.segment, name.rank, name.first


def _rows(part: Part) -> int | None:
    try:
        return int(pq.read_metadata(part.path).num_rows)
    except (OSError, pa.ArrowException):
        return None
