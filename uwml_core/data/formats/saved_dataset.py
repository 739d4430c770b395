"""Folders that ``datasets.Dataset.save_to_disk`` and ``DatasetDict.save_to_disk`` leave.

Read as what they are, Arrow streams: the library that wrote them is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from uwml_core.data.errors import DataError
from uwml_core.data.formats.files import inside
from uwml_core.data.formats.listing import Listing, spoken
from uwml_core.data.formats.splits import split_of
from uwml_core.data.formats.words import read_json

LAYOUT = "saved Hugging Face dataset"
_IMAGES = ("image", "img", "picture", "jpg", "png")
_CAPTIONS = ("caption", "captions", "sentences", "text", "sentence")
_KEYS = ("filename", "img_id", "imgid", "image_id", "id")
_STATE, _DICT = "state.json", "dataset_dict.json"


class _Pictures:
    """Pictures in a column of ``bytes`` and ``path``."""

    def __init__(self, column: pa.ChunkedArray, folder: Path) -> None:
        self._column, self._folder = column, folder

    def read(self, item: int) -> Sequence[bytes]:
        """Bytes of an item's picture.

        Raises:
            FileNotFoundError: if there is neither.
            ValueError: if the path leads out of the folder.
        """
        value = self._column[item].as_py()
        data = value.get("bytes") if isinstance(value, dict) else value
        if data:
            return [data]
        name = value.get("path") if isinstance(value, dict) else None
        if not name:
            raise FileNotFoundError("neither bytes nor a path")
        path = inside(self._folder, name)
        if not path.is_file():
            raise FileNotFoundError(name)
        return [path.read_bytes()]


def recognised(path: Path) -> bool:
    """Whether a path is such a folder."""
    return path.is_dir() and any((path / name).is_file() for name in (_STATE, _DICT))


def read(path: Path, pictures: Path | None = None) -> Listing:
    """Read the rows; a column ``split`` names the part of each, else the folder does.

    Args:
        path: the folder.
        pictures: folder of pictures that are stored by path; the data set's own when None.

    Raises:
        DataError: if a file is missing or broken, or there is no column of pictures or captions.
    """
    parts = _parts(path)
    tables = {name: _table(folder) for name, folder in parts.items()}
    try:
        table = pa.concat_tables(tables.values(), promote_options="default")
    except pa.ArrowInvalid as error:
        raise DataError(path.name, f"has parts of different columns ({error})") from error
    folders = [name for name, part in tables.items() for _ in range(part.num_rows)]
    names = table.column_names
    image, texts = _column(path, names, _IMAGES, "pictures"), _column(path, names, _CAPTIONS, "captions")
    stored = table["split"].to_pylist() if "split" in names else folders
    found = [spoken(_said(value)) for value in table[texts].to_pylist()]
    unnamed = "split" not in names and len(parts) == 1
    return Listing(
        name=path.name,
        layout=LAYOUT,
        keys=_item_keys(table, folders),
        splits=["train" if split == "restval" else split_of(str(split)) for split in stored],
        captions=[captions for captions, _ in found],
        empty_captions=sum(empty for _, empty in found),
        frames=_Pictures(table[image], path if pictures is None else pictures),
        notes=("names no split: all items are in 'train'",) if unnamed else (),
    )


def _parts(path: Path) -> dict[str, Path]:
    if not (path / _DICT).is_file():
        return {"train": path}
    named = read_json(path / _DICT)
    splits = named.get("splits") if isinstance(named, dict) else None
    if not isinstance(splits, list) or not splits or not all(isinstance(name, str) for name in splits):
        raise DataError(_DICT, "has no list of splits")
    return {name: _folder(path, name) for name in splits}


def _folder(path: Path, name: str) -> Path:
    try:
        return inside(path, name)
    except ValueError as error:
        raise DataError(_DICT, str(error)) from error


def _table(folder: Path) -> pa.Table:
    state = read_json(folder / _STATE)
    if not isinstance(state, dict) or not isinstance(state.get("_data_files"), list):
        raise DataError(f"{folder.name}/{_STATE}", "names no data files")
    if state.get("_indices_data_files"):
        problem = "has rows in another order than its files; call flatten_indices() before save_to_disk()"
        raise DataError(folder.name, problem)
    return pa.concat_tables([_stream(folder, data) for data in state["_data_files"]])


def _stream(folder: Path, data: Any) -> pa.Table:
    name = data.get("filename") if isinstance(data, dict) else None
    try:
        path = inside(folder, str(name or ""))
        # memory-mapped: pictures are read when they are asked for
        with pa.ipc.open_stream(pa.memory_map(str(path))) as stream:
            return stream.read_all()
    except (ValueError, OSError) as error:
        raise DataError(f"{folder.name}/{name}", f"cannot be read as an Arrow stream ({error})") from error


def _column(path: Path, names: Sequence[str], known: Sequence[str], what: str) -> str:
    for name in known:
        if name in names:
            return name
    raise DataError(
        path.name, f"has no column of {what}; expected one of {', '.join(known)}; has {', '.join(names)}"
    )


def _said(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    raw = [entry.get("raw") if isinstance(entry, dict) else entry for entry in values]
    return [text for text in raw if isinstance(text, str)]


def _item_keys(table: pa.Table, folders: Sequence[str]) -> list[str]:
    for name in _KEYS:
        if name in table.column_names:
            keys = [str(value) for value in table[name].to_pylist()]
            if len(set(keys)) == len(keys):
                return keys
    return [f"{folder}/{row}" for row, folder in enumerate(folders)]
