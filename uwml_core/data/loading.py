"""Read and check a Parquet of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from uwml_core.data.dataset import PairDataset
from uwml_core.data.errors import DataError
from uwml_core.data.pictures import decode_all
from uwml_core.data.samples import sample_path
from uwml_core.data.selection import caption_column, matching_rows, parse_only, rows_with_captions
from uwml_core.data.streamed import StreamedPictures

_PICTURE_COLUMNS = {"image": "image", "frames": "video"}

# No column of a file is called so: number of a row in the file.
_ROW = "\0row"

Ints = npt.NDArray[np.int64]


def load_sample(name: str, *, split_column: str = "split") -> PairDataset:
    """One of the shipped sample sets, ``emoji_pairs`` or ``animated_emoji_pairs``; see ``load_pairs``."""
    return load_pairs(name, split_column=split_column)


def load_pairs(
    source: str | Path,
    *,
    split_column: str = "split",
    captions: str = "en",
    only: str | None = None,
    stream: bool = False,
) -> PairDataset:
    """Read a Parquet of pairs, check every row that is used and decode its picture.

    Columns: ``item_id`` (what the row shows; rows with the same are never negatives of each other),
    ``captions`` (list of texts), ``image`` (encoded picture) or ``frames`` (list of encoded pictures,
    equally many in each row), the split column, and optionally ``group``. Captions in Chinese are in
    ``captions_zh``; a row without them is left out and counted. Other columns are ignored.

    Args:
        source: path of a Parquet file, or name of a shipped sample set.
        split_column: column that says ``train``, ``val`` or another part for each row.
        captions: language of the captions, one of ``selection.LANGUAGES``.
        only: ``column=value``: use the rows with this text in this column alone.
        stream: decode pictures when they are asked for, not now.

    Returns:
        The data set, its rows in the order of the file.

    Raises:
        DataError: for the first thing that is wrong, naming file, column and row (from 0).
        ValueError: for an unknown language, or ``only`` of another form.
    """
    path = sample_path(source)
    file, texts = path.name, caption_column(captions)
    table, left_out = _used(_read(path, split_column, texts, only), file, captions, only)
    ids, column = table[_ROW].to_numpy(), _picture_column(table, file)
    encoded = _frames(table[column].to_pylist(), ids, file, column)
    keys = _texts(table, "item_id", file)
    streamed, pictures = None, torch.empty(0)
    if stream:
        streamed = StreamedPictures(file, keys, encoded, clips=column == "frames")
    else:
        decoded = decode_all(
            encoded, lambda row, error: DataError(file, str(error), column=column, row=int(ids[row]))
        )
        pictures = decoded if column == "frames" else decoded[:, 0]
    return PairDataset(
        name=file,
        modality=_PICTURE_COLUMNS[column],
        item_ids=ids,
        item_keys=keys,
        splits=_texts(table, split_column, file),
        groups=_texts(table, "group", file) if "group" in table.column_names else [""] * table.num_rows,
        captions=_captions(table[texts].to_pylist(), ids, file, texts),
        encoded=encoded,
        pictures=pictures,
        streamed=streamed,
        left_out=left_out,
    )


def _used(table: pa.Table, file: str, captions: str, only: str | None) -> tuple[pa.Table, str | None]:
    """The rows to use, and a sentence about those that lack captions."""
    if only is not None:
        column, value = parse_only(only)
        table = table.take(matching_rows(table[column].to_pylist(), column, value, file))
    rows, left_out = rows_with_captions(table[caption_column(captions)].to_pylist(), captions, file)
    return table if left_out is None else table.take(rows), left_out


def _read(path: Path, split_column: str, captions: str, only: str | None) -> pa.Table:
    needed = ["item_id", captions, split_column, *([] if only is None else [parse_only(only)[0]])]
    try:
        present = pq.read_schema(path).names
        for name in needed:
            if name not in present:
                raise DataError(
                    path.name, f"is missing; the file has {', '.join(present) or 'no columns'}", column=name
                )
        wanted = {*needed, "group", *_PICTURE_COLUMNS}
        table = pq.read_table(path, columns=[name for name in present if name in wanted])
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(path.name, "cannot be read; expected a whole Parquet file") from error
    if table.num_rows == 0:
        raise DataError(path.name, "has no rows; expected pairs of a picture and captions")
    return table.append_column(_ROW, pa.array(np.arange(table.num_rows, dtype=np.int64)))


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
    for row, value in zip(table[_ROW].to_pylist(), values, strict=True):
        if value is None or (column == "item_id" and value == ""):
            raise DataError(file, "has no value; expected a text", column=column, row=row)
    return [str(value) for value in values]


def _captions(values: list[Any], ids: Ints, file: str, column: str) -> list[list[str]]:
    for row, captions in zip(ids, values, strict=True):
        problem = None
        if captions is None or captions == []:
            problem = "has no captions; expected a list of at least one text"
        elif not isinstance(captions, list):
            problem = f"is {_kind(captions)}; expected a list of texts"
        elif not all(isinstance(caption, str) and caption.strip() for caption in captions):
            problem = "contains an empty caption; expected texts only"
        if problem:
            raise DataError(file, problem, column=column, row=int(row))
    return values


def _frames(values: list[Any], ids: Ints, file: str, column: str) -> list[Sequence[bytes]]:
    """Frames of each row: one for a picture."""
    rows: list[Sequence[bytes]] = []
    for row, value in zip(ids.tolist(), values, strict=True):
        frames = value if column == "frames" else [value]
        if not isinstance(frames, list) or not frames or not all(isinstance(f, bytes) for f in frames):
            wanted = "encoded pictures (bytes)" if column == "frames" else "an encoded picture (bytes)"
            raise DataError(file, f"is {_kind(value)}; expected {wanted}", column=column, row=row)
        if rows and len(frames) != len(rows[0]):
            raise DataError(
                file,
                f"has {len(frames)} frames; expected {len(rows[0])} as in row {ids[0]}",
                column=column,
                row=row,
            )
        rows.append(frames)
    return rows


def _kind(value: Any) -> str:
    return "empty" if value is None or value == [] else f"of type {type(value).__name__}"
