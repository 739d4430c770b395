"""One file from a remote place to a local one: whole or not at all, and not twice."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from uwml_core.runlog.last_good import FAILURES

_CHUNK = 16 << 20
_THREADS = 8
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


@dataclass(frozen=True)
class RemoteFile:
    """A file as a listing shows it; ``mtime_ns`` is 0 where the place does not say."""

    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Copy:
    """A file to be copied.

    Attributes:
        source: path in the filesystem.
        target: where to.
        file: as it was listed.
    """

    source: str
    target: Path
    file: RemoteFile

    @property
    def at_hand(self) -> bool:
        """Whether the local file is the one that was listed: it carries that one's size and time."""
        try:
            stat = self.target.stat()
        except OSError:
            return False
        return (stat.st_size, stat.st_mtime_ns) == (self.file.size, self.file.mtime_ns)


def fetch_in_order(filesystem: fs.FileSystem, copies: Iterable[Copy]) -> Exception | None:
    """Fetch files side by side and put them into place one after another, up to the first that fails.

    So the ones that are there are the oldest ones, and rows are never missing in the middle.

    Returns:
        Why not all of them are there; None when they are.
    """
    problem: Exception | None = None
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="uwml-fetch") as pool:
        begun = [(copy, pool.submit(_try, filesystem, copy)) for copy in copies]
        for copy, future in begun:
            if problem is not None and future.cancel():
                continue
            result = future.result()
            if isinstance(result, Path):
                _settle(result, copy, keep=problem is None)
            else:
                problem = problem or result
    return problem


def _try(filesystem: fs.FileSystem, copy: Copy) -> Path | Exception:
    try:
        return _download(filesystem, copy)
    except FAILURES as error:
        return error


def _download(filesystem: fs.FileSystem, copy: Copy) -> Path:
    """The temporary file with the content, or the target itself where that has it already."""
    with filesystem.open_input_file(copy.source) as stream:
        etag = _etag(stream)
        if etag is not None and etag == _digest(copy.target):
            return copy.target
        copy.target.parent.mkdir(parents=True, exist_ok=True)
        temporary = copy.target.with_name(f".{copy.target.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            digest, size = _write(stream, temporary)
            # a file that was replaced between two requests is neither the old one nor the new one
            if etag != digest and not _unchanged(filesystem, copy, size):
                raise OSError(f"{copy.target.name} changed while it was read")
        except BaseException:
            _remove(temporary)
            raise
    return temporary


def _etag(stream: pa.NativeFile) -> str | None:
    """MD5 of the content, where the store says so: not of what was uploaded in several pieces."""
    found = {_text(name).lower(): _text(value) for name, value in (stream.metadata() or {}).items()}
    match = _MD5.fullmatch(found.get("etag", ""))
    return match[1] if match else None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, _md5).hexdigest()
    except OSError:
        return None


def _md5() -> hashlib._Hash:
    return hashlib.md5(usedforsecurity=False)


def _write(stream: pa.NativeFile, path: Path) -> tuple[str, int]:
    digest, size = _md5(), 0
    with path.open("wb") as sink:
        for chunk in _chunks(stream):
            digest.update(chunk)
            size += sink.write(chunk)
    return digest.hexdigest(), size


def _chunks(stream: pa.NativeFile) -> Iterator[bytes]:
    # each read is a request
    left = stream.size()
    while left > 0 and (chunk := stream.read(min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk


def _unchanged(filesystem: fs.FileSystem, copy: Copy, size: int) -> bool:
    info = filesystem.get_file_info(copy.source)
    return info.size == size and (info.mtime_ns or 0) == copy.file.mtime_ns


def _settle(source: Path, copy: Copy, *, keep: bool) -> None:
    if source == copy.target:
        _stamp(source, copy.file)
    elif keep:
        _stamp(source, copy.file)
        os.replace(source, copy.target)
    else:
        _remove(source)


def _stamp(path: Path, file: RemoteFile) -> None:
    os.utime(path, ns=(time.time_ns(), file.mtime_ns))


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
