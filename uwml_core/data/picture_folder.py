"""Thumbnails of the pictures in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from uwml_core.data.errors import DataError
from uwml_core.data.formats.files import inside
from uwml_core.data.pictures import thumbnail

_THREADS = 2
_MOST_BYTES = 64 * 2**20


def read_thumbnails(folder: Path, names: Sequence[str] | None, images: int) -> list[bytes | None]:
    """Thumbnail of each image.

    Args:
        folder: where the pictures lie.
        names: file of each image, relative to the folder, empty where it has none; None looks for files
            that are called by the number of the image row, such as ``0.jpg`` and ``000017.png``.
        images: how many images there are.

    Returns:
        WebP of each image; None where the file is missing or cannot be decoded.

    Raises:
        DataError: if the folder does not exist, holds no such file, or a name leads out of it.
    """
    if not folder.is_dir():
        raise DataError(str(folder), "is no folder; expected one with the pictures")
    paths = _numbered(folder, images) if names is None else [_within(folder, name) for name in names]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(_thumbnail, paths))


def _numbered(folder: Path, images: int) -> list[Path | None]:
    found: list[Path | None] = [None] * images
    for path in sorted(folder.iterdir()):
        row = (
            int(path.stem) if path.stem.isascii() and path.stem.isdigit() and len(path.stem) < 19 else images
        )
        if row < images:
            found[row] = found[row] or path
    if not any(found):
        problem = (
            f"has no file such as 0.jpg; expected names 0 to {images - 1}, or a column 'picture' in --pairs"
        )
        raise DataError(str(folder), problem)
    return found


def _within(folder: Path, name: str) -> Path | None:
    if not name:
        return None
    try:
        return inside(folder, name)
    except ValueError as error:
        problem = f"does not hold {name[:80]!r}; expected names of files in the folder"
        raise DataError(str(folder), problem) from error


def _thumbnail(path: Path | None) -> bytes | None:
    try:
        # not a pipe or a device, which never end
        if path is None or not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return thumbnail([path.read_bytes()])
    except (OSError, ValueError):
        return None
