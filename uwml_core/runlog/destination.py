"""A logs folder in object storage, or in another file system, that files are put into."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from uwml_core.runlog.location import Place, is_remote, parse_remote
from uwml_core.runlog.runfile import RUN_FILE

# here an object is there as a whole once its stream is closed, and not before
_OBJECT_STORES = frozenset({"s3", "gcs", "abfs"})
_CHUNK = 8 << 20
# a small file in one request instead of the three of an upload in pieces
_AT_ONCE = "allow_delayed_open=true"


@dataclass(frozen=True)
class Destination:
    """A logs folder that files are put into, each of them whole or not at all.

    Attributes:
        filesystem: where it lies.
        base: its path there.
        shown: the place, to be shown.
    """

    filesystem: fs.FileSystem
    base: str
    shown: str

    def files(self, folder: str) -> dict[str, int]:
        """Size of every file below a folder, by its path from there; nothing where there is no such folder.

        Raises:
            OSError: if the place is out of reach; so for the other methods.
        """
        top = f"{self.base}/{folder}"
        infos = self.filesystem.get_file_info(fs.FileSelector(top, allow_not_found=True, recursive=True))
        return {
            info.path[len(top) :].removeprefix("/"): info.size
            for info in infos
            if info.type == fs.FileType.File
        }

    def put(self, name: str, content: bytes | Path) -> None:
        """Put a file's content in place; a reader sees the old one until it is there."""
        target = f"{self.base}/{name}"
        if self.filesystem.type_name in _OBJECT_STORES:
            self._write(target, content)
            return
        folder, _, base = target.rpartition("/")
        self.filesystem.create_dir(folder, recursive=True)
        temporary = f"{folder}/.{base}.tmp"
        self._write(temporary, content)
        self.filesystem.move(temporary, target)

    def _write(self, path: str, content: bytes | Path) -> None:
        if isinstance(content, bytes):
            with self.filesystem.open_output_stream(path) as sink:
                sink.write(content)
            return
        # the file first: where a compaction has just taken it away, nothing is begun
        with content.open("rb") as source, self.filesystem.open_output_stream(path) as sink:
            while chunk := source.read(_CHUNK):
                sink.write(chunk)

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone already is no error."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(f"{self.base}/{name}")

    def run_json(self, run_id: str) -> dict[str, Any] | None:
        """What the run.json of a run says there; None where there is none.

        Raises:
            ValueError: if it is no run.json.
        """
        try:
            with self.filesystem.open_input_stream(f"{self.base}/{run_id}/{RUN_FILE}") as stream:
                content = json.loads(stream.read())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"{self.shown}/{run_id}/{RUN_FILE} cannot be read ({error})") from error
        if not isinstance(content, dict):
            raise ValueError(f"{self.shown}/{run_id}/{RUN_FILE} is no run.json")
        return content


def reached(place: Place) -> Destination:
    """As ``destination``, of a place that has answered.

    Raises:
        ValueError: as there, and if it does not answer or there is no such bucket.
    """
    to = destination(place)
    bucket = to.base.partition("/")[0] if to.filesystem.type_name in _OBJECT_STORES else to.base
    try:
        info = to.filesystem.get_file_info(bucket)
    except OSError as error:
        raise ValueError(f"{to.shown} cannot be reached ({error})") from error
    if to.filesystem.type_name in _OBJECT_STORES and info.type == fs.FileType.NotFound:
        raise ValueError(f"{to.shown} cannot be reached (there is no bucket {bucket!r})")
    return to


def destination(place: Place) -> Destination:
    """The logs folder that a URL names, ``s3://bucket/logs`` or any that pyarrow knows.

    Credentials come from the environment. Nothing is sent yet.

    Raises:
        ValueError: if it is no URL, holds credentials, or is none that pyarrow knows.

    Example:
        >>> destination("logs")
        Traceback (most recent call last):
        ValueError: 'logs' is no URL of a place to copy to; expected s3://bucket/logs or the like
    """
    if not is_remote(place):
        raise ValueError(
            f"{str(place)!r} is no URL of a place to copy to; expected s3://bucket/logs or the like"
        )
    parsed = parse_remote(str(place))
    url = parsed.url
    if parsed.scheme == "s3":
        url += f"{'&' if parsed.query else '?'}{_AT_ONCE}"
    try:
        filesystem, base = fs.FileSystem.from_uri(url)
    except pa.ArrowException as error:
        raise ValueError(f"{parsed.shown} cannot be opened ({error})") from error
    return Destination(filesystem, base.rstrip("/"), parsed.shown)
