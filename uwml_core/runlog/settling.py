"""Rollups of which most is added up already: what is left to be merged, and merging it for good."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from uwml_core.runlog.grouping import as_one
from uwml_core.runlog.rollups import (
    NO_EPOCH,
    Directions,
    Rollup,
    Values,
    from_table,
    joined_values,
    merged,
    taken,
    to_table,
)


def merged_until(rollup: Rollup, rows: Values) -> int:
    """Rows at the beginning that are sorted by their keys and need not be merged with any later one."""
    keys = [rows[name] for name in rollup.keys]
    if not len(keys[0]):
        return 0
    key = as_one(keys)
    backward = np.flatnonzero(key[1:] <= key[:-1])
    if not len(backward):
        return len(key)
    in_order = int(backward[0]) + 1
    # what comes later may belong to rows before
    return int(np.searchsorted(key[:in_order], key[in_order:].min()))


def settled(rollup: Rollup, table: pa.Table, directions: Directions, *, ended: bool = False) -> pa.Table:
    """Rows of one segment and process with the stretches of each epoch (or window) added up.

    But for the last one, until training has ended: a resume may begin between its stretches. Where it begins
    earlier, the reader counts the steps in question again from ``pairs``.
    """
    rows = from_table(rollup, table, directions)
    rows = taken(rows, np.argsort(rows["first_step"], kind="stable"))
    # neighbouring stretches of one epoch are a run of them
    starts = np.flatnonzero(np.diff(rows["epoch"], prepend=NO_EPOCH - 1))
    ends = np.append(starts, len(rows["epoch"])) if ended else starts
    if len(ends) < 2:
        return to_table(rollup, rows, directions)
    past, rest = (taken(rows, chosen) for chosen in (slice(ends[-1]), slice(ends[-1], None)))
    starts, sizes = ends[:-1], np.diff(ends)
    past["first_step"] = np.repeat(past["first_step"][starts], sizes)
    past["step"] = np.repeat(np.maximum.reduceat(past["step"], starts), sizes)
    runs = np.repeat(np.arange(len(sizes)), sizes)
    return to_table(rollup, joined_values([merged(rollup, past, within=runs), rest]), directions)
