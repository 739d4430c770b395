"""A logs folder in object storage, mirrored file by file, on demand, in the user's cache folder.

Everything that reads runs reads the mirror. A file that is there with the size and the time that the listing
shows is never fetched again, also by another process; one with another time but the same content, which
the ETag tells, neither.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from uwml_core.runlog.cache_folder import trimmed_folder
from uwml_core.runlog.fetching import Copy, RemoteFile, fetch_in_order
from uwml_core.runlog.last_good import LastGood
from uwml_core.runlog.listing import HealthIssue
from uwml_core.runlog.location import RemotePlace
from uwml_core.runlog.runfile import RUN_FILE

_RELIST_S = 1.0
_TRIES = 3
_LONGEST_NAME = 200
# stores show whole seconds, and clocks differ: a file this young may change without changing its time
_YOUNG_NS = 60 * 10**9


@dataclass(frozen=True)
class Seen:
    """What a listing showed: files and folders that have a usable name, and names that have none."""

    files: Mapping[str, RemoteFile] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()

    @cached_property
    def by_folder(self) -> Mapping[str, Sequence[str]]:
        """Files of each folder, those whose name begins with a dot left out."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in self.files:
            folder, _, base = name.rpartition("/")
            if not base.startswith("."):
                found[folder].append(name)
        return found

    def issues(self) -> list[HealthIssue]:
        """The names that are left out, control characters and the like written as escapes."""
        names = [ascii(name[:_LONGEST_NAME]) for name in self.strange]
        return [
            HealthIssue(name, "foreign", f"{name} is no part of the run log and is skipped") for name in names
        ]


def safe_name(name: str) -> bool:
    """Whether a key below a folder may become a path: no ``..``, nothing absolute or invisible."""
    parts = name.split("/")
    return name.isprintable() and all(
        part not in ("", ".", "..")
        and "\\" not in part
        and len(part.encode("utf-8", "replace")) <= _LONGEST_NAME
        for part in parts
    )


class RemoteFolder:
    """One folder of the mirror, a run's or ``_items``.

    Args:
        mirror: what it belongs to.
        name: of the folder.
    """

    def __init__(self, mirror: Mirror, name: str) -> None:
        self._mirror = mirror
        self.name = name
        self.path = mirror.path / name
        self.listing = LastGood(lambda: mirror.look(name, recursive=True), Seen())
        self._brought: dict[str, Seen] = {}
        self._failed: dict[str, str] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    @property
    def shown(self) -> str:
        """The place, to be shown."""
        return f"{self._mirror.shown}/{self.name}"

    def seen(self, max_age_s: float = _RELIST_S) -> Seen:
        """Files of the folder; the newest listing that worked."""
        return self.listing.get(max_age_s)

    def bring(self, key: str, choose: Callable[[Seen], Sequence[str]], max_age_s: float = _RELIST_S) -> None:
        """Have the chosen files at hand; what is out of reach stays as it was.

        Args:
            key: names the choice.
            choose: names of files among those of a listing.
            max_age_s: how old the listing may be.
        """
        with self._locks[key]:
            for _ in range(_TRIES):
                seen = self.seen(max_age_s)
                if self._brought.get(key) is seen:
                    return
                problem = self._fetch(key, seen, choose(seen))
                # marked also after a failure: the next try comes with the next listing
                self._brought[key] = seen
                if not isinstance(problem, FileNotFoundError):
                    return
                # a compaction took it away between listing and fetching
                self.listing.expire()

    def _fetch(self, key: str, seen: Seen, names: Sequence[str]) -> Exception | None:
        before = self._brought.get(key)
        grown = before is not None and before.files != seen.files
        copies = [self._copy(name, seen) for name in names]
        wanted = [copy for copy in copies if not copy.at_hand or (_changes(copy) and (grown or _young(copy)))]
        problem = fetch_in_order(self._mirror.filesystem, wanted) if wanted else None
        self._failed.pop(key, None)
        if problem is not None:
            self._failed[key] = str(problem).strip().partition("\n")[0]
        return problem

    def _copy(self, name: str, seen: Seen) -> Copy:
        return Copy(f"{self._mirror.base}/{self.name}/{name}", self.path / name, seen.files[name])

    def tidy(self, key: str, folder: str) -> None:
        """Remove from the mirror what the newest listing no longer shows, once all it shows is at hand."""
        with self._locks[key]:
            seen = self._brought.get(key)
            if (
                seen is None
                or seen is not self.listing.value
                or key in self._failed
                or not self.listing.read_at
            ):
                return
            for path in (self.path / folder).glob("[!.]*.*"):
                if f"{folder}/{path.name}" not in seen.files:
                    with contextlib.suppress(OSError):
                        path.unlink()

    def issues(self) -> list[HealthIssue]:
        """What was out of reach, and names that were left out."""
        # a failure of long ago that nobody asked about since is none
        failed = [
            text for key, text in [*self._failed.items()] if self._brought.get(key) is self.listing.value
        ]
        problem = self.listing.problem or next(iter(failed), "")
        return [*remote_issue(self.shown, self.listing, problem), *self.listing.value.issues()]


def remote_issue(shown: str, listing: LastGood[Seen], problem: str) -> list[HealthIssue]:
    """The issue of a place that is out of reach; none where there is no problem."""
    if not problem:
        return []
    if listing.read_at is None:
        return [HealthIssue(shown, "remote", f"{shown} could not be read ({problem})")]
    since = f"{listing.read_at:%Y-%m-%d %H:%M:%S} UTC"
    message = f"{shown} was not refreshed since {since} ({problem}); what was read before is shown"
    return [HealthIssue(shown, "remote", message, since)]


def _changes(copy: Copy) -> bool:
    return copy.target.name == RUN_FILE


def _young(copy: Copy) -> bool:
    return copy.file.mtime_ns == 0 or time.time_ns() - copy.file.mtime_ns < _YOUNG_NS


class Mirror:
    """A remote logs folder and its mirror.

    Args:
        filesystem: where it lies.
        base: its path there.
        shown: the place, to be shown.
        path: folder of the mirror.
    """

    def __init__(self, filesystem: fs.FileSystem, base: str, shown: str, path: Path) -> None:
        self.filesystem = filesystem
        self.base = base.rstrip("/")
        self.shown = shown
        self.path = path
        self.listing = LastGood(lambda: self.look("", recursive=False), Seen())
        self._folders: dict[str, RemoteFolder] = {}
        self._lock = threading.Lock()

    def folder(self, name: str) -> RemoteFolder:
        """A folder of the root."""
        with self._lock:
            return self._folders.setdefault(name, RemoteFolder(self, name))

    def names(self) -> list[str]:
        """Folders that may be runs."""
        return [name for name in self.listing.get(_RELIST_S).folders if name[0] not in "._"]

    def look(self, name: str, *, recursive: bool) -> Seen:
        """List a folder of the root.

        Raises:
            OSError: if the place is out of reach.
        """
        top = f"{self.base}/{name}" if name else self.base
        infos = self.filesystem.get_file_info(fs.FileSelector(top, allow_not_found=True, recursive=recursive))
        named = {info.path[len(top) :].removeprefix("/"): info for info in infos}
        usable = {name: info for name, info in sorted(named.items()) if safe_name(name)}
        files = {
            name: RemoteFile(info.size, info.mtime_ns or 0)
            for name, info in usable.items()
            if info.type == fs.FileType.File
        }
        folders = tuple(name for name, info in usable.items() if info.type == fs.FileType.Directory)
        # of a key with an unusable folder in it the folder need not be named, too
        shown = fs.FileType.File if recursive else fs.FileType.Directory
        strange = [name for name in named.keys() - usable.keys() if name and named[name].type == shown]
        return Seen(files, folders, tuple(sorted(strange)))

    def issues(self) -> list[HealthIssue]:
        """What is wrong with the root itself."""
        return [*remote_issue(self.shown, self.listing, self.listing.problem), *self.listing.value.issues()]


@lru_cache(maxsize=64)
def mirror_of(place: RemotePlace) -> Mirror:
    """The mirror of a remote logs folder; one per place and process.

    Raises:
        ValueError: if the URL is none that pyarrow knows.
        OSError: if the cache folder cannot be made.
    """
    try:
        filesystem, base = fs.FileSystem.from_uri(place.url)
    except pa.ArrowException as error:
        raise ValueError(f"{place.shown} cannot be opened ({error})") from error
    return Mirror(
        filesystem, base, place.shown, trimmed_folder(place.url, Path(place.path).name or place.host)
    )


_given: list[tuple[Mirror, tempfile.TemporaryDirectory[str]]] = []


def mirror_on(filesystem: fs.FileSystem, base: str) -> Mirror:
    """The mirror of a path in a filesystem object, gone with the process: an object has no lasting name."""
    for mirror, _ in _given:
        if mirror.base == base.rstrip("/") and mirror.filesystem.equals(filesystem):
            return mirror
    folder = tempfile.TemporaryDirectory(prefix="uwml-", ignore_cleanup_errors=True)
    mirror = Mirror(filesystem, base, f"{filesystem.type_name}:{base.rstrip('/')}", Path(folder.name))
    _given.append((mirror, folder))
    return mirror
