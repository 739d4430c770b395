"""Steps to the rows of ``pairs``: step by step, first direction first, anchors in the order of the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uwml_core.runlog import columns
from uwml_core.runlog.arrays import flat, integers, joined, kept_together
from uwml_core.runlog.records import StepRecord
from uwml_core.runlog.schema import PAIRS
from uwml_core.runlog.told import Told

Directions = tuple[str, str]
# where a column is known; None where everywhere
_Valid = NDArray[np.bool_] | None

SUSPICION = 0.1

_BOTH = np.arange(2, dtype=np.int32)
_ANCHOR_FLOATS = PAIRS.byte_stream_split[2:]
_LARGEST_ID = np.iinfo(np.int32).max


class Layout:
    """Which rows belong to which step, direction and anchor.

    Args:
        sizes: pairs of each step's batch; equal ones, as nearly always, need no index.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = np.array(sizes, dtype=np.intp)
        self.anchors = int(self.sizes.sum())
        self.rows = 2 * self.anchors
        even = bool((self.sizes == self.sizes[0]).all())
        self.shape = (len(self.sizes), 2, int(self.sizes[0])) if even else None

    def of_steps(self, values: NDArray[Any]) -> NDArray[Any]:
        """A value per step ``[steps]`` as one per row."""
        if self.shape is None:
            return np.repeat(values, 2 * self.sizes)
        return np.broadcast_to(values[:, None, None], self.shape).reshape(-1)

    def of_anchors(self, values: NDArray[Any]) -> NDArray[Any]:
        """A value per anchor, batch by batch ``[anchors]``, as one per row."""
        if self.shape is None:
            return values[self._anchor()]
        steps, _, size = self.shape
        return np.broadcast_to(values.reshape(steps, 1, size), self.shape).reshape(-1)

    def starts(self) -> NDArray[np.intp]:
        """Where each step's batch begins among the anchors."""
        return np.cumsum(self.sizes) - self.sizes

    def _anchor(self) -> NDArray[np.intp]:
        # each batch twice, one direction after the other
        double = np.repeat(self.sizes, 2)
        begin = np.repeat(self.starts(), 2) - (np.cumsum(double) - double)
        anchor: NDArray[np.intp] = np.arange(self.rows) + np.repeat(begin, double)
        return anchor


def pairs_table(records: Sequence[StepRecord], directions: Directions) -> pa.Table:
    """``pairs`` rows of these steps, one or more.

    Raises:
        ValueError: for numbers that do not fit their column, or an array of another length than its batch.
    """
    told = Told([record.last for record in records])
    ids, sizes = kept_together([record.item_ids for record in records])
    layout, item = Layout(sizes), integers(ids, np.int32, "item_ids")
    floats = {
        name: column
        for name in _ANCHOR_FLOATS
        if (values := told[name]) and (column := _floats(values, name, layout)) is not None
    }
    built = {
        "step": columns.numbers(layout.of_steps(np.array([record.step for record in records])), pa.int64()),
        "epoch": _epoch_column(records, layout),
        "direction": _direction_column(layout, directions),
        "item_id": columns.numbers(layout.of_anchors(item), pa.int32()),
        **_candidate_columns(records, told, item, layout),
        **{name: columns.numbers(values, pa.float32(), valid) for name, (values, valid) in floats.items()},
        "suspected_false_negative": columns.booleans(_suspected(floats, layout)),
    }
    return columns.unmarked_table(built, PAIRS, directions)


def _epoch_column(records: Sequence[StepRecord], layout: Layout) -> pa.Array:
    told = [record.epoch for record in records]
    if told[0] is not None and told.count(told[0]) == len(told):
        return _epoch(told[0], layout.rows)
    known = np.array([epoch is not None for epoch in told])
    values = np.array([epoch or 0 for epoch in told], dtype=np.int32)
    return columns.numbers(layout.of_steps(values), pa.int32(), _spread(known, layout.of_steps))


@lru_cache(maxsize=4)
def _epoch(epoch: int, rows: int) -> pa.Array:
    """The same for part after part."""
    return columns.numbers(np.full(rows, epoch, np.int32), pa.int32())


def _direction_column(layout: Layout, directions: Directions) -> pa.Array:
    if layout.shape is None:
        codes = np.repeat(np.tile(_BOTH, len(layout.sizes)), np.repeat(layout.sizes, 2))
        return columns.labels(codes, directions)
    return _direction(layout.shape, directions)


@lru_cache(maxsize=4)
def _direction(shape: tuple[int, int, int], directions: Directions) -> pa.Array:
    """The same for part after part."""
    return columns.labels(np.broadcast_to(_BOTH[:, None], shape).reshape(-1), directions)


def _spread(known: NDArray[np.bool_], spread: Callable[[NDArray[np.bool_]], NDArray[np.bool_]]) -> _Valid:
    return None if known.all() else spread(known)


def _floats(values: Sequence[Any], name: str, layout: Layout) -> tuple[NDArray[np.float32], _Valid] | None:
    """A column of floats, and where it was given; None where nowhere."""
    known = np.array([value is not None for value in values])
    if not known.any():
        return None
    if not known.all():
        values = [
            np.full(2 * size, np.nan, np.float32) if value is None else value
            for value, size in zip(values, layout.sizes, strict=True)
        ]
    return _per_row(values, name, layout).astype(np.float32, copy=False), _spread(known, layout.of_steps)


def _per_row(values: Sequence[Any], name: str, layout: Layout) -> NDArray[Any]:
    """Arrays of a value per direction and anchor, one for each step, as one per row."""
    shapes: set[Any] = {getattr(value, "shape", None) for value in values}
    if layout.shape is not None and len(shapes) == 1 and None not in shapes:
        counts = [math.prod(shapes.pop())]
    else:
        # as many dimensions each, so that they can be joined
        values = [flat(value) for value in values]
        counts = [len(value) for value in values]
    wanted = (2 * layout.sizes[: len(counts)]).tolist()
    if counts != wanted:
        raise ValueError(f"last.{name} has {counts} values in a step; expected two a pair, {wanted}")
    return joined(values, 0).reshape(-1)


def _candidate_columns(
    records: Sequence[StepRecord], told: Told, item: NDArray[np.int32], layout: Layout
) -> dict[str, pa.Array]:
    """Captions, and what the negatives are; captions are left out where no step has any."""
    index = _per_row(told["negative_index"] or (), "negative_index", layout)
    further = [ids or () for ids in told["further_item_ids"] or ()]
    place, found = _negatives(index, [len(ids) for ids in further], layout)
    remembered, named = _memory_items([item for ids in further for item in ids])
    kept = len(remembered)
    candidate = np.append(item, remembered) if kept else item
    has_item = _all_of(found, np.append(np.ones(len(item), np.bool_), named)[place] if kept else None)
    built = {"negative_item_id": columns.numbers(candidate[place], pa.int32(), has_item)}
    if any(record.captions is not None for record in records):
        caption, known = _captions(records, layout)
        valid = _spread(known, layout.of_anchors)
        built["caption"] = columns.numbers(layout.of_anchors(caption), pa.int16(), valid)
        has_caption = _all_of(found, np.append(known, np.zeros(kept, np.bool_))[place])
        captions = np.append(caption, np.zeros(kept, np.int16))
        built["negative_caption"] = columns.numbers(captions[place], pa.int16(), has_caption)
    return built


def _all_of(first: _Valid, second: _Valid) -> _Valid:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _captions(records: Sequence[StepRecord], layout: Layout) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """Captions of the joined batches, and which are known; of some steps at least."""
    known = np.repeat([record.captions is not None for record in records], layout.sizes)
    caption = np.zeros(layout.anchors, np.int16)
    told, _ = kept_together([record.captions for record in records if record.captions is not None])
    caption[known] = integers(told, np.int16, "captions")
    return caption, known


def _negatives(index: NDArray[Any], kept: Sequence[int], layout: Layout) -> tuple[NDArray[np.intp], _Valid]:
    """Position of each row's negative among the joined batches, then memories, and whether there is one."""
    place = index + layout.of_steps(layout.starts())
    if not any(kept) and index.min(initial=0) >= 0 and index.max(initial=-1) < layout.sizes.min():
        return place, None
    limit = size = layout.of_steps(layout.sizes)
    if any(kept):
        held = np.array(kept)
        behind = layout.anchors + np.cumsum(held) - held - layout.sizes
        place = np.where(index < size, place, index + layout.of_steps(behind))
        limit = size + layout.of_steps(held)
    found = (index >= 0) & (index < limit)
    place[~found] = 0
    return place, _spread(found, lambda found: found)


def _memory_items(ids: Sequence[Any]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Item ids of the records' memory queues, one after another, and which are whole numbers that fit."""
    known = np.array([isinstance(item, int) and abs(item) <= _LARGEST_ID for item in ids], dtype=np.bool_)
    return np.array([i if k else 0 for i, k in zip(ids, known, strict=True)], dtype=np.int32), known


def _suspected(floats: Mapping[str, tuple[NDArray[np.float32], _Valid]], layout: Layout) -> NDArray[np.bool_]:
    if not {"positive_similarity", "negative_similarity"} <= floats.keys():
        return np.zeros(layout.rows, np.bool_)
    # in float64 over the values as stored, so that a query over the file gives the same answer
    positive = floats["positive_similarity"][0].astype(np.float64)
    suspected: NDArray[np.bool_] = floats["negative_similarity"][0] > positive + SUSPICION
    return suspected
