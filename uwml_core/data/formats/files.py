"""Pictures that lie beside a list of their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_MOST_BYTES = 256 * 2**20


class PictureFiles:
    """Pictures in a folder by name; a name may not lead out of it.

    Args:
        folder: where they lie.
        names: file of each item, relative to the folder.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder, self._names = folder.resolve(), names

    def read(self, item: int) -> Sequence[bytes]:
        """Bytes of an item's picture.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if the name leads out of the folder, or the file is no picture's size.
        """
        path = inside(self._folder, self._names[item])
        # not a pipe or a device, which never end
        if not path.is_file():
            raise FileNotFoundError(self._names[item])
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"is larger than {_MOST_BYTES // 2**20} MiB; expected a picture")
        return [path.read_bytes()]


class FrameFolders:
    """Clips as folders of pictures, one folder each, of which some are taken at even distances.

    Args:
        folder: where the folders lie.
        names: folder of each item.
        count: frames to take; a clip that has fewer repeats some.
    """

    def __init__(self, folder: Path, names: Sequence[str], count: int) -> None:
        self._folder, self._names, self.count = folder.resolve(), names, count

    def read(self, item: int) -> Sequence[bytes]:
        """Bytes of the frames taken.

        Raises:
            FileNotFoundError: if there is no such folder, or no file in it.
            ValueError: if the name leads out of the folder.
        """
        paths = self.paths(item)
        if not paths:
            raise FileNotFoundError(self._names[item])
        chosen = [paths[(2 * k + 1) * len(paths) // (2 * self.count)] for k in range(self.count)]
        return [path.read_bytes() for path in chosen]

    def length(self, item: int) -> int:
        """How many different frames are taken of an item: fewer than ``count`` where it is short."""
        return min(len(self.paths(item)), self.count)

    def paths(self, item: int) -> list[Path]:
        """All frames of an item, in the order of their names; none where the folder is missing."""
        folder = inside(self._folder, self._names[item])
        return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def inside(folder: Path, name: str) -> Path:
    """The path of a name within a folder.

    Raises:
        ValueError: if it leads out of it.
    """
    path = folder / name
    if not name or "\0" in name or not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{name[:80]!r} does not lie in the data's folder")
    return path
