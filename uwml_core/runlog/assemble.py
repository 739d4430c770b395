"""Records to Arrow tables, one function per table."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from uwml_core.runlog import columns
from uwml_core.runlog.arrays import scalar_values, stacked
from uwml_core.runlog.records import EventRecord, RowsRecord, SnapshotRecord, StepRecord
from uwml_core.runlog.schema import EVENTS, SNAPSHOTS, STEPS, TABLES
from uwml_core.runlog.told import Told, columns_of

Directions = tuple[str, str]

_OWN = ("step", "epoch", "phase", "time", "elapsed_s", "step_time_ms", "telemetry_time_ms")
_own = attrgetter(*_OWN)


def settle_scalars(records: Sequence[StepRecord]) -> None:
    """Replace scalars that are tensors by Python numbers, with one transfer per name."""
    tensors = {
        name
        for record in records
        for name, value in record.scalars.items()
        if type(value) is not float and hasattr(value, "detach")
    }
    for name in tensors:
        holders = [record for record in records if name in record.scalars]
        numbers = scalar_values([record.scalars[name] for record in holders])
        for record, number in zip(holders, numbers, strict=True):
            record.scalars[name] = number


def steps_table(records: Sequence[StepRecord], directions: Directions, rank_count: int = 1) -> pa.Table:
    """``steps`` rows, one per record, of ``rank_count`` processes that train together.

    Scalars win over what the diagnostics say; those that are no column of the schema become float64
    columns.
    """
    built: dict[str, pa.Array] = {}
    values: dict[str, Sequence[Any]] = dict(zip(_OWN, zip(*map(_own, records), strict=True), strict=True))
    values["rank_count"] = [rank_count] * len(records)
    told = Told([record.last for record in records])
    for entry in STEPS.columns:
        if entry.per_direction:
            attribute = "direction_loss" if entry.name == "loss" else entry.name
            if (vectors := told[attribute]) is not None:
                built.update(_per_direction(vectors, entry.name, directions))
        elif entry.name not in values and (known := told[entry.name]) is not None:
            values[entry.name] = known
    for name, given in columns_of([record.scalars for record in records]).items():
        other = built.pop(name).to_pylist() if name in built else values.get(name)
        values[name] = given if other is None else _first_given(given, other)
    types = {field.name: field.type for field in STEPS.fields(directions)}
    for name, column in values.items():
        # a column of the schema that is left out becomes null
        if name not in types or any(value is not None for value in column):
            built[name] = columns.column(column, types.get(name, pa.float64()))
    return columns.unmarked_table(built, STEPS, directions)


def _first_given(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [other if one is None else one for one, other in zip(first, second, strict=True)]


def _per_direction(vectors: Sequence[Any], name: str, directions: Directions) -> dict[str, pa.Array]:
    values, given = stacked(vectors, 2)
    valid = None if given.all() else given
    return {
        f"{name}_{direction}": columns.numbers(values[:, d], pa.float64(), valid)
        for d, direction in enumerate(directions)
    }


def rows_table(records: Sequence[RowsRecord], directions: Directions) -> pa.Table:
    """Rows of ``evals`` or ``ranks``, in the order of the records."""
    spec = TABLES[records[0].table]
    built = {
        entry.name: columns.column(
            [value for record in records for value in record.columns[entry.name]], entry.type
        )
        for entry in spec.columns
    }
    return columns.table(built, spec.schema(directions))


def events_table(records: Sequence[EventRecord], directions: Directions) -> pa.Table:
    """``events`` rows, in the order of the records."""
    built = {
        entry.name: columns.column([getattr(record, entry.name) for record in records], entry.type)
        for entry in EVENTS.columns
    }
    return columns.table(built, EVENTS.schema(directions))


def snapshot_table(record: SnapshotRecord, segment: int, directions: Directions) -> pa.Table:
    """``snapshots`` rows of one snapshot, modality by modality."""
    modalities, n = list(record.embeddings), len(record.item_ids)
    total = n * len(modalities)
    built = {
        "step": columns.numbers(np.full(total, record.step), pa.int64()),
        "segment": columns.numbers(np.full(total, segment), pa.int32()),
        "epoch": columns.column([record.epoch] * total, pa.int32()),
        "item_id": columns.numbers(np.tile(record.item_ids, len(modalities)), pa.int32()),
        "modality": columns.labels(np.repeat(np.arange(len(modalities)), n), modalities),
        "embedding": columns.vectors(np.concatenate(list(record.embeddings.values()))),
        "label": columns.numbers(np.tile(record.labels, len(modalities)), pa.int32()),
        "split": columns.texts(record.splits * len(modalities)),
    }
    return columns.table(built, SNAPSHOTS.schema(directions))
