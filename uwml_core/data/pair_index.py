"""Which text belongs to which picture, from a file beside saved embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from uwml_core.data.arrays import read_integers
from uwml_core.data.columns import read_columns
from uwml_core.data.errors import DataError

_COLUMNS = ("image", "text", "split", "group", "picture")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairIndex:
    """Pairs of an image row and a text row, in the order of the file.

    Attributes:
        images, texts: int64 ``[pairs]``, rows of the two arrays.
        splits, groups, pictures: of each image, ``[images]``; None where the file does not say.
    """

    images: Ints
    texts: Ints
    splits: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    pictures: Sequence[str] | None = None


def read_pairs(path: Path | None, images: int, texts: int) -> PairIndex:
    """Read which image row each text row belongs to.

    Args:
        path: CSV with the column ``image`` (a line per text row, in their order) or ``image`` and
            ``text``, and optionally ``split``, ``group`` and ``picture`` (a file name) of the image; or
            .npy of whole numbers, the image row of each text row. None pairs equal rows.
        images, texts: how many rows there are of each.

    Raises:
        DataError: for rows that do not exist, an image without a text, or lines that contradict each other.
    """
    if path is None:
        if images != texts:
            problem = f"are {texts} for {images} images; expected --pairs, which says the image row of each"
            raise DataError("text rows", problem)
        return PairIndex(images=np.arange(images), texts=np.arange(texts))
    if path.suffix.lower() == ".npy":
        columns: dict[str, list[str]] = {}
        image_rows = read_integers(path, "an image row", images)
    else:
        columns = read_columns(path, _COLUMNS, "image")
        image_rows = _rows(path, "image", columns["image"], images)
    if "text" in columns:
        text_rows = _rows(path, "text", columns["text"], texts)
    elif len(image_rows) == texts:
        text_rows = np.arange(texts)
    else:
        raise DataError(path.name, f"has {len(image_rows)} rows; expected {texts}, one per text row")
    missing = np.setdiff1d(np.arange(images), image_rows)
    if len(missing):
        problem = f"{len(missing)} of {images} images have no text, first image row {missing[0]}"
        raise DataError(path.name, f"{problem}; expected at least one text each")
    told = {name: _of_images(path, name, columns.get(name), image_rows, images) for name in _COLUMNS[2:]}
    return PairIndex(
        images=image_rows,
        texts=text_rows,
        splits=told["split"],
        groups=told["group"],
        pictures=told["picture"],
    )


def _rows(path: Path, column: str, values: Sequence[str], limit: int) -> Ints:
    rows = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        # digits alone: int() also takes signs, underscores and other scripts' digits
        text = value.strip()
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) < limit):
            problem = f"is {value[:40]!r}; expected the number of a row, 0 to {limit - 1}"
            raise DataError(path.name, problem, column=column, row=row)
        rows[row] = int(text)
    return rows


def _of_images(
    path: Path, column: str, values: Sequence[str] | None, image_rows: Ints, images: int
) -> list[str] | None:
    if values is None:
        return None
    found: list[str | None] = [None] * images
    for row, (image, value) in enumerate(zip(image_rows.tolist(), values, strict=True)):
        if found[image] not in (None, value):
            problem = f"is {value[:40]!r}; expected {str(found[image])[:40]!r} as before for image {image}"
            raise DataError(path.name, problem, column=column, row=row)
        found[image] = value
    return [value or "" for value in found]
