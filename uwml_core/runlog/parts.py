"""Part files: their names, and writing one so that a reader sees all of it or nothing.

``part-<segment>-<first>-<last>.parquet``, and ``part-<segment>r<rank>-...`` of the processes behind the
first: first and last are steps for ``steps``, ``pairs``, ``snapshots``, ``neighbors`` and the rollups. Of
``evals``, ``ranks`` and ``events`` several parts may belong to one step, so there they are row numbers
within the segment.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from uwml_core.runlog.schema import Table

STEP_NAMED = frozenset({"steps", "pairs", "snapshots", "neighbors", "rollups/margins", "rollups/items"})

LASTING, BRIEF = "zstd", "lz4"
"""Compression of a file that stays, and of one that is joined with others soon."""

# no more than what a page holds in bytes: to begin a page costs as much as some thousand rows
_ROWS_PER_PAGE = 2**20

_NAME = re.compile(r"part-(\d+)(?:r(\d+))?-(-?\d+)-(-?\d+)\.parquet")


class PartName(NamedTuple):
    """Segment, first and last step or row, and process, of a part file."""

    segment: int
    first: int
    last: int
    rank: int = 0


def part_name(segment: int, first: int, last: int, rank: int = 0) -> str:
    """File name of a part.

    Example:
        >>> part_name(0, 100, 199)
        'part-0000-000000100-000000199.parquet'
        >>> part_name(0, 100, 199, rank=1)
        'part-0000r1-000000100-000000199.parquet'
    """
    process = f"r{rank}" if rank else ""
    return f"part-{segment:04d}{process}-{first:09d}-{last:09d}.parquet"


def parse_part_name(name: str) -> PartName | None:
    """What a file name says, or None when it is not the name of a part.

    Example:
        >>> parse_part_name("part-0000-000000100-000000199.parquet")
        PartName(segment=0, first=100, last=199, rank=0)
        >>> parse_part_name("part-0000--00000001--00000001.parquet").first
        -1
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    segment, rank, first, last = (int(text or 0) for text in match.groups())
    return PartName(segment, first, last, rank)


def write_parquet(table: pa.Table, path: Path, spec: Table, compression: str = LASTING) -> None:
    """Write a table under a temporary name in the same folder, then move it to ``path``.

    The temporary name begins with a dot, which dataset discovery of every tool leaves out.

    Raises:
        OSError: if the folder, the space or the permission is missing; nothing is left behind then.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with pa.OSFile(str(temporary), "wb") as sink:
            encode(table, sink, spec, compression)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def encode(table: pa.Table, sink: pa.NativeFile, spec: Table, compression: str = LASTING) -> None:
    """Write Parquet: dictionary and byte-stream-split only where the schema says so."""
    how = encoding(spec, table.schema, compression)
    pq.write_table(table, sink, row_group_size=spec.rows_per_group, **how)


def encoding(spec: Table, schema: pa.Schema, compression: str = LASTING) -> dict[str, Any]:
    """How the columns of a table are written.

    Floats get no statistics. They cost a fifth of the time, nobody skips rows by them, and as Parquet
    leaves NaN out of them a tool that trusts them may take a row group for free of NaN.
    """
    bounds = [field.name for field in schema if not pa.types.is_floating(field.type)]
    return {
        "compression": compression,
        "use_dictionary": list(spec.dictionary) or False,
        "use_byte_stream_split": list(spec.byte_stream_split) or False,
        "write_statistics": (bounds if spec.bounds is None else list(spec.bounds)) or False,
        "max_rows_per_page": _ROWS_PER_PAGE,
    }


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files of a killed writer; only the one that holds the run's lock may call this."""
    for path in folder.rglob(".*.tmp"):
        with contextlib.suppress(OSError):
            path.unlink()
