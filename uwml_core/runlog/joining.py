"""Many part files of one segment and process to one, in slices, so that a writer may do it in between."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from uwml_core.runlog.parts import PartName, encoding, part_name
from uwml_core.runlog.rollups import ROLLUPS, Directions
from uwml_core.runlog.settling import settled
from uwml_core.runlog.tables import Table

# Wide enough to compress well, narrow enough that a filter by step skips most of a file.
ROWS_PER_GROUP = 131_072

Names = Sequence[PartName]
_Source: TypeAlias = Path | pa.Table


def joined_name(names: Names) -> PartName:
    """Name of the file that takes the place of these.

    Example:
        >>> joined_name([PartName(0, 0, 4), PartName(0, 5, 9)])
        PartName(segment=0, first=0, last=9, rank=0)
    """
    first = names[0]
    return first._replace(last=max(name.last for name in names))


def join_parts(
    folder: Path,
    names: Names,
    spec: Table,
    directions: Directions,
    known: Mapping[PartName, pa.Table] | None = None,
    *,
    ended: bool = False,
) -> Generator[None, None, int]:
    """Write one file with the rows of all, then delete them; dying in between does no harm.

    Args:
        folder: of the table.
        names: parts of one segment and process in their order, two or more.
        spec: the table.
        directions: of the run.
        known: rows of some of the files, which need not be read.
        ended: whether no resume is to be expected, so that rollups need not be told apart for one.

    Yields:
        After each row group, and while the disk takes its time.

    Returns:
        Rows of the file.

    Raises:
        OSError: if a file cannot be read or written; nothing has changed then.
        pa.ArrowException: if a file is none or its columns do not fit the others'; likewise.
    """
    paths = [folder / part_name(*name) for name in names]
    sources = [(known or {}).get(name, path) for path, name in zip(paths, names, strict=True)]
    target = folder / part_name(*joined_name(names))
    temporary = folder / f".{target.name}.{os.getpid()}.tmp"
    rows = 0
    try:
        schema = _common([_schema(source) for source in sources])
        with (
            pa.OSFile(str(temporary), "wb") as sink,
            pq.ParquetWriter(sink, schema, **encoding(spec, schema)) as writer,
        ):
            for group in _groups(sources, schema, _merge(spec, directions, ended)):
                writer.write_table(group, row_group_size=2 * ROWS_PER_GROUP)
                rows += group.num_rows
                yield
        # the only other copies are about to go
        yield from _meanwhile(lambda: _to_disk(temporary))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    for path in paths:
        if path != target:
            with contextlib.suppress(OSError):
                path.unlink()
    return rows


def _merge(spec: Table, directions: Directions, ended: bool) -> Callable[[pa.Table], pa.Table] | None:
    for rollup in ROLLUPS.values():
        if rollup.spec is spec:
            return lambda table: settled(rollup, table, directions, ended=ended)
    return None


def _schema(source: _Source) -> pa.Schema:
    return pq.read_schema(source) if isinstance(source, Path) else source.schema


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    together = pa.unify_schemas(schemas)
    everywhere = set(together.names).intersection(*(schema.names for schema in schemas))
    # where a column is missing, it becomes null
    fields = [field if field.name in everywhere else field.with_nullable(True) for field in together]
    return pa.schema(fields, metadata=together.metadata)


def _groups(
    sources: Sequence[_Source], schema: pa.Schema, merge: Callable[[pa.Table], pa.Table] | None
) -> Iterator[pa.Table]:
    """Rows of all files, about a row group at a time; all of them at once where they are merged."""
    waiting: list[pa.Table] = []
    for source in sources:
        for table in _row_groups(source, schema):
            waiting.append(table)
            if merge is None and sum(part.num_rows for part in waiting) >= ROWS_PER_GROUP:
                yield _together(waiting)
                waiting = []
    if waiting:
        whole = _together(waiting)
        yield whole if merge is None else merge(whole)


def _row_groups(source: _Source, schema: pa.Schema) -> Iterator[pa.Table]:
    if not isinstance(source, Path):
        yield _as_in(schema, source)
        return
    with pq.ParquetFile(source) as file:
        for index in range(file.num_row_groups):
            # one thread: training has the others
            yield _as_in(schema, file.read_row_group(index, use_threads=False))


def _as_in(schema: pa.Schema, table: pa.Table) -> pa.Table:
    if table.schema.equals(schema):
        return table
    return pa.concat_tables([schema.empty_table(), table], promote_options="default")


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries()


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _meanwhile(slow: Callable[[], None]) -> Iterator[None]:
    """Do what may take seconds in a thread of its own, so that whoever joins can write in between."""
    failed: list[OSError] = []

    def work() -> None:
        try:
            slow()
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="uwml-runlog-disk", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # the interpreter ends and makes no threads any more
        work()
    while thread.is_alive():
        thread.join(0.005)
        yield
    if failed:
        raise failed[0]
