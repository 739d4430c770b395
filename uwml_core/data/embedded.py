"""Pairs whose embeddings were computed elsewhere: what belongs to what, without pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from uwml_core.data.arrays import read_integers
from uwml_core.data.columns import read_captions
from uwml_core.data.errors import DataError
from uwml_core.data.pair_index import PairIndex, read_pairs

DEFAULT_SPLIT = "val"

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddedPairs:
    """Rows of one image with its texts; what the evaluation asks of a data set.

    Attributes:
        item_ids: int64 ``[images]``, 0 to n - 1.
        item_keys: the picture's file name, or the row's number, ``[images]``.
        labels: int64 ``[images]``; equal ones are never negatives of each other.
        splits, groups: part of the data and category of each image.
        captions: texts of each image, at least one; where their words are unknown, a name for each row.
        text_rows: row of each of these texts in the array of texts.
        worded: whether the captions are words.
        pictures: file name of each image; None where none is known.
        unused_texts: text rows that belong to no image.
    """

    item_ids: Ints
    item_keys: Sequence[str]
    labels: Ints
    splits: Sequence[str]
    groups: Sequence[str]
    captions: Sequence[Sequence[str]]
    text_rows: Sequence[Ints]
    worded: bool
    pictures: Sequence[str] | None
    unused_texts: int

    def rows(self, split: str) -> Ints:
        """Rows of a split, ascending, int64."""
        return np.flatnonzero(np.array(self.splits) == split).astype(np.int64)

    def texts_of(self, rows: Ints, captions: Ints) -> Ints:
        """Row in the array of texts of one caption of each of these images, int64 ``[n]``."""
        pairs = zip(rows.tolist(), captions.tolist(), strict=True)
        return np.array([self.text_rows[row][caption] for row, caption in pairs], dtype=np.int64)


def read_embedded_pairs(
    images: int,
    texts: int,
    *,
    pairs: Path | None = None,
    captions: Path | None = None,
    labels: Path | None = None,
) -> EmbeddedPairs:
    """Read what lies beside the embeddings.

    Args:
        images, texts: rows of the two arrays.
        pairs: as for ``read_pairs``.
        captions: as for ``read_captions``.
        labels: .npy of whole numbers ``[images]``; None takes each image as its own.

    Raises:
        DataError: for the first thing that is wrong, naming file, column and row (from 0).
    """
    index = read_pairs(pairs, images, texts)
    words = None if captions is None else read_captions(captions, texts)
    shown = np.arange(images) if labels is None else read_integers(labels, "a label")
    if labels is not None and len(shown) != images:
        raise DataError(labels.name, f"has {len(shown)} labels; expected {images}, one per image row")
    text_rows = _grouped(index, images)
    # a text without words is the same as itself only
    name = (lambda row: f"text {row}") if words is None else words.__getitem__
    return EmbeddedPairs(
        item_ids=np.arange(images, dtype=np.int64),
        item_keys=_keys(index.pictures, images),
        labels=shown,
        splits=[split.strip() or DEFAULT_SPLIT for split in index.splits or [""] * images],
        groups=index.groups or [""] * images,
        captions=[[name(row) for row in rows.tolist()] for rows in text_rows],
        text_rows=text_rows,
        worded=words is not None,
        pictures=index.pictures,
        unused_texts=texts - len(np.unique(index.texts)),
    )


def _grouped(index: PairIndex, images: int) -> list[Ints]:
    order = np.argsort(index.images, kind="stable")
    ends = np.cumsum(np.bincount(index.images, minlength=images))
    return np.split(index.texts[order], ends[:-1])


def _keys(pictures: Sequence[str] | None, images: int) -> list[str]:
    return [name or str(row) for row, name in enumerate(pictures if pictures is not None else [""] * images)]
