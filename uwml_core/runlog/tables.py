"""What a table of the run log is: columns with Arrow type, unit and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column; ``per_direction`` ones are repeated with each direction's name as suffix."""

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    per_direction: bool = False


class Field(NamedTuple):
    """A field of an Arrow schema; ``filled`` is that of a column without null."""

    name: str
    type: pa.DataType
    field: pa.Field
    filled: pa.Field


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table: a folder of part files with these columns.

    ``dictionary`` and ``byte_stream_split`` are the columns that the writer encodes so; a column is in
    one of them at most. ``bounds`` are the columns whose least and largest value a file tells, for readers to
    skip rows by; all but floats when None. ``rows_per_group`` is how many rows a reader takes at once; None
    leaves it to Arrow.
    """

    name: str
    columns: tuple[Column, ...]
    dictionary: tuple[str, ...] = ()
    byte_stream_split: tuple[str, ...] = ()
    bounds: tuple[str, ...] | None = None
    rows_per_group: int | None = None

    def schema(self, directions: tuple[str, str]) -> pa.Schema:
        """Arrow schema with unit and meaning as field metadata and the version as schema metadata."""
        known = self._schemas.get(tuple(directions))
        if known is None:
            fields = [field for column in self.columns for field in _fields(column, directions)]
            metadata = {"uwml_table": self.name, "uwml_schema_version": str(SCHEMA_VERSION)}
            known = self._schemas[tuple(directions)] = pa.schema(fields, metadata=metadata)
        return known

    def fields(self, directions: tuple[str, str]) -> tuple[Field, ...]:
        """The fields of the schema, ready to be put together for a file."""
        known = self._fields.get(directions)
        if known is None:
            known = self._fields[directions] = tuple(
                Field(field.name, field.type, field, field.with_nullable(False))
                for field in self.schema(directions)
            )
        return known

    @cached_property
    def _fields(self) -> dict[tuple[str, str], tuple[Field, ...]]:
        return {}

    @cached_property
    def _schemas(self) -> dict[tuple[str, ...], pa.Schema]:
        """Schemas by directions: one is asked for with every part that is written or read."""
        return {}

    def per_direction(self) -> tuple[str, ...]:
        """Names, without suffix, of the columns that exist once per direction."""
        return tuple(column.name for column in self.columns if column.per_direction)


def _fields(column: Column, directions: tuple[str, str]) -> list[pa.Field]:
    metadata = {"unit": column.unit, "meaning": column.meaning}
    names = [f"{column.name}_{d}" for d in directions] if column.per_direction else [column.name]
    return [pa.field(name, column.type, metadata=metadata) for name in names]


def col(name: str, type_: pa.DataType, meaning: str, unit: str = "", per_direction: bool = False) -> Column:
    """A column in one line.

    Example:
        >>> col("step", pa.int64(), "optimizer step", "step").unit
        'step'
    """
    return Column(name=name, type=type_, meaning=meaning, unit=unit, per_direction=per_direction)
