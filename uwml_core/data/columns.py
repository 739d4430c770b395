"""Columns of a text file: CSV with a header, or one value per line."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from uwml_core.data.errors import DataError
from uwml_core.data.formats.words import read_lines, read_text


def read_columns(path: Path, known: Sequence[str], needed: str) -> dict[str, list[str]]:
    """Columns of a CSV by name; others than the known ones are ignored.

    Args:
        path: UTF-8 text with a header line.
        known: names of columns that are read where they are there.
        needed: one that must be there.

    Raises:
        DataError: if it cannot be read, the column is missing or a line has too few values.
    """
    try:
        lines = [line for line in csv.reader(io.StringIO(read_text(path), newline="")) if line]
    except csv.Error as error:
        raise DataError(path.name, f"is no table: {error}") from error
    header = [name.strip() for name in lines[0]] if lines else []
    if needed not in header:
        found = ", ".join(header) or "nothing"
        raise DataError(path.name, f"is missing; the first line has {found}", column=needed)
    places = {name: header.index(name) for name in known if name in header}
    for row, line in enumerate(lines[1:]):
        if len(line) <= max(places.values()):
            problem = f"has {len(line)} values; expected {len(header)} as in the first line"
            raise DataError(path.name, problem, row=row)
    return {name: [line[place] for line in lines[1:]] for name, place in places.items()}


def read_captions(path: Path, texts: int) -> list[str]:
    """Captions of all text rows: the column ``caption`` of a CSV, or the lines of any other text file.

    Args:
        path: UTF-8 text.
        texts: how many there must be.

    Raises:
        DataError: if it cannot be read, has another number of captions, or one is empty.
    """
    if path.suffix.lower() == ".csv":
        captions = read_columns(path, ("caption",), "caption")["caption"]
    else:
        captions = read_lines(path)
    if len(captions) != texts:
        raise DataError(path.name, f"has {len(captions)} captions; expected {texts}, one per text row")
    for row, caption in enumerate(captions):
        if not caption.strip():
            raise DataError(path.name, "is empty; expected a caption", row=row)
    return captions
