"""Snapshots as arrays: unit vectors of both modalities, what cannot be used left out and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from uwml_core.runlog.run import Run

# Shorter than this, a vector has no direction that its float16 digits could tell.
_SHORTEST = 1e-6
# Vectors that are squared at once: as many as the processor's cache holds.
_BLOCK = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """Embeddings of one moment of training, sorted by modality and item.

    Attributes:
        step: last completed step, -1 before training.
        epoch: its epoch; None where it was not logged.
        modalities: names that occur, in the order in which they were logged.
        modality: position of each point's modality among them, int64 ``[n]``.
        item_ids, labels: int64 ``[n]``; label -1 where none was logged.
        splits: text ``[n]``, empty where none was logged.
        vectors: float32 ``[n, dim]``, unit norm.
        left_out: rows without a finite vector of the common length, or logged twice.
    """

    step: int
    epoch: int | None
    modalities: tuple[str, ...]
    modality: NDArray[np.int64]
    item_ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    splits: NDArray[np.object_]
    vectors: NDArray[np.float32]
    left_out: int

    def rows(self, modality: str) -> NDArray[np.int64]:
        """Rows of a modality, ascending by item; none where it was not logged."""
        if modality not in self.modalities:
            return np.empty(0, np.int64)
        return np.flatnonzero(self.modality == self.modalities.index(modality))

    def named(self, modalities: tuple[str, str]) -> tuple[str, str]:
        """Names of both modalities: the given ones, or the snapshot's own where it has two others."""
        if len(self.modalities) != 2 or set(self.modalities) == set(modalities):
            return modalities
        return self.modalities[0], self.modalities[1]

    def pairs(self, modalities: tuple[str, str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of the items that have both modalities: first ``[pairs]`` and second ``[pairs]``."""
        first, second = self.rows(modalities[0]), self.rows(modalities[1])
        common, here, there = np.intersect1d(
            self.item_ids[first], self.item_ids[second], assume_unique=True, return_indices=True
        )
        return (first[here], second[there]) if len(common) else (first[:0], second[:0])


def snapshots_in(table: pa.Table) -> list[Snapshot]:
    """Snapshots among rows of the table ``snapshots``, by step."""
    return list(_each(table))


def read_snapshot(run: Run, step: int) -> Snapshot | None:
    """The snapshot of a step; None where there is none."""
    several = any(part.first < part.last for part in run.parts("snapshots"))
    # to look through the rows takes a third as long as to read them, and most files hold a single step
    filter = pc.field("step") == step if several else None
    rows = run.table("snapshots", filter=filter, steps=(step, step))
    if filter is None and pc.unique(rows["step"]).to_pylist() != [step]:
        rows = rows.filter(pc.field("step") == step)
    return next(_each(rows), None)


def snapshot_steps(run: Run) -> list[tuple[int, int | None]]:
    """Step and epoch of every snapshot, by step; of a growing run only new files are looked at."""
    told = {part.key: _told_by_footer(*part.key) for part in run.parts("snapshots")}
    # a footer is read in a tenth of the time that rows take
    rest = run.map_each(
        "snapshots", lambda part: None if told.get(part.key) else _steps_of, columns=["step", "epoch"]
    )
    known = [moment for moment in told.values() if moment is not None]
    return sorted(dict([*known, *(moment for part in rest for moment in part)]).items())


@lru_cache(maxsize=10_000)
def _told_by_footer(path: str, size: int, mtime_ns: int) -> tuple[int, int | None] | None:
    """Step and epoch of a file in which each has a single value; None where its footer does not say."""
    try:
        footer = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        # whoever reads its rows says what is wrong
        return None
    step, epoch = (_single_value(footer, name) for name in ("step", "epoch"))
    return None if step is None or epoch is None else (step, epoch)


def _single_value(footer: pq.FileMetaData, name: str) -> int | None:
    values = set()
    for place in range(footer.num_row_groups):
        group = footer.row_group(place)
        columns = (group.column(number) for number in range(group.num_columns))
        told = next((column.statistics for column in columns if column.path_in_schema == name), None)
        if told is None or not told.has_min_max or told.null_count != 0:
            return None
        values |= {told.min, told.max}
    return int(values.pop()) if len(values) == 1 else None


def _steps_of(table: pa.Table) -> list[tuple[int, int | None]]:
    steps = pc.unique(table["step"].drop_null()).to_pylist()
    return [(step, _epoch_of(table.filter(pc.field("step") == step))) for step in steps]


def _epoch_of(rows: pa.Table) -> int | None:
    epochs = rows["epoch"].drop_null()
    return int(epochs[0].as_py()) if len(epochs) else None


def _each(table: pa.Table) -> Iterator[Snapshot]:
    steps = sorted(pc.unique(table["step"]).drop_null().to_pylist())
    for step in steps:
        alone = len(steps) == 1 and not table["step"].null_count
        yield _snapshot(int(step), table if alone else table.filter(pc.field("step") == step))


def _snapshot(step: int, rows: pa.Table) -> Snapshot:
    names = rows["modality"].cast(pa.string()).combine_chunks().dictionary_encode()
    modality = names.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    item_ids = _integers(rows, "item_id")
    vectors, usable = _unit_vectors(rows["embedding"].combine_chunks())
    usable &= modality >= 0
    order = np.lexsort((item_ids, modality))
    order = order[usable[order]]
    again = (np.diff(modality[order]) == 0) & (np.diff(item_ids[order]) == 0)
    order = order[np.concatenate([np.ones(min(len(order), 1), bool), ~again])]
    splits = rows["split"].fill_null("").to_numpy(zero_copy_only=False)
    return Snapshot(
        step=step,
        epoch=_epoch_of(rows),
        modalities=tuple(names.dictionary.to_pylist()),
        modality=modality[order],
        item_ids=item_ids[order],
        labels=_integers(rows, "label")[order],
        splits=splits[order].astype(object),
        # most snapshots are logged in this order
        vectors=vectors if np.array_equal(order, np.arange(len(vectors))) else vectors[order],
        left_out=rows.num_rows - len(order),
    )


def _integers(rows: pa.Table, name: str) -> NDArray[np.int64]:
    return np.asarray(rows[name].fill_null(-1).to_numpy(), dtype=np.int64)


def _unit_vectors(column: pa.Array) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Vectors ``[rows, dim]`` of norm 1 and which rows have one; dim is the commonest length."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    dim = int(np.bincount(lengths[lengths > 0]).argmax()) if (lengths > 0).any() else 0
    usable = (lengths == dim) & (dim > 0)
    flat = (column if usable.all() else column.filter(pa.array(usable))).flatten()
    # the buffer itself: pyarrow would turn half floats into a list of Python numbers where one is null
    known = flat.to_numpy(zero_copy_only=False).astype(np.float32).reshape(-1, dim or 1)
    vectors = known if usable.all() else np.zeros((len(lengths), dim), np.float32)
    if vectors is not known:
        vectors[usable] = known
    norms = _norms(vectors)
    with np.errstate(invalid="ignore"):
        usable &= np.isfinite(norms[:, 0]) & (norms[:, 0] > _SHORTEST)
    # with a condition it takes three times as long
    np.divide(vectors, norms, out=vectors, where=True if usable.all() else usable[:, None])
    return vectors, usable


def _norms(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Length of each vector, float32 ``[rows, 1]``."""
    squares = np.empty((len(vectors), 1), np.float32)
    for first in range(0, len(vectors), _BLOCK):
        block = vectors[first : first + _BLOCK]
        np.add.reduce(block * block, axis=1, keepdims=True, out=squares[first : first + _BLOCK])
    return np.sqrt(squares, out=squares)
