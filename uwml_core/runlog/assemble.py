"""Records to Arrow tables, one function per table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uwml_core.runlog import columns
from uwml_core.runlog.arrays import flat, integers, joined, scalar_values, stacked
from uwml_core.runlog.records import EventRecord, RowsRecord, SnapshotRecord, StepRecord
from uwml_core.runlog.schema import EVENTS, PAIRS, SNAPSHOTS, STEPS, TABLES

Directions = tuple[str, str]

SUSPICION = 0.1

_OWN = frozenset({"step", "epoch", "phase", "time", "elapsed_s", "step_time_ms", "telemetry_time_ms"})
_BOTH = np.arange(2, dtype=np.int32)
_ANCHOR_FLOATS = PAIRS.byte_stream_split[2:]


def settle_scalars(records: Sequence[StepRecord]) -> None:
    """Replace scalars that are tensors by Python numbers, with one transfer per name."""
    for name in _scalar_names(records):
        holders = [record for record in records if name in record.scalars]
        numbers = scalar_values([record.scalars[name] for record in holders])
        for record, number in zip(holders, numbers, strict=True):
            record.scalars[name] = number


def _scalar_names(records: Sequence[StepRecord]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record.scalars))


def steps_table(records: Sequence[StepRecord], directions: Directions, rank_count: int = 1) -> pa.Table:
    """``steps`` rows, one per record, of ``rank_count`` processes that train together.

    Scalars win over what the diagnostics say; those that are no column of the schema become float64
    columns.
    """
    schema = STEPS.schema(directions)
    built: dict[str, pa.Array] = {}
    told = [record.last for record in records]
    there = _attributes(told)
    for entry in STEPS.columns:
        if entry.name in _OWN:
            values = [getattr(record, entry.name) for record in records]
            built[entry.name] = columns.column(values, entry.type)
        elif entry.per_direction:
            attribute = "direction_loss" if entry.name == "loss" else entry.name
            if attribute in there:
                built.update(_per_direction(told, attribute, entry.name, directions))
        elif entry.name in there:
            built[entry.name] = columns.column([getattr(one, entry.name, None) for one in told], entry.type)
    built["rank_count"] = columns.column([rank_count] * len(records), schema.field("rank_count").type)
    for name in _scalar_names(records):
        given = [record.scalars.get(name) for record in records]
        known = built[name].to_pylist() if name in built else [None] * len(given)
        values = [own if value is None else value for value, own in zip(given, known, strict=True)]
        built[name] = columns.column(
            values, schema.field(name).type if name in schema.names else pa.float64()
        )
    return columns.table(built, schema)


def _attributes(holders: Sequence[Any]) -> set[str]:
    """Names that any of them may have: to ask each for every column takes longer than to write the file."""
    known = {name for kind in {*map(type, holders)} for name in dir(kind)}
    # what answers to names that it does not list is asked for all
    if any(hasattr(kind, "__getattr__") for kind in {*map(type, holders)}):
        known |= {"direction_loss", *(entry.name for entry in STEPS.columns)}
    return known.union(*(getattr(holder, "__dict__", ()) for holder in holders))


def _per_direction(
    told: Sequence[Any], attribute: str, name: str, directions: Directions
) -> dict[str, pa.Array]:
    values, given = stacked([getattr(one, attribute, None) for one in told], 2)
    return {
        f"{name}_{direction}": columns.numbers(values[:, d], pa.float64(), given)
        for d, direction in enumerate(directions)
    }


def pairs_table(records: Sequence[StepRecord], directions: Directions) -> pa.Table:
    """``pairs`` rows: step by step, first direction first, anchors in the order of the batch."""
    sizes = np.array([len(record.item_ids) for record in records])
    anchor = _anchors(sizes)
    step, epoch = (np.array([getattr(r, name) or 0 for r in records]) for name in ("step", "epoch"))
    with_epoch = np.array([record.epoch is not None for record in records])
    epoch_known = _unless_all(with_epoch, lambda told: np.repeat(told, 2 * sizes))
    item, caption, known = _batch_columns(records, sizes)
    floats, given = _anchor_floats(records, sizes)
    negative, has_negative = _negatives(records, sizes)
    remembered, is_known = _memory_items(records)
    candidate, named = np.append(item, remembered), np.append(np.ones(len(item), np.bool_), is_known)
    has_caption = np.append(known, np.zeros(len(remembered), np.bool_))
    captions = np.append(caption, np.zeros(len(remembered), np.int16))
    built = {
        "step": columns.numbers(np.repeat(step, 2 * sizes), pa.int64()),
        "epoch": columns.numbers(np.repeat(epoch, 2 * sizes), pa.int32(), epoch_known),
        "direction": columns.labels(np.repeat(np.tile(_BOTH, len(sizes)), np.repeat(sizes, 2)), directions),
        "item_id": columns.numbers(item[anchor], pa.int32()),
        "caption": columns.numbers(
            caption[anchor], pa.int16(), _unless_all(known, lambda told: told[anchor])
        ),
        "negative_item_id": columns.numbers(candidate[negative], pa.int32(), has_negative & named[negative]),
        "negative_caption": columns.numbers(
            captions[negative], pa.int16(), has_negative & has_caption[negative]
        ),
        **{name: columns.numbers(values, pa.float32(), given[name]) for name, values in floats.items()},
        "suspected_false_negative": columns.booleans(_suspected(floats)),
    }
    return columns.table(built, PAIRS.schema(directions))


def _unless_all(
    known: NDArray[np.bool_], spread: Callable[[NDArray[np.bool_]], NDArray[np.bool_]]
) -> NDArray[np.bool_] | None:
    """Which rows are known; None where all are."""
    return None if known.all() else spread(known)


def _anchors(sizes: NDArray[Any]) -> NDArray[np.intp]:
    """Position of each row's anchor among the joined batches."""
    # each batch twice, one direction after the other
    double = np.repeat(sizes, 2)
    begin = np.repeat(np.cumsum(sizes) - sizes, 2) - (np.cumsum(double) - double)
    anchor: NDArray[np.intp] = np.arange(2 * sizes.sum()) + np.repeat(begin, double)
    return anchor


def _anchor_floats(
    records: Sequence[StepRecord], sizes: NDArray[Any]
) -> tuple[dict[str, NDArray[np.float32]], dict[str, NDArray[np.bool_] | None]]:
    """The rows' floats, and where each was given; None where all were."""
    floats: dict[str, NDArray[np.float32]] = {}
    given: dict[str, NDArray[np.bool_] | None] = {}
    for name in _ANCHOR_FLOATS:
        values = [getattr(record.last, name) for record in records]
        known = np.array([value is not None for value in values])
        if not known.any():
            floats[name] = np.full(2 * sizes.sum(), np.nan, np.float32)
            given[name] = np.zeros(2 * sizes.sum(), np.bool_)
            continue
        filled = [
            np.full(2 * size, np.nan, np.float32) if value is None else flat(value)
            for value, size in zip(values, sizes, strict=True)
        ]
        floats[name] = joined(filled, 0).astype(np.float32, copy=False)
        given[name] = _unless_all(known, lambda told: np.repeat(told, 2 * sizes))
    return floats, given


def _batch_columns(
    records: Sequence[StepRecord], sizes: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Item ids and captions of the joined batches, and which captions are known."""
    item = integers(joined([record.item_ids for record in records], 0), np.int32, "item_ids")
    known = np.repeat([record.captions is not None for record in records], sizes)
    caption = np.zeros(len(item), np.int16)
    given = [record.captions for record in records if record.captions is not None]
    if given:
        caption[known] = integers(joined(given, 0), np.int16, "captions")
    return item, caption, known


def _negatives(
    records: Sequence[StepRecord], sizes: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Position of each row's negative among the joined batches, then memories, and whether there is one."""
    index = joined([flat(record.last.negative_index) for record in records], 0)
    start, size = np.cumsum(sizes) - sizes, np.repeat(sizes, 2 * sizes)
    place, limit = index + np.repeat(start, 2 * sizes), size
    kept = np.array([len(_remembered(record)) for record in records])
    if kept.any():
        behind = sizes.sum() + np.cumsum(kept) - kept - sizes
        place = np.where(index < size, place, index + np.repeat(behind, 2 * sizes))
        limit = size + np.repeat(kept, 2 * sizes)
    found = (index >= 0) & (index < limit)
    place[~found] = 0
    return place, found


def _remembered(record: StepRecord) -> Sequence[Any]:
    ids: Sequence[Any] = getattr(record.last, "further_item_ids", ())
    return ids


def _memory_items(records: Sequence[StepRecord]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Item ids of the records' memory queues, one after another, and which are whole numbers that fit."""
    largest = np.iinfo(np.int32).max
    ids = [item for record in records for item in _remembered(record)]
    known = np.array([isinstance(item, int) and abs(item) <= largest for item in ids], dtype=np.bool_)
    return np.array([i if k else 0 for i, k in zip(ids, known, strict=True)], dtype=np.int32), known


def _suspected(floats: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    # in float64 over the values as stored, so that a query over the file gives the same answer
    positive = floats["positive_similarity"].astype(np.float64)
    suspected: NDArray[np.bool_] = floats["negative_similarity"] > positive + SUSPICION
    return suspected


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
