"""Rows of the table ``items`` as a pandas frame."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_CAPTIONS = "captions"


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


class Pictures:
    """Thumbnails of items as they were read; only those that are asked for become Python objects.

    Args:
        rows: ``item_id`` and ``thumbnail``.

    Example:
        >>> Pictures(pa.table({"item_id": [4, 7], "thumbnail": [b"four", None]})).of([7, 4, 9])
        {7: None, 4: b'four'}
    """

    def __init__(self, rows: pa.Table) -> None:
        ids = rows["item_id"].to_numpy()
        self._thumbnails = rows["thumbnail"]
        # of an item that is there twice the first counts
        self._items, self._places = np.unique(ids, return_index=True)

    def of(self, item_ids: Iterable[int]) -> dict[int, bytes | None]:
        """WebP bytes of items by their number, None where one has no picture; unknown items are left out."""
        wanted = np.array(list(dict.fromkeys(item_ids)), np.int64)
        known = wanted[np.isin(wanted, self._items)]
        places = self._places[np.searchsorted(self._items, known)].tolist()
        found = [self._thumbnails[place].as_py() for place in places]
        return dict(zip(known.tolist(), found, strict=True))


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
