"""Arrow columns to NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uwml_core.runlog import columns


def number_column(table: pa.Table, name: str, dtype: Any, null: float = np.nan) -> NDArray[Any]:
    """A numeric column as an array, null replaced."""
    column = table[name]
    if column.null_count == len(column):
        # to replace null by null takes longer than all else
        return np.full(len(column), null, dtype)
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(null, column.type))
    chunks = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return np.concatenate(chunks, dtype=dtype, casting="unsafe")


def direction_codes(table: pa.Table, directions: tuple[str, str]) -> NDArray[np.int64]:
    """Position of each row's direction among the two; -1 for another one or null."""
    known = columns.texts(directions)
    codes = [_codes(chunk, known) for chunk in table["direction"].chunks]
    return codes[0] if len(codes) == 1 else np.concatenate([np.empty(0, np.int64), *codes])


def _codes(chunk: pa.DictionaryArray, known: pa.Array) -> NDArray[np.int64]:
    if chunk.dictionary.equals(known) and not chunk.indices.null_count:
        codes: NDArray[np.int64] = chunk.indices.to_numpy().astype(np.int64)
        return codes
    place = pc.fill_null(pc.index_in(chunk.dictionary, value_set=known), pa.scalar(-1, pa.int32()))
    names = np.append(place.to_numpy(), -1).astype(np.int64)
    # null is the last of the names
    indices = pc.fill_null(chunk.indices, pa.scalar(len(names) - 1, chunk.indices.type))
    return np.asarray(names[indices.to_numpy()])
