"""The user's cache folder: layouts of read-only runs, mirrors of remote ones. It may be deleted any time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

CACHE_VARIABLE = "UWML_CACHE"
LIMIT_VARIABLE = "UWML_REMOTE_CACHE_GIB"

_DEFAULT_GIB = 20.0
_MIRRORS = "remote"
# in use is a run that somebody fetched or read lately; systems note a reading once a day
_IN_USE_S = 48 * 3600.0
_TRIM_EVERY_S = 3600.0


def cache_folder() -> Path:
    """``UWML_CACHE``, or ``uwml-lens`` in the system's cache folder of the user."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uwml-lens"
    return Path(os.environ.get(CACHE_VARIABLE) or home)


def named(text: str, name: str) -> str:
    """Folder name that is readable and differs for different texts."""
    return f"{name}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def trimmed_folder(url: str, name: str) -> Path:
    """Folder of a mirror, made when missing, for this user alone; runs not used lately make room.

    Raises:
        ValueError: if ``UWML_REMOTE_CACHE_GIB`` is no number above 0.
        OSError: if it cannot be made.
    """
    folder = cache_folder() / _MIRRORS / named(url, name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    _trim(folder.parent, _limit_bytes())
    return folder


def _limit_bytes() -> float:
    text = os.environ.get(LIMIT_VARIABLE) or str(_DEFAULT_GIB)
    with contextlib.suppress(ValueError):
        if float(text) > 0:
            return float(text) * 2**30
    raise ValueError(f"{LIMIT_VARIABLE}={text!r} is no size; expected GiB above 0")


def _trim(mirrors: Path, limit: float) -> None:
    """Remove the runs that were used longest ago until the others fit; never one in use."""
    looked = mirrors / ".trimmed"
    if looked.exists() and looked.stat().st_mtime > time.time() - _TRIM_EVERY_S:
        return
    looked.touch()
    runs = [run for mirror in mirrors.iterdir() if mirror.is_dir() for run in mirror.iterdir()]
    used = {run: _size_and_use(run) for run in runs}
    total = sum(size for size, _ in used.values())
    for run in sorted(runs, key=lambda run: used[run][1]):
        size, when = used[run]
        if total <= limit or when > time.time() - _IN_USE_S:
            return
        # what else lies there was written here
        for path in run.rglob("*.parquet"):
            with contextlib.suppress(OSError):
                path.unlink()
        total -= size


def _size_and_use(folder: Path) -> tuple[int, float]:
    size, use = 0, 0.0
    for path in folder.rglob("*.parquet"):
        with contextlib.suppress(OSError):
            stat = path.stat()
            size += stat.st_size
            use = max(use, stat.st_atime)
    return size, use
