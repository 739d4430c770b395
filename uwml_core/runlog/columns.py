"""Arrow columns from NumPy arrays and lists.

Everything is built with ``from_buffers``: the first ``pa.array()`` of a process imports pandas where it
is installed, which would stall training for seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uwml_core.runlog.tables import Table

# by the number of the type: a type itself is hashed by its text, which takes longer than most columns
_NUMPY_TYPES: Mapping[int, Any] = {
    pa.int16().id: np.int16,
    pa.int32().id: np.int32,
    pa.int64().id: np.int64,
    pa.float16().id: np.float16,
    pa.float32().id: np.float32,
    pa.float64().id: np.float64,
    pa.timestamp("us", tz="UTC").id: np.int64,
}


def numbers(values: NDArray[Any], type_: pa.DataType, valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Numeric or timestamp (microseconds) column from an array ``[n]``; null where ``valid`` is False."""
    data = np.ascontiguousarray(values, dtype=_NUMPY_TYPES[type_.id])
    return pa.Array.from_buffers(type_, len(data), [_bitmap(valid), pa.py_buffer(data)])


def booleans(values: NDArray[np.bool_]) -> pa.Array:
    """Boolean column without nulls from an array ``[n]``."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bitmap(values)])


def texts(values: Sequence[str | bytes | None], type_: pa.DataType | None = None) -> pa.Array:
    """String (or binary) column; None becomes null."""
    encoded = [value.encode() if isinstance(value, str) else value for value in values]
    data = b"".join(value for value in encoded if value is not None)
    lengths = [0 if value is None else len(value) for value in encoded]
    valid = np.array([value is not None for value in encoded], dtype=np.bool_)
    buffers = [_bitmap(valid), pa.py_buffer(_offsets(lengths)), pa.py_buffer(data)]
    return pa.Array.from_buffers(type_ or pa.string(), len(encoded), buffers)


def text_lists(values: Sequence[Sequence[str]]) -> pa.Array:
    """Column of lists of strings."""
    flat = [text for row in values for text in row]
    offsets = numbers(_offsets([len(row) for row in values]), pa.int32())
    return pa.ListArray.from_arrays(offsets, texts(flat))


def labels(codes: NDArray[Any], names: Sequence[str], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Dictionary-encoded string column from codes ``[n]`` into ``names``."""
    return pa.DictionaryArray.from_arrays(numbers(codes, pa.int32(), valid), texts(names))


def vectors(values: NDArray[Any]) -> pa.Array:
    """Column of fixed-size float16 lists from an array ``[n, dim]``."""
    return pa.FixedSizeListArray.from_arrays(numbers(values.ravel(), pa.float16()), values.shape[1])


def column(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Column of a schema type from a sequence of Python values; None becomes null."""
    if pa.types.is_dictionary(type_):
        names = list(dict.fromkeys(value for value in values if value is not None))
        position = {name: code for code, name in enumerate(names)}
        codes = np.array([position.get(value, 0) for value in values], dtype=np.int32)
        return labels(codes, names, _present(values))
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return texts(values, type_)
    if pa.types.is_list(type_):
        return text_lists(values)
    dtype = _NUMPY_TYPES[type_.id]
    if None not in values:
        return numbers(np.array(values, dtype=dtype), type_)
    filled = [0 if value is None else value for value in values]
    return numbers(np.array(filled, dtype=dtype), type_, _present(values))


def table(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """Table in schema order; missing columns are null, columns that are not in the schema come last.

    The columns' own types win over the schema's, for lists of a fixed size.
    """
    length = len(next(iter(columns.values())))
    fields, arrays = [], []
    for field in schema:
        data = columns.get(field.name)
        if data is None:
            data = pa.nulls(length, field.type)
        fields.append(field if data.type == field.type else field.with_type(data.type))
        arrays.append(data)
    known = set(schema.names)
    extra = {name: data for name, data in columns.items() if name not in known}
    fields += [pa.field(name, data.type) for name, data in extra.items()]
    arrays += extra.values()
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=schema.metadata))


def unmarked_table(columns: Mapping[str, pa.Array], spec: Table, directions: tuple[str, str]) -> pa.Table:
    """As ``table``, from columns of the schema's types, and a column that holds no null says so.

    Parquet then stores no mark of every row, and neither writes nor reads one.
    """
    length = len(next(iter(columns.values())))
    fields, arrays = [], []
    for name, type_, field, filled in spec.fields(directions):
        data = columns.get(name)
        fields.append(field if data is None or data.null_count else filled)
        arrays.append(nulls(length, type_) if data is None else data)
    known = {field.name for field in spec.fields(directions)}
    for name, data in columns.items():
        if name not in known:
            fields.append(pa.field(name, data.type, nullable=data.null_count > 0))
            arrays.append(data)
    schema = pa.schema(fields, metadata=spec.schema(directions).metadata)
    return pa.Table.from_arrays(arrays, schema=schema)


def nulls(length: int, type_: pa.DataType) -> pa.Array:
    """Column of nulls; those of numbers are shared, as every part of a file has some."""
    if type_.id not in _NUMPY_TYPES or pa.types.is_timestamp(type_):
        return pa.nulls(length, type_)
    longest = _longest_nulls.get(type_.id)
    if longest is None or len(longest) < length:
        longest = _longest_nulls[type_.id] = pa.nulls(length, type_)
    return longest.slice(0, length)


_longest_nulls: dict[int, pa.Array] = {}


def _present(values: Iterable[Any]) -> NDArray[np.bool_]:
    return np.array([value is not None for value in values], dtype=np.bool_)


def _offsets(lengths: Sequence[int]) -> NDArray[np.int32]:
    ends = np.cumsum([0, *lengths], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{ends[-1]} bytes of text or pictures in one file; expected fewer than 2 GiB")
    return ends.astype(np.int32)


def _bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
