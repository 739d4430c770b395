"""Read and check a Parquet of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from uwml_core.data.dataset import PairDataset
from uwml_core.data.errors import DataError
from uwml_core.data.pictures import decode_all
from uwml_core.data.samples import sample_path

_PICTURE_COLUMNS = {"image": "image", "frames": "video"}


def load_sample(name: str, *, split_column: str = "split") -> PairDataset:
    """One of the shipped sample sets, ``emoji_pairs`` or ``animated_emoji_pairs``; see ``load_pairs``."""
    return load_pairs(name, split_column=split_column)


def load_pairs(source: str | Path, *, split_column: str = "split") -> PairDataset:
    """Read a Parquet of pairs, check every row and decode every picture.

    Columns: ``item_id`` (what the row shows; rows with the same are never negatives of each other),
    ``captions`` (list of texts), ``image`` (encoded picture) or ``frames`` (list of encoded pictures,
    equally many in each row), the split column, and optionally ``group``. Others are ignored.

    Args:
        source: path of a Parquet file, or name of a shipped sample set.
        split_column: column that says ``train``, ``val`` or another part for each row.

    Returns:
        The data set; its row k is row k of the file.

    Raises:
        DataError: for the first thing that is wrong, naming file, column and row (from 0).
    """
    path = sample_path(source)
    file = path.name
    table = _read(path, split_column)
    column = _picture_column(table, file)
    encoded = _frames(table[column].to_pylist(), file, column)
    pictures = decode_all(encoded, lambda row, error: DataError(file, str(error), column=column, row=row))
    return PairDataset(
        name=file,
        modality=_PICTURE_COLUMNS[column],
        item_keys=_texts(table, "item_id", file),
        splits=_texts(table, split_column, file),
        groups=_texts(table, "group", file) if "group" in table.column_names else [""] * table.num_rows,
        captions=_captions(table["captions"].to_pylist(), file),
        encoded=encoded,
        pictures=pictures if column == "frames" else pictures[:, 0],
    )


def _read(path: Path, split_column: str) -> pa.Table:
    try:
        present = pq.read_schema(path).names
        for name in ("item_id", "captions", split_column):
            if name not in present:
                raise DataError(
                    path.name, f"is missing; the file has {', '.join(present) or 'no columns'}", column=name
                )
        wanted = {"item_id", "captions", split_column, "group", *_PICTURE_COLUMNS}
        table = pq.read_table(path, columns=[name for name in present if name in wanted])
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(path.name, "cannot be read; expected a whole Parquet file") from error
    if table.num_rows == 0:
        raise DataError(path.name, "has no rows; expected pairs of a picture and captions")
    return table


def _picture_column(table: pa.Table, file: str) -> str:
    for name in _PICTURE_COLUMNS:
        if name in table.column_names:
            return name
    raise DataError(
        file,
        "is missing; expected encoded pictures in 'image', or lists of them in 'frames'",
        column="image",
    )


def _texts(table: pa.Table, column: str, file: str) -> list[str]:
    values = table[column].to_pylist()
    for row, value in enumerate(values):
        if value is None or (column == "item_id" and value == ""):
            raise DataError(file, "has no value; expected a text", column=column, row=row)
    return [str(value) for value in values]


def _captions(values: list[Any], file: str) -> list[list[str]]:
    for row, captions in enumerate(values):
        problem = None
        if captions is None or captions == []:
            problem = "has no captions; expected a list of at least one text"
        elif not isinstance(captions, list):
            problem = f"is {_kind(captions)}; expected a list of texts"
        elif not all(isinstance(caption, str) and caption.strip() for caption in captions):
            problem = "contains an empty caption; expected texts only"
        if problem:
            raise DataError(file, problem, column="captions", row=row)
    return values


def _frames(values: list[Any], file: str, column: str) -> list[Sequence[bytes]]:
    """Frames of each row: one for a picture."""
    rows: list[Sequence[bytes]] = []
    for row, value in enumerate(values):
        frames = value if column == "frames" else [value]
        if not isinstance(frames, list) or not frames or not all(isinstance(f, bytes) for f in frames):
            wanted = "encoded pictures (bytes)" if column == "frames" else "an encoded picture (bytes)"
            raise DataError(file, f"is {_kind(value)}; expected {wanted}", column=column, row=row)
        if rows and len(frames) != len(rows[0]):
            raise DataError(
                file, f"has {len(frames)} frames; expected {len(rows[0])} as in row 0", column=column, row=row
            )
        rows.append(frames)
    return rows


def _kind(value: Any) -> str:
    return "empty" if value is None or value == [] else f"of type {type(value).__name__}"
