"""Part files: their names, and writing one so that a reader sees all of it or nothing.

``part-<segment>-<first>-<last>.parquet``: first and last are steps for ``steps``, ``pairs``,
``snapshots`` and ``neighbors``. Of ``evals``, ``ranks`` and ``events`` several parts may belong to one
step, so there they are row numbers within the segment.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from uwml_core.runlog.schema import Table

STEP_NAMED = frozenset({"steps", "pairs", "snapshots", "neighbors"})

_NAME = re.compile(r"part-(\d+)-(-?\d+)-(-?\d+)\.parquet")


class PartName(NamedTuple):
    """Segment, and first and last step or row, of a part file."""

    segment: int
    first: int
    last: int


def part_name(segment: int, first: int, last: int) -> str:
    """File name of a part.

    Example:
        >>> part_name(0, 100, 199)
        'part-0000-000000100-000000199.parquet'
    """
    return f"part-{segment:04d}-{first:09d}-{last:09d}.parquet"


def parse_part_name(name: str) -> PartName | None:
    """What a file name says, or None when it is not the name of a part.

    Example:
        >>> parse_part_name("part-0000-000000100-000000199.parquet")
        PartName(segment=0, first=100, last=199)
        >>> parse_part_name("part-0000--00000001--00000001.parquet").first
        -1
    """
    match = _NAME.fullmatch(name)
    return PartName(*map(int, match.groups())) if match else None


def write_parquet(table: pa.Table, path: Path, spec: Table) -> None:
    """Write a table under a temporary name in the same folder, then move it to ``path``.

    The temporary name begins with a dot, which dataset discovery of every tool leaves out.

    Raises:
        OSError: if the folder, the space or the permission is missing; nothing is left behind then.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with pa.OSFile(str(temporary), "wb") as sink:
            encode(table, sink, spec)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def encode(table: pa.Table, sink: pa.NativeFile, spec: Table) -> None:
    """Write Parquet: zstd, dictionary and byte-stream-split only where the schema says so."""
    pq.write_table(
        table,
        sink,
        compression="zstd",
        use_dictionary=list(spec.dictionary) or False,
        use_byte_stream_split=list(spec.byte_stream_split) or False,
    )


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files of a killed writer; only the one that holds the run's lock may call this."""
    for path in [*folder.glob(".*.tmp"), *folder.glob("*/.*.tmp")]:
        with contextlib.suppress(OSError):
            path.unlink()
