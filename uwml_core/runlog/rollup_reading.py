"""Merged rollups of a run, what no rollup covers counted from the raw rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uwml_core.runlog.listing import Part
from uwml_core.runlog.rollups import (
    PAIR_COLUMNS,
    ROLLUPS,
    Directions,
    Rollup,
    Values,
    count,
    from_table,
    joined_values,
    merged,
    taken,
    to_table,
)
from uwml_core.runlog.settling import merged_until
from uwml_core.runlog.values import number_column

if TYPE_CHECKING:
    from uwml_core.runlog.run import Run

SPAN_COLUMNS = ("first_step", "step", "segment", "process")

_Stretch = tuple[int, int]


@dataclass(frozen=True)
class Recount:
    """Counts rows of ``pairs`` outside the steps that are counted already; equal ones count alike."""

    rollup: str
    directions: Directions
    counted: tuple[_Stretch, ...]

    def __call__(self, pairs: pa.Table) -> Values:
        """Count the rows of one part."""
        step = number_column(pairs, "step", np.int64, null=-1)
        known = np.zeros(len(step), np.bool_)
        for first, last in self.counted:
            known |= (step >= first) & (step <= last)
        kept = np.flatnonzero(~known)
        return count(ROLLUPS[self.rollup], pairs, self.directions, kept)


def read_rollup(
    run: Run, name: str, filter: pc.Expression | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Rollup of a whole run: rows that agree in their keys are one.

    Steps that no rollup covers (logged by an earlier version, or a moment ago, or cut by a resume inside a
    stretch) are counted from ``pairs``; of them, where pairs were thinned (``pairs_every``), only the
    steps that kept theirs count.

    Args:
        run: any run, running or without rollups.
        name: ``margins`` or ``items``.
        filter: pyarrow expression over the keys (epoch, direction, and bin or item_id), pushed down.
        columns: which ones are needed besides the keys; all when None.

    Returns:
        Columns of the rollup's schema but for ``SPAN_COLUMNS``, sorted by its keys; of those asked for, the
        keys and what these cannot be added up without.

    Raises:
        ValueError: if the rollup or a column is unknown.
    """
    if name not in ROLLUPS:
        raise ValueError(f"rollup={name!r} is unknown; choose one of {', '.join(ROLLUPS)}")
    rollup, directions = ROLLUPS[name], run.directions
    kept = _columns(rollup, columns)
    # the rollups first: what is written meanwhile is then counted from the pairs
    counted, whole = _stretches_and_rows(run, rollup.spec.name, kept, filter)
    recounts = run.map_each(
        "pairs", lambda part: _recount(name, directions, part, counted), columns=PAIR_COLUMNS
    )
    late = [to_table(rollup, part, directions).select(kept) for part in recounts if len(part["epoch"])]
    tables = [whole, *(table if filter is None else table.filter(filter) for table in late)]
    values = joined_values([from_table(rollup, table, directions) for table in tables])
    done = merged_until(rollup, values)
    if done == sum(table.num_rows for table in tables):
        return pa.concat_tables(tables)
    rest = merged(rollup, taken(values, slice(done, None)))
    whole = joined_values([taken(values, slice(done)), rest])
    return to_table(rollup, whole, directions).select(kept)


def _columns(rollup: Rollup, wanted: Sequence[str] | None) -> list[str]:
    known = [column.name for column in rollup.spec.columns if column.name not in SPAN_COLUMNS]
    if wanted is None:
        return known
    if unknown := sorted({*wanted} - {*known}):
        raise ValueError(f"columns {unknown} are unknown; {rollup.spec.name} has {', '.join(known)}")
    return rollup.columns(wanted)


def _stretches_and_rows(
    run: Run, table: str, columns: list[str], filter: pc.Expression | None
) -> tuple[dict[tuple[int, int], list[_Stretch]], pa.Table]:
    """Stretches of a rollup and their rows, of the same files although a writer may add some between."""
    before = run.map_parts(table, _spans, columns=SPAN_COLUMNS)
    while True:
        rows = run.table(table, columns=columns, filter=filter)
        after = run.map_parts(table, _spans, columns=SPAN_COLUMNS)
        if after == before:
            return _stretches(after), rows
        before = after


def _spans(rows: pa.Table) -> list[tuple[int, ...]]:
    """Segment, process, first and last step of the stretches in a part."""
    names = ["segment", "process", "first_step", "step"]
    found = rows.group_by(names).aggregate([]).select(names).to_pydict()
    return list(zip(*found.values(), strict=True))


def _stretches(parts: Iterable[list[tuple[int, ...]]]) -> dict[tuple[int, int], list[_Stretch]]:
    """Steps that are counted, by segment and process."""
    found: dict[tuple[int, int], list[_Stretch]] = {}
    for segment, process, first, last in sorted({span for part in parts for span in part}):
        known = found.setdefault((segment, process), [])
        # neighbours are one, so that a part that reaches over both is not read again
        if known and first <= known[-1][1] + 1:
            before = known.pop()
            known.append((before[0], max(last, before[1])))
        else:
            known.append((first, last))
    return found


def _recount(
    name: str, directions: Directions, part: Part, counted: dict[tuple[int, int], list[_Stretch]]
) -> Recount | None:
    near = tuple(
        (first, last)
        for first, last in counted.get((part.segment, part.rank), ())
        if first <= part.last and last >= part.first
    )
    if any(first <= part.first and part.last <= last for first, last in near):
        return None
    return Recount(name, directions, near)
