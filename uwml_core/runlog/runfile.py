"""run.json and the lock that keeps a second writer out."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import threading
import time
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from uwml_core.runlog.schema import SCHEMA_VERSION

RUN_FILE = "run.json"
LOCK_FILE = "run.lock"
_GLANCE_S = 0.2
CLOSED_STATUSES = ("finished", "stopped", "failed")

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class RunInUseError(RuntimeError):
    """Another writer holds the run."""


def check_run_id(run_id: str) -> str:
    """Return a run id that is safe as a folder name.

    Raises:
        ValueError: for separators, a leading dot, ``..`` or more than 100 characters.

    Example:
        >>> check_run_id("../../etc")
        Traceback (most recent call last):
        ValueError: run_id='../../etc' is no folder name; expected up to 100 letters, digits, '.', '_' or \
'-', beginning with a letter or digit and without '..'
    """
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id) or ".." in run_id:
        raise ValueError(
            f"run_id={run_id!r} is no folder name; expected up to 100 letters, digits, '.', '_' or '-', "
            "beginning with a letter or digit and without '..'"
        )
    return run_id


def rank_lock(rank: int) -> str:
    """Name of the file that a process of several locks."""
    return f"run.r{rank}.lock"


def utc_now() -> str:
    """Time as ISO 8601 in UTC, microseconds included."""
    return datetime.now(UTC).isoformat()


class RunFile:
    """The content of run.json, replaced atomically at every change."""

    def __init__(self, folder: Path, content: dict[str, Any]) -> None:
        self.folder = folder
        self.content = {"schema_version": SCHEMA_VERSION, **content}
        self._saving = threading.Lock()

    @classmethod
    def load(cls, folder: Path) -> RunFile:
        """Read the run.json of a folder.

        Raises:
            ValueError: if there is none, or it is not one that this version can continue.
        """
        path = folder / RUN_FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read ({error}); expected the run.json of a run") from error
        version = content.get("schema_version") if isinstance(content, dict) else None
        if version != SCHEMA_VERSION:
            raise ValueError(
                f"{path} has schema_version={version!r}; this version continues runs of {SCHEMA_VERSION}"
            )
        return cls(folder, content)

    def save(self, **changes: Any) -> None:
        """Change entries and replace the file; renews the heartbeat. Several threads may call it.

        Raises:
            OSError: if the folder, the space or the permission is missing; the entries are changed, and the
                next time may write them.
        """
        with self._saving:
            self.content.update(changes, heartbeat_at=utc_now())
            temporary = self.folder / f".{RUN_FILE}.{os.getpid()}.tmp"
            # a copy, as another thread may add an entry meanwhile
            text = json.dumps({**self.content}, ensure_ascii=False, indent=1)
            try:
                temporary.write_text(text, encoding="utf-8")
                os.replace(temporary, self.folder / RUN_FILE)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                raise


class RunLock:
    """Exclusive lock on a file of the run; the system releases it when the process dies.

    Args:
        folder: the run's folder.
        name: the file, made when missing.

    Raises:
        RunInUseError: if another writer, in this process or any other, holds it.
    """

    def __init__(self, folder: Path, name: str = LOCK_FILE) -> None:
        self._file = (folder / name).open("wb")
        # is_held takes the lock for an instant, which is no other writer
        end = time.monotonic() + _GLANCE_S
        while not _flocked(self._file, fcntl.LOCK_EX):
            if time.monotonic() >= end:
                self._file.close()
                raise RunInUseError(
                    f"run {folder.name!r} is being written by another process; wait until it ends or start "
                    "another run"
                )
            time.sleep(0.01)
        _held.add(self)

    def release(self) -> None:
        """Give the run free; a second call does nothing."""
        self._file.close()


def is_held(folder: Path, name: str) -> bool:
    """Whether somebody holds the lock on a file of the run."""
    try:
        with (folder / name).open("rb") as file:
            return not _flocked(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _flocked(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# A forked data loader would otherwise keep the lock of a killed trainer until it dies itself.
_held: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _release_all() -> None:
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_release_all)
