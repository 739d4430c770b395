"""Merged rollups of a run, what no rollup covers counted from the raw rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from uwml_core.runlog.listing import Part
from uwml_core.runlog.rollups import (
    PAIR_COLUMNS,
    ROLLUPS,
    Directions,
    Values,
    count,
    from_table,
    joined_values,
    merged,
    number_column,
    to_table,
)

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


def read_rollup(run: Run, name: str) -> pa.Table:
    """Rollup of a whole run: rows that agree in their keys are one.

    Steps that no rollup covers (logged by an earlier version, or a moment ago, or cut by a resume inside a
    stretch) are counted from ``pairs``; of them, where pairs were thinned (``pairs_every``), only the
    steps that kept theirs count.

    Args:
        run: any run, running or without rollups.
        name: ``margins`` or ``items``.

    Returns:
        Columns of the rollup's schema but for ``SPAN_COLUMNS``, sorted by its keys.

    Raises:
        ValueError: if the rollup is unknown.
    """
    if name not in ROLLUPS:
        raise ValueError(f"rollup={name!r} is unknown; choose one of {', '.join(ROLLUPS)}")
    rollup, directions = ROLLUPS[name], run.directions
    # the rollups first: what is written meanwhile is then counted from the pairs
    rows = from_table(rollup, run.table(rollup.spec.name), directions)
    counted = _stretches(rows)
    recounts = run.map_each(
        "pairs", lambda part: _recount(name, directions, part, counted), columns=PAIR_COLUMNS
    )
    parts = [rows, *(part for part in recounts if len(part["epoch"]))]
    whole = merged(rollup, joined_values([{key: part[key] for key in _kept(rows)} for part in parts]))
    return to_table(rollup, whole, directions).drop_columns(list(SPAN_COLUMNS))


def _kept(names: Iterable[str]) -> list[str]:
    return [name for name in names if name not in SPAN_COLUMNS]


def _stretches(rows: Values) -> dict[tuple[int, int], list[_Stretch]]:
    """Steps that are counted, by segment and process."""
    spans = np.stack([rows[name] for name in ("segment", "process", "first_step", "step")])
    found: dict[tuple[int, int], list[_Stretch]] = {}
    for segment, process, first, last in np.unique(spans, axis=1).T.tolist():
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
