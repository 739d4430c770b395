"""A copy of a run in object storage that grows with the run and is a run at every moment."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from uwml_core.runlog.bundle import NOTES_FOLDER
from uwml_core.runlog.destination import Destination
from uwml_core.runlog.info import RunInfo
from uwml_core.runlog.items import ITEMS_FOLDER, items_path
from uwml_core.runlog.listing import Part, list_table, without_covered
from uwml_core.runlog.parts import parse_part_name
from uwml_core.runlog.runfile import CLOSED_STATUSES, RUN_FILE, RunFile, RunInUseError, RunLock
from uwml_core.runlog.schema import PROJECTIONS, TABLES

COPY_LOCK = "copy.lock"
_TRIES = 5
# Listed in this order and put in the opposite one: what is listed first needs what is listed later.
_ORDER = ("rollups/margins", "rollups/items", "steps", "pairs")
_WHOLE_FILES = (PROJECTIONS.name, NOTES_FOLDER)

_Stamp = tuple[int, int]


class CopyRefused(ValueError):
    """Something else lies where the copy was to be."""


class RunCopy:
    """Puts what is new of a run into a remote logs folder.

    The parts are never changed, so a copy that is broken off is continued and what is there is a run: parts
    come before the run.json that calls the run finished, and those that a compaction has joined go once the
    wider file is there. Nothing else is removed, also not where the run's own folder has vanished.

    A reader of the copy sees the run running as long as this goes on: the heartbeat is copied, too. Where
    another heartbeat than the last one put is found there, somebody else writes, and it ends.

    Args:
        run: the run's folder on this machine.
        to: the logs folder that it is copied into.

    Raises:
        RunInUseError: if the folder is being copied already.
        ValueError: if it is no run of this version.
    """

    def __init__(self, run: Path, to: Destination) -> None:
        self._folder, self._to = run, to
        RunFile.load(run)
        self._lock: RunLock | None = None
        try:
            # a folder that may not be written to is not written to by a training either
            with contextlib.suppress(OSError):
                self._lock = RunLock(run, COPY_LOCK)
        except RunInUseError as error:
            raise RunInUseError(f"run {run.name!r} is being copied by another process") from error
        self._sent: dict[str, _Stamp] = {}
        # run.json as it was put last
        self._described: dict[str, Any] | None = None

    @property
    def shown(self) -> str:
        """Where the copy lies, to be shown."""
        return f"{self._to.shown}/{self._folder.name}"

    def close(self) -> None:
        """Let others copy the run; a second call does nothing."""
        if self._lock is not None:
            self._lock.release()

    def bring_up(self) -> int:
        """Put what has come since the last time; returns the number of files.

        Raises:
            OSError: if the place cannot be reached or written; calling again goes on.
            RunInUseError: if somebody else writes there.
            CopyRefused: if another run of this name lies there, or this one was continued there.
            ValueError: if a run.json, here or there, cannot be read.
        """
        for _ in range(_TRIES - 1):
            try:
                return self._bring_up()
            except FileNotFoundError:
                # a compaction took it away between listing and reading; that of the place is no such error
                continue
        return self._bring_up()

    def _bring_up(self) -> int:
        content, files = self._look()
        self._check(content)
        new = {name: stamp for name, stamp in files.items() if self._sent.get(name) != stamp}
        if self._described is None or self._described["segments"] != content["segments"]:
            # before its parts: what a resume replaces must not be seen beside what replaces it
            closed = content["status"] in CLOSED_STATUSES
            self._describe({**content, "status": "running"} if closed and new else content)
        count = self._put_items(content)
        for name, stamp in new.items():
            self._to.put(f"{self._folder.name}/{name}", self._folder / name)
            self._sent[name] = stamp
        self._remove_covered()
        if content != self._described:
            self._describe(content)
        return count + len(new)

    def _look(self) -> tuple[dict[str, Any], dict[str, _Stamp]]:
        """What run.json says and the files that it speaks of: all of them where it calls the run ended."""
        while True:
            before = RunFile.load(self._folder).content
            files = dict(reversed([*self._files()]))
            content = RunFile.load(self._folder).content
            if before["status"] == content["status"]:
                return content, files

    def _files(self) -> Iterator[tuple[str, _Stamp]]:
        for table in dict.fromkeys([*_ORDER, *TABLES]):
            parts = list_table(self._folder, table, foreign=False).parts
            # the newest first, as everything is put in the opposite order
            for part in reversed(parts):
                yield f"{table}/{part.path.name}", (part.size, part.mtime_ns)
        for folder in _WHOLE_FILES:
            for path in sorted((self._folder / folder).glob("[!.]*.*")):
                stat = path.stat()
                yield f"{folder}/{path.name}", (stat.st_size, stat.st_mtime_ns)

    def _check(self, content: Mapping[str, Any]) -> None:
        """Look whether this is still the only one that writes there, the first time what lies there."""
        there = self._to.run_json(self._folder.name)
        if self._described is not None:
            if there is not None and there.get("heartbeat_at") != self._described["heartbeat_at"]:
                raise RunInUseError(f"{self.shown} is written by another process, too; this copy ends")
            return
        if there is None:
            return
        if there.get("created_at") != content["created_at"]:
            raise CopyRefused(f"{self.shown} is another run; choose another place or run id")
        segments = there.get("segments")
        if not isinstance(segments, list) or segments != content["segments"][: len(segments)]:
            raise CopyRefused(f"{self.shown} was continued from somewhere else; choose another place")
        # a copy of this run is never ahead of it
        ahead = str(there.get("heartbeat_at")) > content["heartbeat_at"]
        if ahead and RunInfo(there).status() == "running":
            raise RunInUseError(f"{self.shown} is being written by another process; wait until it ends")
        self._adopt()

    def _adopt(self) -> None:
        """Take note of the files that an earlier copy has put there."""
        files = dict(self._files())
        for name, size in self._to.files(self._folder.name).items():
            if name in files and files[name][0] == size and not name.startswith(_WHOLE_FILES):
                self._sent[name] = files[name]
            elif parse_part_name(name.rpartition("/")[2]) is not None:
                self._sent[name] = (size, 0)

    def _describe(self, content: dict[str, Any]) -> None:
        text = json.dumps(content, ensure_ascii=False, indent=1)
        self._to.put(f"{self._folder.name}/{RUN_FILE}", text.encode())
        self._described = content

    def _put_items(self, content: Mapping[str, Any]) -> int:
        fingerprint = content.get("data_fingerprint")
        path = items_path(self._folder.parent, fingerprint) if fingerprint else None
        if path is None or not path.is_file():
            return 0
        name, size = f"{ITEMS_FOLDER}/{path.name}", path.stat().st_size
        if self._sent.get(name) == (size, 0):
            return 0
        # named by what it holds, and put by every run of the data set
        put = self._to.files(ITEMS_FOLDER).get(path.name) != size
        if put:
            self._to.put(name, path)
        self._sent[name] = (size, 0)
        return int(put)

    def _remove_covered(self) -> None:
        for table in TABLES:
            sent = [name for name in self._sent if name.rpartition("/")[0] == table]
            _, covered = without_covered([_as_part(Path(name)) for name in sent])
            for part in covered:
                self._to.remove(f"{self._folder.name}/{part.path.as_posix()}")
                del self._sent[part.path.as_posix()]


def _as_part(path: Path) -> Part:
    segment, first, last, rank = parse_part_name(path.name) or (0, -1, -1, 0)
    return Part(path, segment, first, last, 0, 0, rank)
