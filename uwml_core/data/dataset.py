"""Pairs of a picture or clip with captions, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data.errors import DataError
from uwml_core.data.features import FeatureRows
from uwml_core.data.pictures import thumbnail
from uwml_core.data.streamed import StreamedPictures
from uwml_core.runlog.items import data_fingerprint

Ints = npt.NDArray[np.int64]


class CaptionedItems(Protocol):
    """What an evaluation asks of items with captions, whatever their embeddings are made of."""

    @property
    def item_ids(self) -> Ints:
        """Number of each row in the run log, ``[n]``."""

    @property
    def labels(self) -> npt.NDArray[np.integer[Any]]:
        """What each row shows, ``[n]``; equal ones are never negatives of each other."""

    @property
    def groups(self) -> Sequence[str]:
        """Category of each row, ``[n]``."""

    @property
    def captions(self) -> Sequence[Sequence[str]]:
        """Texts of each row, at least one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairDataset:
    """Rows of one picture or clip with its captions.

    Attributes:
        name: file or set, for messages.
        modality: ``image`` or ``video``, what is paired with ``text``.
        item_ids: int64 [n], each row's number in the file, its ``item_id`` in the run log.
        item_keys: the data's own name of what each row shows, [n].
        splits, groups: part of the data and category of each row, [n].
        captions: texts of each row, at least one.
        encoded: encoded frames of each row, a picture being one frame; None where features stand for them.
        pictures: uint8 [n, 3, size, size], for clips [n, frames, 3, size, size]; empty without pictures, and
            where they are streamed.
        features: features that the encoder takes in their place; None where it takes the pictures.
        streamed: decodes pictures when they are asked for; None where all are in memory.
        left_out: a sentence about rows of the file that had to be left out, None where there are none.
    """

    name: str
    modality: str
    item_ids: Ints
    item_keys: Sequence[str]
    splits: Sequence[str]
    groups: Sequence[str]
    captions: Sequence[Sequence[str]]
    encoded: Sequence[Sequence[bytes]] | None
    pictures: torch.Tensor
    features: FeatureRows | None = None
    streamed: StreamedPictures | None = None
    left_out: str | None = None

    def __len__(self) -> int:
        return len(self.item_keys)

    @property
    def modalities(self) -> tuple[str, str]:
        """Names of the two modalities, such as ``('image', 'text')``."""
        return (self.modality, "text")

    @cached_property
    def labels(self) -> npt.NDArray[np.int32]:
        """Number of each row's item key in order of first appearance, int32 [n].

        Rows with equal labels are never negatives of each other.
        """
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(key, len(numbers)) for key in self.item_keys], dtype=np.int32)

    @cached_property
    def caption_counts(self) -> Ints:
        """Captions of each row, int64 [n]."""
        return np.array([len(captions) for captions in self.captions], dtype=np.int64)

    def evaluated_split(self, wanted: str | None = None) -> str:
        """The split to evaluate while training: the one wanted, else ``val``, else ``test``.

        Example:
            >>> from uwml_core.data import load_sample
            >>> load_sample("emoji_pairs").evaluated_split()
            'val'
        """
        if wanted is not None:
            return wanted
        return "test" if "test" in self.splits and "val" not in self.splits else "val"

    def rows(self, split: str) -> Ints:
        """Rows of a split, ascending, int64.

        Raises:
            DataError: if fewer than two concepts are in it: there would be no negatives.
        """
        rows = np.flatnonzero(np.array(self.splits) == split).astype(np.int64)
        concepts = len(np.unique(self.labels[rows]))
        if concepts >= 2:
            return rows
        found = ", ".join(f"{value} ({n} rows)" for value, n in Counter(self.splits).most_common(5))
        raise DataError(
            self.name,
            f"split {split!r} has {concepts} different item(s); expected at least 2, so that there are "
            f"negatives; splits found: {found}",
        )

    @cached_property
    def fingerprint(self) -> str:
        """What the run log calls the data by: SHA-256 over the rows, see ``data_fingerprint``."""
        return data_fingerprint(
            self.item_keys,
            self.labels.tolist(),
            self.captions,
            self._stored(),
            item_ids=self.item_ids.tolist(),
            splits=self.splits,
        )

    def _stored(self) -> Iterable[bytes | Sequence[bytes]]:
        """What identifies each row's picture: its bytes, or the digest of its features."""
        if self.encoded is not None:
            return self.encoded
        return [] if self.features is None else map(self.features.digest, range(len(self)))

    def inputs(self, rows: Ints) -> torch.Tensor:
        """What the picture encoder takes for these rows: pictures, or features float32 ``[n, D]``."""
        if self.features is not None:
            return torch.from_numpy(self.features.take(rows))
        if self.streamed is not None:
            return self.streamed.take(rows)
        return self.pictures[torch.from_numpy(rows)]

    def thumbnails(self) -> Iterator[bytes | None] | None:
        """WebP of each row, longest side at most 96 px; a clip: a strip of four frames.

        Made while they are read, None for a row that cannot be decoded; and None where features stand for
        the pictures.
        """
        return None if self.encoded is None else map(_thumbnail, self.encoded)


def _thumbnail(frames: Sequence[bytes]) -> bytes | None:
    try:
        return thumbnail(frames)
    except ValueError:
        return None
