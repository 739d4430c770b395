"""Reading run logs: the public names, and finding the runs in a logs folder."""

from __future__ import annotations

import os
from pathlib import Path

from uwml_core.runlog.info import SchemaTooNew
from uwml_core.runlog.listing import HealthIssue, Part
from uwml_core.runlog.run import Run
from uwml_core.runlog.runfile import RUN_FILE
from uwml_core.runlog.schema import TABLES

__all__ = ["HealthIssue", "Part", "Run", "SchemaTooNew", "list_runs", "open_run"]


def list_runs(root: str | os.PathLike[str]) -> list[Run]:
    """Runs in a logs folder, newest first; empty where there is no such folder.

    A run is a folder with a run.json, or with the folders or files of a table, or an empty one. Names
    that begin with a dot or an underscore are none. Runs of a newer version are listed; reading their
    tables raises ``SchemaTooNew``.
    """
    try:
        with os.scandir(root) as entries:
            folders = [Path(e.path) for e in entries if e.name[0] not in "._" and e.is_dir()]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    runs = [Run(folder) for folder in folders if _is_run(folder)]
    return sorted(runs, key=lambda run: (run.created_at, run.run_id), reverse=True)


def _is_run(folder: Path) -> bool:
    if (folder / RUN_FILE).exists():
        return True
    try:
        names = {entry.name for entry in os.scandir(folder) if not entry.name.startswith(".")}
    except OSError:
        return False
    return not names or any(table in names or f"{table}.parquet" in names for table in TABLES)


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open one run's folder.

    Raises:
        FileNotFoundError: if there is no such folder.
        SchemaTooNew: if a newer version wrote the run.
    """
    if not Path(path).is_dir():
        raise FileNotFoundError(f"{os.fspath(path)!r} is no folder; expected the folder of a run")
    run = Run(path)
    run.refuse_newer()
    return run
