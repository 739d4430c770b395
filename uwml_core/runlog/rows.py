"""Records of what is logged now and then: evaluations, ranks, snapshots; arguments are checked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from uwml_core.runlog.arrays import host, integers
from uwml_core.runlog.records import RowsRecord, SnapshotRecord

Metric = tuple[str | None, str, float, int, float | None]


class Where(NamedTuple):
    """Last completed step, segment, epoch and split of some rows."""

    step: int
    segment: int
    epoch: int | None
    split: str


def eval_rows(where: Where, directions: tuple[str, str], metrics: Sequence[Metric]) -> RowsRecord | None:
    """Rows of ``evals``, None when there are none.

    Raises:
        ValueError: for an unknown direction.
    """
    if not metrics:
        return None
    for direction, *_ in metrics:
        if direction is not None:
            check_direction(direction, directions)
    names = ("direction", "metric", "value", "n", "tied_share")
    values: dict[str, list[Any]] = {
        name: list(column) for name, column in zip(names, zip(*metrics, strict=True), strict=True)
    }
    return _rows("evals", where, values)


def rank_rows(where: Where, direction: str, item_ids: Any, captions: Any, ranks: Any) -> RowsRecord | None:
    """Rows of ``ranks``, None when there are none.

    Raises:
        ValueError: if columns have different lengths.
    """
    ids = integers(item_ids, np.int32, "item_ids").tolist()
    drawn = [None] * len(ids) if captions is None else integers(captions, np.int16, "captions").tolist()
    rank = host(ranks).astype(np.float32).ravel().tolist()
    if not len(ids) == len(drawn) == len(rank):
        raise ValueError(
            f"{len(ids)} item_ids, {len(drawn)} captions and {len(rank)} ranks; expected equal lengths"
        )
    values = {"direction": [direction] * len(ids), "item_id": ids, "caption": drawn, "rank": rank}
    return _rows("ranks", where, values) if ids else None


def _rows(table: str, where: Where, values: Mapping[str, list[Any]]) -> RowsRecord:
    n = len(values["direction"])
    constant: dict[str, Any] = {name: [value] * n for name, value in where._asdict().items()}
    return RowsRecord(table, {**constant, **values})


def check_direction(direction: str, directions: tuple[str, str]) -> None:
    """Raise a ValueError unless the run has this direction."""
    if direction not in directions:
        raise ValueError(f"direction={direction!r} is unknown; this run has {' and '.join(directions)}")


def snapshot_record(
    where: Where, embeddings: Mapping[str, Any], item_ids: Any, labels: Any, splits: str | Sequence[str]
) -> SnapshotRecord:
    """One snapshot, copied to float16.

    Raises:
        ValueError: if there is no modality, or shapes or lengths differ.
    """
    arrays = {name: host(array).astype(np.float16) for name, array in embeddings.items()}
    ids, shown = integers(item_ids, np.int32, "item_ids"), integers(labels, np.int32, "labels")
    each = [splits] * len(ids) if isinstance(splits, str) else list(splits)
    shapes = {name: array.shape for name, array in arrays.items()}
    fits = all(array.ndim == 2 and len(array) == len(ids) for array in arrays.values())
    if not fits or len({array.shape for array in arrays.values()}) != 1:
        raise ValueError(f"embeddings have shapes {shapes}; expected [{len(ids)}, dim] for each modality")
    if not len(ids) == len(shown) == len(each):
        raise ValueError(f"{len(ids)} item_ids, {len(shown)} labels and {len(each)} splits; expected as many")
    return SnapshotRecord(where.step, where.epoch, arrays, ids, shown, each)


def check_batch(last: Any, directions: tuple[str, str], item_ids: Any, captions: Any) -> None:
    """Raise a ValueError unless a step's diagnostics fit the run and the batch."""
    if last.directions != directions and tuple(last.directions) != directions:
        raise ValueError(
            f"last has directions {tuple(last.directions)}; this run's modalities give {directions}"
        )
    # of several processes that share a batch each has its own pairs; what is computed later says how many
    own = getattr(last, "own_pairs", None)
    pairs = last.negative_index.shape[-1:] if own is None else (own,)
    if getattr(item_ids, "shape", None) != pairs:
        check_length("item_ids", item_ids, *pairs)
    if captions is not None and getattr(captions, "shape", None) != pairs:
        check_length("captions", captions, *pairs)


def check_length(name: str, values: Any, batch: int) -> None:
    """Raise a ValueError unless there is one value per pair."""
    shape = tuple(values.shape) if hasattr(values, "shape") else (len(values),)
    if len(shape) != 1:
        raise ValueError(f"{name} has shape {shape} for a batch of {batch}; expected one number per pair")
    if shape != (batch,):
        raise ValueError(f"{name} has {shape[0]} entries for a batch of {batch}; expected one per pair")


def check_numbers(item_ids: Any, captions: Any) -> None:
    """Raise a ValueError unless both are whole numbers that fit their columns."""
    integers(item_ids, np.int32, "item_ids")
    if captions is not None:
        integers(captions, np.int16, "captions")
