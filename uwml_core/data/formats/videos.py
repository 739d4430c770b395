"""Clips as video files, of which some frames are taken at even distances and kept in the cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from uwml_core.data.errors import DataError
from uwml_core.data.formats.files import inside
from uwml_core.runlog.cache_folder import cache_folder

SUFFIXES = (".mp4", ".webm", ".mkv", ".mov", ".avi")
_FOLDER = "frames"
# raised when the way of taking frames changes
_VERSION = 1
# enough for encoders of 224 px
_LONGEST_SIDE = 256
_QUALITY = 90


class VideoFiles:
    """Video files in a folder by name; a name may not lead out of it.

    A file is decoded once; its frames then lie in the cache folder, as JPEG of at most 256 px.

    Args:
        folder: where they lie.
        names: file of each item, relative to the folder; None where there is none.
        count: frames to take; a video that has fewer repeats some.

    Raises:
        DataError: if the library that decodes videos is not installed.
    """

    def __init__(self, folder: Path, names: Sequence[str | None], count: int) -> None:
        if find_spec("av") is None:
            problem = 'holds videos; decoding them takes PyAV: pip install "uwml-lens[video]"'
            raise DataError(str(folder), problem)
        self._folder, self._names, self.count = folder.resolve(), names, count

    def read(self, item: int) -> Sequence[bytes]:
        """Bytes of the frames taken.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if the name leads out of the folder, or the file is no whole video.
        """
        frames = self._taken(item)
        return [frames[(2 * k + 1) * len(frames) // (2 * self.count)] for k in range(self.count)]

    def length(self, item: int) -> int:
        """How many different frames are taken of an item: fewer than ``count`` where it is short."""
        return len(self._taken(item))

    def _taken(self, item: int) -> list[bytes]:
        name = self._names[item]
        path = None if name is None else inside(self._folder, name)
        if path is None or not path.is_file():
            raise FileNotFoundError(name or f"clip {item}")
        return _from_cache(path, self.count)


def is_video(name: str) -> bool:
    """Whether a name is that of a video file.

    Example:
        >>> is_video("clips/video7.MP4"), is_video("video7")
        (True, False)
    """
    return name.lower().endswith(SUFFIXES)


def video_names(folder: Path) -> dict[str, str]:
    """Video files anywhere below a folder, ``{name without suffix: name relative to it}``."""
    found = sorted(path for path in folder.rglob("*") if is_video(path.name))
    return {path.stem: path.relative_to(folder).as_posix() for path in found}


def _from_cache(path: Path, count: int) -> list[bytes]:
    stat = path.stat()
    key = f"{_VERSION}:{count}:{stat.st_size}:{stat.st_mtime_ns}:{path}"
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    kept = cache_folder() / _FOLDER / digest[:2] / f"{digest}.zip"
    # what is torn or gone is made anew
    with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(kept) as archive:
        return [archive.read(name) for name in archive.namelist()]
    frames = _decoded(path, count)
    # a full disk costs time, nothing else
    with contextlib.suppress(OSError):
        _keep(kept, frames)
    return frames


def _keep(kept: Path, frames: Sequence[bytes]) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_name(f".{kept.name}-{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(temporary, "w") as archive:
            for number, data in enumerate(frames):
                archive.writestr(f"{number:04}.jpg", data)
        os.replace(temporary, kept)
    finally:
        temporary.unlink(missing_ok=True)


def _decoded(path: Path, count: int) -> list[bytes]:
    """At most ``count`` frames at even distances, fewer where the video has fewer."""
    import av

    try:
        with av.open(str(path)) as container:
            total = sum(packet.size > 0 for packet in container.demux(container.streams.video[0]))
        wanted = {(2 * k + 1) * total // (2 * count) for k in range(count)}
        with av.open(str(path)) as container:
            # a container may promise more frames than can be decoded
            frames = [_jpeg(frame) for frame in _chosen(container, wanted)]
    except (av.error.FFmpegError, IndexError) as error:
        said = str(error).partition(":")[0]
        raise ValueError(f"is no whole video ({said}); expected {', '.join(SUFFIXES)}") from error
    if not frames:
        raise ValueError("is a video without frames")
    return frames


def _chosen(container: Any, wanted: set[int]) -> Iterator[Any]:
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    return (frame for number, frame in enumerate(container.decode(stream)) if number in wanted)


def _jpeg(frame: Any) -> bytes:
    image, buffer = frame.to_image(), io.BytesIO()
    image.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    image.save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()
