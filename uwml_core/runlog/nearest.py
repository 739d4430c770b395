"""The nearest wrong candidates of a snapshot's items: arguments checked, rows of ``neighbors``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uwml_core.runlog import columns
from uwml_core.runlog.arrays import host, integers
from uwml_core.runlog.records import NeighborsRecord
from uwml_core.runlog.rows import Where, check_direction
from uwml_core.runlog.schema import NEIGHBORS


class Nearest(NamedTuple):
    """Nearest wrong candidates of n items in one direction, k each, the most similar first.

    Attributes:
        negative_item_ids: whole numbers ``[n, k]``.
        similarities: cosine ``[n, k]``, descending; NaN where an item has fewer than k candidates.
        positive_similarities: cosine ``[n]``, of the item with its own caption.
    """

    negative_item_ids: Any
    similarities: Any
    positive_similarities: Any


def neighbors_record(
    where: Where,
    directions: tuple[str, str],
    nearest: Mapping[str, Nearest],
    *,
    item_ids: Any,
    splits: str | Sequence[str],
    caption: int,
) -> NeighborsRecord:
    """Rows of one snapshot, both directions under each other.

    Raises:
        ValueError: without a direction, for an unknown one, or shapes that do not fit.
    """
    ids = integers(item_ids, np.int32, "item_ids")
    each = [splits] * len(ids) if isinstance(splits, str) else list(splits)
    if len(each) != len(ids):
        raise ValueError(f"{len(ids)} item_ids and {len(each)} splits; expected as many")
    if not nearest:
        raise ValueError("nearest={} is empty; expected what was found in one or both directions")
    parts = []
    for direction, found in nearest.items():
        check_direction(direction, directions)
        parts.append(_rows(found, ids, directions.index(direction)))
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    names = ("direction", "row", "negative_item_id", "similarity", "rank", "positive_similarity")
    return NeighborsRecord(
        where.step, where.epoch, int(caption), ids, each, dict(zip(names, joined, strict=True))
    )


def _rows(found: Nearest, ids: NDArray[np.int32], code: int) -> tuple[NDArray[Any], ...]:
    negatives, similarity = host(found.negative_item_ids), host(found.similarities).astype(np.float32)
    positive = host(found.positive_similarities).astype(np.float32)
    shapes = (negatives.shape, similarity.shape, positive.shape)
    if negatives.ndim != 2 or shapes != ((len(ids), negatives.shape[1]),) * 2 + ((len(ids),),):
        raise ValueError(f"nearest has shapes {shapes}; expected [{len(ids)}, k] twice and [{len(ids)}]")
    row, place = np.nonzero(~np.isnan(similarity))
    return (
        np.full(len(row), code),
        row,
        integers(negatives[row, place], np.int32, "negative_item_ids"),
        similarity[row, place],
        place + 1,
        positive[row],
    )


def neighbors_table(record: NeighborsRecord, segment: int, directions: tuple[str, str]) -> pa.Table:
    """``neighbors`` rows of one snapshot."""
    values, n = record.values, len(record.values["row"])
    caption = columns.numbers(np.full(n, record.caption), pa.int16())
    built = {
        "step": columns.numbers(np.full(n, record.step), pa.int64()),
        "segment": columns.numbers(np.full(n, segment), pa.int32()),
        "epoch": columns.column([record.epoch] * n, pa.int32()),
        "split": columns.texts([record.splits[row] for row in values["row"]]),
        "direction": columns.labels(values["direction"], directions),
        "item_id": columns.numbers(record.item_ids[values["row"]], pa.int32()),
        "caption": caption,
        "negative_item_id": columns.numbers(values["negative_item_id"], pa.int32()),
        "negative_caption": caption,
        "similarity": columns.numbers(values["similarity"], pa.float32()),
        "rank": columns.numbers(values["rank"], pa.int16()),
        "positive_similarity": columns.numbers(values["positive_similarity"], pa.float32()),
    }
    return columns.table(built, NEIGHBORS.schema(directions))
