"""Tar files as webdataset and img2dataset write them: members of a sample share the name up to the first dot.

Reference: https://github.com/webdataset/webdataset, "The WebDataset Format".
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uwml_core.data.errors import DataError
from uwml_core.data.formats.listing import Listing, spoken
from uwml_core.data.formats.splits import split_in

LAYOUT = "webdataset tar files"
_PICTURES = ("jpg", "jpeg", "png", "webp")
_JSON_CAPTION = "caption"
_MOST_TEXT = 2**20


@dataclass(frozen=True)
class _Place:
    file: Path
    offset: int
    size: int


@dataclass
class _Sample:
    key: str
    split: str
    picture: _Place | None = None
    texts: dict[str, _Place] = field(default_factory=dict)


class _Members:
    """Pictures within tar files, by where they begin."""

    def __init__(self, places: Sequence[_Place | None], keys: Sequence[str]) -> None:
        self._places, self._keys = places, keys

    def read(self, item: int) -> Sequence[bytes]:
        """Bytes of an item's picture.

        Raises:
            FileNotFoundError: if the sample has none.
        """
        place = self._places[item]
        if place is None:
            raise FileNotFoundError(f"{self._keys[item]}: no member {', '.join(_PICTURES)}")
        return [_bytes(place)]


def recognised(path: Path) -> bool:
    """Whether a path is a tar file, or a folder that holds some."""
    return bool(_files(path))


def read(path: Path, pictures: Path | None = None) -> Listing:
    """Index the tar files; pictures are read when they are asked for, nothing is unpacked.

    A split is what a file's name begins with (``train-0001.tar``), else ``train``. The caption is the
    member ``txt``, else ``caption`` of the member ``json``.

    Args:
        path: one tar file, or a folder of them.
        pictures: not used: the pictures are in the files.

    Raises:
        DataError: for a file that is no whole, uncompressed tar, and for a key that stands there twice.
    """
    files = _files(path)
    samples: dict[str, _Sample] = {}
    for file in files:
        _index(file, samples)
    if not samples:
        raise DataError(path.name, "holds no sample; expected members such as 000001.jpg and 000001.txt")
    found = [spoken(_captions(sample)) for sample in samples.values()]
    unnamed = [file.name for file in files if split_in(file.stem) is None]
    notes = (f"{len(unnamed)} of {len(files)} files name no split and are in 'train'",) if unnamed else ()
    keys = [sample.key for sample in samples.values()]
    return Listing(
        name=path.name,
        layout=LAYOUT,
        keys=keys,
        splits=[sample.split for sample in samples.values()],
        captions=[captions for captions, _ in found],
        empty_captions=sum(empty for _, empty in found),
        frames=_Members([sample.picture for sample in samples.values()], keys),
        notes=notes,
    )


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*.tar") if file.is_file())
    return [path] if path.suffix.lower() == ".tar" and path.is_file() else []


def _index(file: Path, samples: dict[str, _Sample]) -> None:
    split, ours = split_in(file.stem) or "train", set[str]()
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                if member.isfile():
                    _note(file, member, split, samples, ours)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(file.name, f"is no whole, uncompressed tar file ({error})") from error


def _note(
    file: Path, member: tarfile.TarInfo, split: str, samples: dict[str, _Sample], ours: set[str]
) -> None:
    folder, _, name = member.name.rpartition("/")
    stem, _, extension = name.partition(".")
    key = f"{split}/{folder}/{stem}" if folder else f"{split}/{stem}"
    if key in samples and key not in ours:
        raise DataError(file.name, f"holds {key[:80]!r}, which an earlier file holds as well")
    ours.add(key)
    sample = samples.setdefault(key, _Sample(key, split))
    place = _Place(file, member.offset_data, member.size)
    if extension.lower() in _PICTURES:
        sample.picture = place
    elif extension.lower() in ("txt", "json"):
        sample.texts[extension.lower()] = place


def _captions(sample: _Sample) -> list[str]:
    for extension in ("txt", "json"):
        if (place := sample.texts.get(extension)) is not None:
            return _said(_text(place, f"{sample.key}.{extension}"), extension, place, sample.key)
    return []


def _said(text: str, extension: str, place: _Place, key: str) -> list[str]:
    if extension == "txt":
        return [text]
    try:
        value: Any = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(place.file.name, f"member {key[:80]}.json is no JSON ({error})") from error
    said = value.get(_JSON_CAPTION) if isinstance(value, dict) else None
    return [text for text in (said if isinstance(said, list) else [said]) if isinstance(text, str)]


def _text(place: _Place, member: str) -> str:
    if place.size > _MOST_TEXT:
        raise DataError(place.file.name, f"member {member[:80]} has {place.size} bytes; expected a caption")
    try:
        return _bytes(place).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"member {member[:80]} is no UTF-8 (byte {error.start}); expected UTF-8"
        raise DataError(place.file.name, problem) from error


def _bytes(place: _Place) -> bytes:
    with place.file.open("rb") as file:
        file.seek(place.offset)
        return file.read(place.size)
