"""Which rows of a file are used: those of one kind, and those with captions in the language wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from uwml_core.data.errors import DataError

LANGUAGES = ("en", "zh")

_CAPTION_COLUMNS = {"en": "captions", "zh": "captions_zh"}

Ints = npt.NDArray[np.int64]


def caption_column(language: str) -> str:
    """Column with the captions of a language.

    Raises:
        ValueError: for a language that is none of ``LANGUAGES``.

    Example:
        >>> caption_column("zh")
        'captions_zh'
        >>> caption_column("fr")
        Traceback (most recent call last):
        ValueError: captions='fr' is unknown; choose one of en, zh
    """
    if language not in _CAPTION_COLUMNS:
        raise ValueError(f"captions={language!r} is unknown; choose one of {', '.join(LANGUAGES)}")
    return _CAPTION_COLUMNS[language]


def parse_only(only: str) -> tuple[str, str]:
    """Column and value of ``column=value``.

    Raises:
        ValueError: for any other form.

    Example:
        >>> parse_only("source=noto")
        ('source', 'noto')
    """
    column, equals, value = (part.strip() for part in only.partition("="))
    if not (column and equals and value):
        raise ValueError(f"only={only!r} is not understood; expected column=value, such as source=noto")
    return column, value


def matching_rows(values: Sequence[Any], column: str, value: str, file: str) -> Ints:
    """Rows whose text in a column is the one wanted, ascending, int64.

    Raises:
        DataError: if there is none, with the most frequent texts.
    """
    rows = np.flatnonzero([str(found) == value for found in values]).astype(np.int64)
    if len(rows):
        return rows
    found = ", ".join(f"{text} ({n} rows)" for text, n in Counter(map(str, values)).most_common(5))
    raise DataError(file, f"is {value!r} in no row; found: {found}", column=column)


def rows_with_captions(values: Sequence[Any], language: str, file: str) -> tuple[Ints, str | None]:
    """Rows that have captions in a language, and a sentence about the others.

    In English, the first column, a row without captions is an error for whoever checks them next.

    Args:
        values: list of texts, or None, of each row.
        language: one of ``LANGUAGES``.
        file: name of the file, for the sentence.

    Returns:
        Rows, ascending, int64, and the sentence, None where no row is left out.

    Raises:
        DataError: if no row has any.
    """
    column = caption_column(language)
    every = np.arange(len(values), dtype=np.int64)
    if language == LANGUAGES[0]:
        return every, None
    rows = every[[value is not None and value != [] for value in values]]
    missing = len(values) - len(rows)
    if not len(rows):
        raise DataError(file, f"has no captions in any of {missing} rows", column=column)
    if not missing:
        return rows, None
    return rows, f"{file}: {missing} of {len(values)} rows have no captions in {column!r} and are left out"
