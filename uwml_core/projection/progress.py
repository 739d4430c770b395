"""How far a computation is: a small file beside the layout, and a lock that only its process holds."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Progress:
    """Snapshots laid out so far.

    Attributes:
        done: snapshots laid out.
        total: snapshots to lay out.
    """

    done: int
    total: int


def progress_path(layout: Path) -> Path:
    """File that tells how far the computation of a layout is."""
    return layout.with_suffix(".json")


def write_progress(layout: Path, progress: Progress) -> None:
    """Replace the progress file.

    Raises:
        OSError: if it cannot be written.
    """
    path = progress_path(layout)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(asdict(progress)), encoding="utf-8")
    os.replace(temporary, path)


def read_progress(layout: Path) -> Progress | None:
    """What the progress file says; None where there is none."""
    try:
        values = json.loads(progress_path(layout).read_text(encoding="utf-8"))
        return Progress(int(values["done"]), int(values["total"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def only_one(layout: Path) -> Iterator[None]:
    """Let one process at a time compute a layout; a second one waits here until the first has ended.

    The system releases the lock when the process dies, however it dies.

    Raises:
        OSError: if the lock file cannot be written.
    """
    path = layout.with_name(f".{layout.name}.lock")
    with _locked(path):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    while True:
        with path.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_current(file.fileno(), path):
                yield
                return


def _is_current(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one of that name: who held it before has removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
