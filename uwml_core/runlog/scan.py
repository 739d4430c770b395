"""Part files to one Arrow table, with columns and filter pushed down to row groups."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from uwml_core.runlog.listing import Part, remember_problem
from uwml_core.runlog.parts import STEP_NAMED
from uwml_core.runlog.schema import PAIRS
from uwml_core.runlog.values import direction_codes, number_column

_Result = TypeVar("_Result")

_UNREADABLE = (OSError, pa.ArrowException, NotImplementedError)


class Limited:
    """Parts with the step below which their rows count, None where all of them do."""

    def __init__(self, table: str, parts: Iterable[Part], limits: Mapping[int, int]) -> None:
        self.table = table
        self.parts: list[tuple[Part, int | None]] = []
        for part in parts:
            limit = limits.get(part.segment)
            by_step = table in STEP_NAMED
            if limit is not None and by_step and part.first >= limit:
                continue
            whole = limit is None or (by_step and part.last < limit)
            self.parts.append((part, None if whole else limit))

    def within(self, first: int, last: int) -> Limited:
        """Those that may hold rows of these steps; all of a table, or a file, that is not named by step."""
        chosen = Limited(self.table, (), {})
        chosen.parts = [
            (part, limit)
            for part, limit in self.parts
            if self.table not in STEP_NAMED or not part.named or (part.first <= last and part.last >= first)
        ]
        return chosen

    def groups(self) -> list[tuple[int | None, list[Part]]]:
        """Neighbouring parts of equal limit, in order."""
        grouped = itertools.groupby(self.parts, key=lambda entry: entry[1])
        return [(limit, [part for part, _ in entries]) for limit, entries in grouped]


def scan(
    limited: Limited, schema: pa.Schema, columns: Sequence[str], filter: pc.Expression | None
) -> pa.Table:
    """Rows of all parts in the order of the parts; a part that cannot be read is skipped and remembered.

    Raises:
        FileNotFoundError: if a part vanished after it was listed.
    """
    wanted = pa.schema([schema.field(name) for name in columns], metadata=schema.metadata)
    tables = [_scan_group(group, schema, wanted, _both(filter, limit)) for limit, group in limited.groups()]
    return pa.concat_tables([table.cast(wanted) for table in tables] or [wanted.empty_table()])


def scan_in_order(
    limited: Limited,
    schema: pa.Schema,
    columns: Sequence[str],
    filter: pc.Expression | None,
    directions: tuple[str, str],
) -> pa.Table:
    """As ``scan``; ``pairs`` of several processes come by step, then direction, then process.

    Raises:
        FileNotFoundError: if a part vanished after it was listed.
    """
    if limited.table != PAIRS.name or not any(part.rank for part, _ in limited.parts):
        return scan(limited, schema, columns, filter)
    limited.parts.sort(key=lambda entry: entry[0].rank)
    keys = [name for name in ("step", "direction") if name not in columns]
    rows = scan(limited, schema, [*columns, *keys], filter)
    place = 2 * number_column(rows, "step", np.int64, null=-1) + direction_codes(rows, directions)
    return rows.take(np.argsort(place, kind="stable")).select(list(columns))


def _both(filter: pc.Expression | None, limit: int | None) -> pc.Expression | None:
    if limit is None:
        return filter
    below = pc.field("step") < limit
    return below if filter is None else filter & below


def _scan_group(
    parts: list[Part], schema: pa.Schema, wanted: pa.Schema, filter: pc.Expression | None
) -> pa.Table:
    def read(chosen: list[Part]) -> pa.Table:
        paths = [str(part.path) for part in chosen]
        dataset = ds.dataset(paths, schema=schema, format="parquet")
        return dataset.to_table(columns=wanted.names, filter=filter)

    try:
        return read(parts)
    except FileNotFoundError:
        raise
    except _UNREADABLE:
        # one of them is bad: find out which, keep the others
        singles = [
            table for part in parts if (table := read_or_remember(part, lambda p: read([p]))) is not None
        ]
        return pa.concat_tables(singles) if singles else wanted.empty_table()


def read_or_remember(part: Part, read: Callable[[Part], _Result]) -> _Result | None:
    """Result of reading a part, or None when it cannot be read, which later listings then know.

    Raises:
        FileNotFoundError: if the part vanished.
    """
    try:
        return read(part)
    except FileNotFoundError:
        raise
    except _UNREADABLE as error:
        remember_problem(part, error)
        return None


def extra_field(name: str, parts: Iterable[Part]) -> pa.Field:
    """Field of a column that the schema does not know, as the newest part that has it says."""
    for part in reversed(list(parts)):
        found = read_or_remember(part, lambda p: pq.read_schema(p.path))
        if found is not None and name in found.names:
            # other parts may hold null, or no such column
            return found.field(name).with_nullable(True)
    return pa.field(name, pa.float64())


def retrying(read: Callable[[], _Result], tries: int = 5) -> _Result:
    """Call again when a file vanished between listing and reading: a compaction took it away."""
    for _ in range(tries - 1):
        try:
            return read()
        except FileNotFoundError:
            time.sleep(0.01)
    return read()
