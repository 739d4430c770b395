"""What every reader gives: items with captions, and where their pictures or features lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from uwml_core.data.features import FeatureRows


class Frames(Protocol):
    """Encoded pictures of the items, read when they are asked for."""

    def read(self, item: int) -> Sequence[bytes]:
        """Encoded frames of an item, one for a picture.

        Raises:
            FileNotFoundError: if they are not there.
            ValueError: if the name leads out of the data's folder.
        """


@runtime_checkable
class Clips(Frames, Protocol):
    """Frames of clips; one that has fewer than ``count`` repeats some.

    Attributes:
        count: frames that are taken of each.
    """

    count: int

    def length(self, item: int) -> int:
        """How many different frames are taken of an item."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Listing:
    """Items of a data set as its files name them, before a picture is decoded.

    Attributes:
        name: file or folder, for messages.
        layout: which layout was recognised.
        keys: the data's own name of each item.
        splits: part of the data of each item.
        captions: texts of each item, none of them empty; an item may have none.
        groups: category of each item; None where the data has none.
        empty_captions: texts that were left out because they were empty.
        frames: encoded pictures; None where there are none.
        features: what stands for them; None where there is none.
        modality: ``image`` or ``video``.
        notes: what was found out or decided while reading, a sentence each.
    """

    name: str
    layout: str
    keys: Sequence[str]
    splits: Sequence[str]
    captions: Sequence[Sequence[str]]
    groups: Sequence[str] | None = None
    empty_captions: int = 0
    frames: Frames | None = None
    features: FeatureRows | None = None
    modality: str = "image"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)


def spoken(texts: Sequence[str]) -> tuple[list[str], int]:
    """The texts that say something, stripped, and how many do not.

    Example:
        >>> spoken(["a dog ", "", "  "])
        (['a dog'], 2)
    """
    kept = [text.strip() for text in texts if text.strip()]
    return kept, len(texts) - len(kept)
