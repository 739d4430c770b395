"""Columns of Arrow tables as NumPy arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def numbers(table: pa.Table, name: str) -> np.ndarray:
    """A numeric column; float32 stays float32, null becomes NaN.

    Args:
        table: any table; a missing column counts as null throughout.
        name: the column.

    Returns:
        ``[rows]`` float array, or integers where the column holds integers without null.
    """
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan, dtype=np.float32)
    column = table[name]
    if column.null_count and pa.types.is_integer(column.type):
        column = column.cast(pa.float64())
    # Without a null the buffer is used as it is; with one, pyarrow fills in NaN.
    return np.asarray(column.to_numpy())


def direction_codes(table: pa.Table, directions: tuple[str, ...]) -> np.ndarray:
    """Position of each row's direction in ``directions``; −1 for null and any other name.

    Returns:
        ``[rows]`` int64.
    """
    column = table["direction"]
    names = pa.array(list(directions), pa.string())
    codes = [_chunk_codes(chunk, names) for chunk in column.chunks]
    return np.concatenate([np.empty(0, np.int64), *codes])


def _chunk_codes(chunk: pa.Array, names: pa.Array) -> np.ndarray:
    if not pa.types.is_dictionary(chunk.type):
        chunk = chunk.cast(pa.string()).dictionary_encode()
    known = (
        pc.index_in(chunk.dictionary.cast(pa.string()), names).fill_null(-1).to_numpy(zero_copy_only=False)
    )
    # A trailing −1 is what a null's index points at.
    lookup = np.append(known, -1)
    index = chunk.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
    return np.asarray(lookup[index], dtype=np.int64)


def direction_names_in(table: pa.Table) -> tuple[str, ...]:
    """Direction names that occur in a table, in order of first appearance."""
    names = pc.unique(table["direction"].cast(pa.string()))
    return tuple(name for name in names.to_pylist() if name is not None)
