"""Reading run logs: the public names, and finding the runs in a logs folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pyarrow.fs import FileSystem

from uwml_core.runlog.info import SchemaTooNew
from uwml_core.runlog.listing import HealthIssue, Part
from uwml_core.runlog.location import Place, is_remote, parse_remote
from uwml_core.runlog.remote import Mirror, mirror_of, mirror_on
from uwml_core.runlog.remote_run import remote_run, remote_runs
from uwml_core.runlog.run import Run
from uwml_core.runlog.runfile import RUN_FILE
from uwml_core.runlog.schema import TABLES

__all__ = ["HealthIssue", "Part", "Run", "SchemaTooNew", "find_run", "list_runs", "open_run", "root_health"]


def list_runs(root: Place, *, filesystem: FileSystem | None = None) -> list[Run]:
    """Runs in a logs folder, newest first; empty where there is no such folder or it is out of reach.

    A remote root, ``s3://bucket/logs`` or any URL that pyarrow knows, is read through a mirror in the user's
    cache folder, into which tables are fetched when they are asked for. Credentials come from the
    environment. ``root_health`` says whether the root can be reached.

    A run is a folder with a run.json, or with the folders or files of a table, or an empty one. Names
    that begin with a dot or an underscore are none. Runs of a newer version are listed; reading their
    tables raises ``SchemaTooNew``.

    Args:
        root: the folder, or its URL.
        filesystem: a pyarrow filesystem in which ``root`` is a path.

    Raises:
        ValueError: if a URL holds credentials or is none that pyarrow knows.
    """
    mirror = _mirror(root, filesystem)
    runs = _local_runs(root) if mirror is None else remote_runs(mirror)
    return sorted(runs, key=lambda run: (run.created_at, run.run_id), reverse=True)


def _mirror(root: Place, filesystem: FileSystem | None) -> Mirror | None:
    if filesystem is not None:
        return mirror_on(filesystem, os.fspath(root))
    return mirror_of(parse_remote(str(root))) if is_remote(root) else None


def root_health(root: Place, *, filesystem: FileSystem | None = None) -> tuple[HealthIssue, ...]:
    """What is wrong with a logs folder itself: a remote one that is out of reach, and since when."""
    mirror = _mirror(root, filesystem)
    return () if mirror is None else tuple(mirror.issues())


def _local_runs(root: Place) -> Sequence[Run]:
    try:
        with os.scandir(root) as entries:
            folders = [Path(e.path) for e in entries if e.name[0] not in "._" and e.is_dir()]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    return [Run(folder) for folder in folders if _is_run(folder)]


def _is_run(folder: Path) -> bool:
    if (folder / RUN_FILE).exists():
        return True
    try:
        names = {entry.name for entry in os.scandir(folder) if not entry.name.startswith(".")}
    except OSError:
        return False
    return not names or any(table in names or f"{table}.parquet" in names for table in TABLES)


def find_run(path: Place, *, filesystem: FileSystem | None = None) -> Run:
    """One run, whatever version wrote it: a folder, or the URL of one.

    Raises:
        FileNotFoundError: if there is no such folder.
        OSError: if it is remote and out of reach.
        ValueError: if a URL holds credentials or is none that pyarrow knows.
    """
    if filesystem is not None:
        root, _, name = os.fspath(path).rstrip("/").rpartition("/")
        return remote_run(mirror_on(filesystem, root), name)
    if is_remote(path):
        place, name = parse_remote(str(path)).split()
        return remote_run(mirror_of(place), name)
    if not Path(path).is_dir():
        raise FileNotFoundError(f"{os.fspath(path)!r} is no folder; expected the folder of a run")
    return Run(path)


def open_run(path: Place, *, filesystem: FileSystem | None = None) -> Run:
    """Open one run, as ``find_run`` does.

    Raises:
        FileNotFoundError: if there is no such folder.
        OSError: if it is remote and out of reach.
        SchemaTooNew: if a newer version wrote the run.
        ValueError: if a URL holds credentials or is none that pyarrow knows.
    """
    run = find_run(path, filesystem=filesystem)
    run.refuse_newer()
    return run
