"""The JSON of Karpathy's splits: dataset_flickr8k.json, dataset_flickr30k.json, dataset_coco.json.

Reference: Karpathy and Fei-Fei, "Deep visual-semantic alignments for generating image descriptions", 2015.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uwml_core.data.errors import DataError
from uwml_core.data.formats.files import PictureFiles
from uwml_core.data.formats.listing import Listing, spoken
from uwml_core.data.formats.words import entry, listed, read_json

LAYOUT = "Karpathy JSON"
# COCO's images that are in neither of its own splits; the literature trains on them.
_REST = "restval"


def recognised(path: Path) -> bool:
    """Whether a path is a JSON whose top holds ``images``."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"images"' in file.read(4096)


def read(path: Path, pictures: Path | None = None) -> Listing:
    """Read images with all of their sentences; ``restval`` joins ``train``.

    Args:
        path: the JSON.
        pictures: folder of the pictures; the JSON's own when None.

    Raises:
        DataError: for the first entry that is not as it should be, by its number from 0.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(path.name, f"is {type(value).__name__}; expected an object with 'images'")
    images = listed(value.get("images"), path, "'images'")
    names = [_file(image, path, number) for number, image in enumerate(images)]
    _refuse_twice(names, path)
    found = [spoken(_sentences(image, path, number)) for number, image in enumerate(images)]
    splits = [entry(image, "split", str, path, number) for number, image in enumerate(images)]
    rest = splits.count(_REST)
    notes = (f"{rest} images of the split 'restval' join 'train', as is usual for COCO",) if rest else ()
    return Listing(
        name=path.name,
        layout=LAYOUT,
        keys=names,
        splits=["train" if split == _REST else split for split in splits],
        captions=[captions for captions, _ in found],
        empty_captions=sum(empty for _, empty in found),
        frames=PictureFiles(path.parent if pictures is None else pictures, names),
        notes=notes,
    )


def _file(image: dict[str, Any], path: Path, number: int) -> str:
    name = entry(image, "filename", str, path, number)
    folder = image.get("filepath", "")
    if not isinstance(folder, str):
        problem = f"is {type(folder).__name__}; expected a folder's name"
        raise DataError(path.name, problem, column="filepath", row=number)
    return f"{folder}/{name}" if folder else str(name)


def _sentences(image: dict[str, Any], path: Path, number: int) -> list[str]:
    sentences = listed(image.get("sentences"), path, f"'sentences' of image {number}")
    return [str(entry(sentence, "raw", str, path, number)) for sentence in sentences]


def _refuse_twice(names: list[str], path: Path) -> None:
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        if name in first:
            problem = f"is {name[:80]!r} as in row {first[name]}; expected each image once"
            raise DataError(path.name, problem, column="filename", row=number)
        first[name] = number
