"""The folders of SCAN and VSE++: {train,dev,test,testall}_ims.npy, _caps.txt and _ids.txt.

Reference: Lee et al., "Stacked cross attention for image-text matching", 2018, data/f30k_precomp.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uwml_core.data.arrays import open_floats
from uwml_core.data.errors import DataError
from uwml_core.data.features import FeatureRows
from uwml_core.data.formats.listing import Listing, spoken
from uwml_core.data.formats.splits import split_of
from uwml_core.data.formats.words import read_lines

LAYOUT = "SCAN precomp"
# What the files call a part.
PARTS = ("train", "dev", "test", "testall")
# Images that are compared to see whether they are repeated: all would be gigabytes.
_LOOKED_AT = 64

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    values: npt.NDArray[np.floating[Any]]
    rows: Ints
    keys: list[str]
    captions: list[list[str]]
    empty: int
    notes: list[str]


def recognised(path: Path) -> bool:
    """Whether a path is a folder with at least one ``*_ims.npy`` beside its captions."""
    return path.is_dir() and any((path / f"{part}_ims.npy").is_file() for part in PARTS)


def read(path: Path, pictures: Path | None = None) -> Listing:
    """Read all parts; the images stay on disk.

    ``test`` is left out where there is ``testall``, which contains it.

    Args:
        path: the folder.
        pictures: not used: features stand for the pictures.

    Raises:
        DataError: for counts that do not fit, and files that are no such arrays or texts.
    """
    names = [part for part in PARTS if (path / f"{part}_ims.npy").is_file()]
    left = ["test"] if {"test", "testall"} <= set(names) else []
    parts = {name: _part(path, name) for name in names if name not in left}
    starts = np.cumsum([0, *(len(part.values) for part in parts.values())])
    rows = [part.rows + start for part, start in zip(parts.values(), starts, strict=False)]
    try:
        features = FeatureRows([part.values for part in parts.values()], np.concatenate(rows))
    except ValueError as error:
        raise DataError(path.name, str(error)) from error
    notes = [note for part in parts.values() for note in part.notes]
    if features.regions > 1:
        notes.append(f"the {features.regions} regions of an image are averaged to {features.size} numbers")
    notes += [f"{name} is left out: testall contains it" for name in left]
    return Listing(
        name=path.name,
        layout=LAYOUT,
        keys=[f"{name}/{key}" for name, part in parts.items() for key in part.keys],
        splits=[split_of(name) for name, part in parts.items() for _ in part.keys],
        captions=[texts for part in parts.values() for texts in part.captions],
        empty_captions=sum(part.empty for part in parts.values()),
        features=features,
        notes=tuple(notes),
    )


def _part(path: Path, name: str) -> _Part:
    values = open_floats(path / f"{name}_ims.npy")
    file = path / f"{name}_caps.txt"
    lines = read_lines(file)
    images, each, notes = len(values), _captions_each(len(values), lines, file), []
    step = 1
    if each == 1 and (step := _repeats(values)) > 1:
        each = step
        notes.append(
            f"{name}: im_div 1, the {images} image rows repeat {images // step} images {step} times "
            f"({min(_LOOKED_AT, images // step)} of them compared)"
        )
    else:
        notes.append(f"{name}: im_div {each}, {images} images for {images * each} captions")
    rows = np.arange(0, images, step, dtype=np.int64)
    texts = lines[: len(rows) * each]
    found = [spoken(texts[k * each : (k + 1) * each]) for k in range(len(rows))]
    return _Part(
        values=values,
        rows=rows,
        keys=_ids(path / f"{name}_ids.txt", images, each, step, notes),
        captions=[captions for captions, _ in found],
        empty=sum(empty for _, empty in found),
        notes=notes,
    )


def _captions_each(images: int, lines: list[str], file: Path) -> int:
    """How many captions an image row has; blank lines at the end may be surplus."""
    count = len(lines)
    while count % images and count and not lines[count - 1].strip():
        count -= 1
    if count == 0 or count % images:
        problem = f"has {len(lines)} captions for {images} image rows; expected as many or a multiple"
        raise DataError(file.name, problem)
    return count // images


def _repeats(values: npt.NDArray[np.floating[Any]]) -> int:
    """How often each image stands there in a row: 5 in folders that repeat them, else 1."""
    if len(values) % 5 or len(values) == 0:
        return 1
    groups = np.unique(np.linspace(0, len(values) // 5 - 1, _LOOKED_AT).astype(np.int64))
    same = all(np.array_equal(values[5 * k], values[5 * k + j]) for k in groups for j in range(1, 5))
    return 5 if same else 1


def _ids(file: Path, images: int, each: int, step: int, notes: list[str]) -> list[str]:
    """Names of the images, one per image or one per caption."""
    count = images // step
    if not file.is_file():
        return [str(k) for k in range(count)]
    lines = [line.strip() for line in read_lines(file)]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) not in (count, count * each):
        problem = f"has {len(lines)} ids; expected {count}, one per image, or {count * each}, one per caption"
        raise DataError(file.name, problem)
    ids = lines[:: len(lines) // count]
    if len(set(ids)) < count:
        notes.append(f"{file.name}: {count - len(set(ids))} ids stand there more than once")
        ids = [f"{line}#{k}" for k, line in enumerate(ids)]
    return ids
