"""Open whatever a user calls a data set: a Parquet of pairs, a shipped set, or a layout of the field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data.dataset import PairDataset
from uwml_core.data.errors import DataError
from uwml_core.data.formats import Frames, Listing, read_listing
from uwml_core.data.loading import load_pairs
from uwml_core.data.pictures import PICTURE_SIZE, recognise, scaled
from uwml_core.data.samples import SAMPLES
from uwml_core.data.selection import LANGUAGES
from uwml_core.data.streamed import StreamedPictures

# Pictures are decoded ahead and kept in memory, or when a batch needs them.
DECODE = ("ahead", "needed")
# A folder that holds less than this is most likely the wrong one.
_LEAST_SHARE = 0.5
_THREADS = 2

Ints = npt.NDArray[np.int64]
T = TypeVar("T")


def open_data(
    source: str | Path,
    *,
    split_column: str = "split",
    captions: str = LANGUAGES[0],
    only: str | None = None,
    pictures: str | Path | None = None,
    decode: str = DECODE[0],
) -> PairDataset:
    """Read a data set in any layout known and decode its pictures; features stay on disk.

    Items without a caption, or whose picture is missing or broken, are left out and counted in
    ``left_out``. Of pictures that are decoded when needed, only the beginning is looked at for that.

    Args:
        source: name of a shipped set, a Parquet of pairs, or a path for ``read_listing``.
        split_column, captions, only: as for ``load_pairs``, of a Parquet or shipped set.
        pictures: as for ``read_listing``.
        decode: one of ``DECODE``.

    Raises:
        DataError: for what cannot be used, and where more than half of the pictures cannot.
        ValueError: for settings that the layout does not have.
    """
    if _holds_pairs(source):
        if pictures is not None:
            raise ValueError(f"pictures={str(pictures)!r} is not used: a Parquet of pairs holds its pictures")
        return load_pairs(
            source, split_column=split_column, captions=captions, only=only, stream=decode != DECODE[0]
        )
    if only is not None or captions != LANGUAGES[0] or split_column != "split":
        raise ValueError(f"only, captions and split_column are settings of Parquet files; {source} is none")
    return pairs_of(read_listing(source, pictures), stream=decode != DECODE[0])


def any_listing(source: str | Path, pictures: str | Path | None = None) -> Listing:
    """As ``read_listing``, and of a shipped set or a Parquet of pairs, which is checked while it is read.

    Raises:
        DataError: as ``open_data``.
    """
    if not _holds_pairs(source):
        return read_listing(source, pictures)
    held = load_pairs(source)
    return Listing(
        name=held.name,
        layout="Parquet of pairs",
        # equal keys are no mistake here: they say which rows show the same
        keys=[f"{key} (row {row})" for key, row in zip(held.item_keys, held.item_ids.tolist(), strict=True)],
        splits=held.splits,
        captions=held.captions,
        groups=held.groups,
        frames=_Held(held.encoded or []),
        modality=held.modality,
        notes=(f"{held.labels.max() + 1} different things are shown",),
    )


def _holds_pairs(source: str | Path) -> bool:
    # what does not exist may be a shipped set's name, misspelt
    return str(source) in SAMPLES or Path(source).suffix.lower() == ".parquet" or not Path(source).exists()


class _Held:
    """Frames that are in memory."""

    def __init__(self, encoded: Sequence[Sequence[bytes]]) -> None:
        self._encoded = encoded

    def read(self, item: int) -> Sequence[bytes]:
        """Encoded frames of a row."""
        return self._encoded[item]


def pairs_of(listing: Listing, *, stream: bool = False) -> PairDataset:
    """The items of a listing that have a caption and a picture or features.

    Args:
        listing: from ``read_listing``.
        stream: decode pictures when they are asked for.

    Raises:
        DataError: if keys repeat, more than half of the pictures cannot be used, or nothing is left.
    """
    if len(set(listing.keys)) < len(listing):
        raise DataError(listing.name, "names an item twice; run uwml inspect-data to see which")
    captioned = np.flatnonzero([len(captions) > 0 for captions in listing.captions]).astype(np.int64)
    dropped = [(len(listing) - len(captioned), "have no caption")]
    if listing.frames is None:
        items, pixels = captioned, torch.empty(0)
    else:
        items, pixels, problem = (_looked_at if stream else _decoded)(listing, listing.frames, captioned)
        dropped.append((len(captioned) - len(items), f"have no usable picture (first: {problem})"))
    if not len(items):
        raise DataError(listing.name, "has no item with a caption and a picture or features")
    told = [f"{count} of {len(listing)} items {why}" for count, why in dropped if count]
    if listing.empty_captions:
        told.append(f"{listing.empty_captions} captions are empty")
    keys, encoded = _taken(listing.keys, items), None
    if listing.frames is not None:
        encoded = _Encoded(listing.frames, items)
    streamed = None
    if stream and encoded is not None:
        streamed = StreamedPictures(listing.name, keys, encoded, clips=listing.modality == "video")
    return PairDataset(
        name=listing.name,
        modality=listing.modality,
        item_ids=items,
        item_keys=keys,
        splits=_taken(listing.splits, items),
        groups=[""] * len(items) if listing.groups is None else _taken(listing.groups, items),
        captions=_taken(listing.captions, items),
        encoded=encoded,
        pictures=pixels,
        streamed=streamed,
        features=None if listing.features is None else listing.features.chosen(items),
        left_out=f"{listing.name}: {'; '.join(told)}: left out" if told else None,
    )


class _Encoded(Sequence[Sequence[bytes]]):
    """Encoded frames of the items, read each time: all at once would not fit in memory."""

    def __init__(self, frames: Frames, items: Ints) -> None:
        self._frames, self._items = frames, items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place: int) -> Sequence[bytes]:  # type: ignore[override]
        return self._frames.read(int(self._items[place]))

    def __iter__(self) -> Iterator[Sequence[bytes]]:
        return (self[place] for place in range(len(self)))


def _taken(values: Sequence[T], items: Ints) -> list[T]:
    return [values[item] for item in items.tolist()]


def _decoded(listing: Listing, frames: Frames, items: Ints) -> tuple[Ints, torch.Tensor, str]:
    """Items whose frames can be decoded, these at ``PICTURE_SIZE``, and the first problem of the others."""
    count = len(_first(listing, frames, items))
    shape = (count, PICTURE_SIZE, PICTURE_SIZE, 3)
    pixels = np.empty((len(items), *shape), dtype=np.uint8)

    def fill(place: int, item: int) -> None:
        for number, data in enumerate(frames.read(item)):
            pixels[place, number] = scaled(data)

    sound, first = _tried(listing, items, fill)
    stacked = torch.from_numpy(pixels[sound]).permute(0, 1, 4, 2, 3).contiguous()
    return items[sound], stacked if listing.modality == "video" else stacked[:, 0], first


def _looked_at(listing: Listing, frames: Frames, items: Ints) -> tuple[Ints, torch.Tensor, str]:
    """As ``_decoded``, of items whose frames begin as pictures do; no pixels."""
    count = len(_first(listing, frames, items))

    def look(_: int, item: int) -> None:
        found = frames.read(item)
        if len(found) != count:
            raise ValueError(f"has {len(found)} frames; expected {count}")
        for data in found:
            recognise(data)

    sound, first = _tried(listing, items, look)
    return items[sound], torch.empty(0), first


def _tried(
    listing: Listing, items: Ints, use: Callable[[int, int], None]
) -> tuple[npt.NDArray[np.bool_], str]:
    """Which items can be used, by their place and number, and the first problem of the others."""

    def problem_of(place: int, item: int) -> str | None:
        try:
            use(place, item)
        except FileNotFoundError:
            return "is missing"
        except (OSError, ValueError) as error:
            return str(error)
        return None

    with ThreadPoolExecutor(_THREADS) as pool:
        problems = list(pool.map(problem_of, range(len(items)), items.tolist()))
    sound = np.array([problem is None for problem in problems], dtype=bool)
    first = next((f"{listing.keys[item]} {p}" for item, p in zip(items, problems, strict=True) if p), "")
    _refuse_most(listing, sound, first)
    return sound, first[:160]


def _first(listing: Listing, frames: Frames, items: Ints) -> Sequence[bytes]:
    for item in items.tolist():
        try:
            return frames.read(item)
        except (OSError, ValueError):
            continue
    raise DataError(listing.name, f"none of {len(items)} pictures can be read; say where they lie")


def _refuse_most(listing: Listing, sound: npt.NDArray[np.bool_], first: str) -> None:
    if sound.mean() < _LEAST_SHARE:
        problem = f"{(~sound).sum()} of {len(sound)} pictures cannot be used, first {first[:160]}"
        raise DataError(listing.name, f"{problem}; say where they lie")
