"""What is wrong with a data file, in one line."""

from __future__ import annotations


class DataError(ValueError):
    """A data file cannot be used; the message names file, row and column and says what is expected.

    Args:
        file: name of the file or sample set.
        problem: what is wrong and what is expected.
        column: column concerned, if one is.
        row: row concerned, counted from 0, if one is.

    Example:
        >>> str(DataError("pairs.parquet", "is empty; expected a text", column="captions", row=3))
        "pairs.parquet, column 'captions', row 3: is empty; expected a text"
    """

    def __init__(self, file: str, problem: str, *, column: str | None = None, row: int | None = None) -> None:
        where = file
        if column is not None:
            where += f", column {column!r}"
        if row is not None:
            where += f", row {row}"
        super().__init__(f"{where}: {problem}")
