"""Readers of the layouts that data sets come in; each gives a ``Listing``, without decoding a picture."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from uwml_core.data.errors import DataError
from uwml_core.data.formats import karpathy, msrvtt, precomp, saved_dataset, shards, table
from uwml_core.data.formats.listing import Clips, Frames, Listing

__all__ = ["LAYOUTS", "Clips", "Frames", "Listing", "read_listing"]

# In the order of asking: a folder of features may hold a csv, a folder of clips a csv of its splits.
_READERS: tuple[ModuleType, ...] = (saved_dataset, precomp, msrvtt, karpathy, shards, table)

LAYOUTS: tuple[str, ...] = tuple(reader.LAYOUT for reader in _READERS)


def read_listing(path: str | Path, pictures: str | Path | None = None) -> Listing:
    """Recognise a data set's layout and read what it holds.

    Args:
        path: file or folder.
        pictures: folder of the pictures, where they do not lie beside the list.

    Raises:
        DataError: if the layout is none of ``LAYOUTS``, or for the first thing that is wrong.
    """
    place = Path(path).expanduser()
    if not place.exists():
        raise DataError(str(path), "does not exist; expected a file or folder of a data set")
    folder = None if pictures is None else Path(pictures).expanduser()
    if folder is not None and not folder.is_dir():
        raise DataError(str(pictures), "is no folder; expected the folder of the pictures")
    for reader in _READERS:
        if reader.recognised(place):
            listing: Listing = reader.read(place, folder)
            return listing
    raise DataError(str(path), f"has none of the layouts known: {', '.join(LAYOUTS)}")
