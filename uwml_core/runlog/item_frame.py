"""Rows of the table ``items`` as a pandas frame."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_CAPTIONS = "captions"
_BUFFER_BYTES, _PIECE_ROWS = 2**18, 1024


def items_frame(rows: pa.Table) -> pd.DataFrame:
    """Rows of ``items`` as a frame with the same columns.

    Captions become tuples, None where an item has no list of them: ten times as fast as an array for each.

    Example:
        >>> rows = pa.table({"item_id": [1, 2], "captions": [["a", "b"], None]})
        >>> items_frame(rows)["captions"].tolist()
        [('a', 'b'), None]
    """
    frame: pd.DataFrame = rows.select([name for name in rows.column_names if name != _CAPTIONS]).to_pandas()
    if _CAPTIONS in rows.column_names:
        captions = pd.Series(_tuples(rows[_CAPTIONS]), dtype=object)
        frame.insert(rows.column_names.index(_CAPTIONS), _CAPTIONS, captions)
    return frame


class ItemRows:
    """Items as they were read; only those that are asked for become Python objects.

    Args:
        rows: rows of ``items`` with ``item_id``.

    Example:
        >>> rows = ItemRows(pa.table({"item_id": [4, 7], "captions": [["four"], ["a", "b"]]}))
        >>> rows.frame([7, 9]).to_dict("records")
        [{'item_id': 7, 'captions': ('a', 'b')}]
    """

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows.combine_chunks()
        self._find = _Places(rows["item_id"])

    def frame(
        self, item_ids: Iterable[int] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """``items_frame`` of some items or columns, or of all; unknown items are left out."""
        rows = self.rows if columns is None else self.rows.select(list(columns))
        return items_frame(rows if item_ids is None else rows.take(self._find(item_ids)[1]))


class _Places:
    """Finds items among rows; of one that is there twice the first counts."""

    def __init__(self, item_ids: pa.ChunkedArray) -> None:
        self._items, self._places = np.unique(item_ids.to_numpy(), return_index=True)

    def __call__(self, item_ids: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
        """Those of the items that are there, each once, and their places."""
        wanted = np.array(list(dict.fromkeys(item_ids)), np.int64)
        known = wanted[np.isin(wanted, self._items)]
        return known, self._places[np.searchsorted(self._items, known)]


class Pictures:
    """Thumbnails of items as they were read; only those that are asked for become Python objects.

    Args:
        rows: ``item_id`` and ``thumbnail``.

    Example:
        >>> Pictures(pa.table({"item_id": [4, 7], "thumbnail": [b"four", None]})).of([7, 4, 9])
        {7: None, 4: b'four'}
    """

    def __init__(self, rows: pa.Table) -> None:
        self._thumbnails = rows["thumbnail"]
        self._find = _Places(rows["item_id"])

    def of(self, item_ids: Iterable[int]) -> dict[int, bytes | None]:
        """WebP bytes of items by their number, None where one has no picture; unknown items are left out."""
        known, places = self._find(item_ids)
        found = [self._thumbnails[place].as_py() for place in places.tolist()]
        return dict(zip(known.tolist(), found, strict=True))


def rows_by_piece(path: Path, wanted: pa.Schema, item_ids: pa.Array | None) -> pa.Table:
    """Items of a file of many, of which some are kept, read piece by piece.

    To read a column as a whole takes several times its bytes of memory, and most of the time goes into
    getting that.

    Args:
        path: the file.
        wanted: columns, ``item_id`` among them; one that the file does not have is null.
        item_ids: which items; None for all.
    """
    file = pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES)
    there = [name for name in wanted.names if name in file.schema_arrow.names]
    if "item_id" not in there:
        return wanted.empty_table()
    pieces = file.iter_batches(batch_size=_PIECE_ROWS, columns=there, use_threads=False)
    if item_ids is not None:
        chosen = item_ids.cast(file.schema_arrow.field("item_id").type)
        pieces = (piece.filter(pc.is_in(piece["item_id"], value_set=chosen)) for piece in pieces)
    found = pa.Table.from_batches(pieces, pa.schema([file.schema_arrow.field(name) for name in there]))
    for field in wanted:
        if field.name not in there:
            found = found.append_column(field, pa.nulls(found.num_rows, field.type))
    return found.select(wanted.names).cast(wanted)


def column_bytes(path: Path, name: str) -> int:
    """Bytes of a column of a Parquet file before compression, as the footer says; 0 for a torn file."""
    try:
        footer = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return 0
    groups = (footer.row_group(place) for place in range(footer.num_row_groups))
    columns = (group.column(place) for group in groups for place in range(group.num_columns))
    return sum(column.total_uncompressed_size for column in columns if column.path_in_schema == name)


def _tuples(lists: pa.ChunkedArray) -> list[tuple[str | None, ...] | None]:
    if not len(lists):
        return []
    whole = pa.concat_arrays(lists.chunks)
    texts = whole.flatten().to_pylist()
    ends = [0, *pc.list_value_length(whole).fill_null(0).to_numpy().cumsum().tolist()]
    found = [tuple(texts[start:end]) for start, end in itertools.pairwise(ends)]
    if not whole.null_count:
        return list(found)
    there = whole.is_valid().to_pylist()
    return [captions if known else None for captions, known in zip(found, there, strict=True)]
