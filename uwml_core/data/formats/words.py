"""Text files of data sets: lines, JSON and tables, each with the place of what is wrong."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uwml_core.data.errors import DataError


def read_text(path: Path) -> str:
    """A UTF-8 text, with or without a byte order mark, its line ends as they are.

    Raises:
        DataError: if it cannot be read, naming the line that is no UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(str(path), f"cannot be read ({error.strerror})") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n")
        problem = f"is no UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        raise DataError(path.name, problem, row=row) from error


def read_lines(path: Path) -> list[str]:
    """Lines of a text, whatever ends them; blank ones count, for lines are counted.

    Raises:
        DataError: as ``read_text``.
    """
    # str.splitlines would also split at separators that occur within a caption
    text = read_text(path).replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n") if text else []


def read_json(path: Path) -> Any:
    """The value of a JSON file.

    Raises:
        DataError: if it is none, with line and column.
    """
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        problem = f"is no JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise DataError(path.name, problem) from error
    except RecursionError as error:
        raise DataError(path.name, "is nested too deeply; expected the JSON of a data set") from error


def read_table(path: Path, separator: str) -> tuple[list[str], list[list[str]]]:
    """Header and lines of a CSV or TSV; blank lines are skipped.

    Raises:
        DataError: if it has no header, or a line has another number of values.
    """
    try:
        # not str.splitlines, which also splits at separators that occur within a caption
        text = io.StringIO(read_text(path), newline="")
        lines = list(csv.reader(text, delimiter=separator, strict=True))
    except csv.Error as error:
        raise DataError(path.name, f"is no table: {error}") from error
    header = [name.strip() for name in lines[0]] if lines else []
    rows = [line for line in lines[1:] if line]
    for row, line in enumerate(rows):
        if len(line) != len(header):
            problem = f"has {len(line)} values; expected {len(header)} as in the first line"
            raise DataError(path.name, problem, row=row)
    return header, rows


def listed(value: Any, path: Path, what: str) -> Sequence[dict[str, Any]]:
    """A JSON value that must be a list of objects.

    Raises:
        DataError: if it is not, naming the first entry that is none.
    """
    if not isinstance(value, list):
        raise DataError(path.name, f"{what} is {type(value).__name__}; expected a list of objects")
    for row, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise DataError(path.name, f"{what} holds {type(entry).__name__}; expected objects", row=row)
    return value


def entry(row: dict[str, Any], key: str, kind: type, path: Path, number: int) -> Any:
    """A value of a JSON object that must be there.

    Raises:
        DataError: if it is missing or of another type.
    """
    value = row.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        found = "is missing" if value is None else f"is {type(value).__name__}"
        raise DataError(path.name, f"{found}; expected {kind.__name__}", column=key, row=number)
    return value
