"""The sample runs that a package carries, put into a logs folder, to be looked at and to be changed."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from uwml_core.installation import sample_files, sample_logs
from uwml_core.runlog.items import ITEMS_FOLDER


def add_sample_runs(root: Path) -> list[str]:
    """Copy the sample runs into a logs folder; each appears whole.

    What is there stays: a run of the same name, and the sample runs of a checkout in their own folder.

    Args:
        root: logs folder; made when missing.

    Returns:
        Names of the runs that were added.

    Raises:
        OSError: if the folder cannot be written.
    """
    source = sample_logs()
    names: dict[str, list[Path]] = {}
    for path in sample_files(source):
        names.setdefault(path.parts[0], []).append(path)
    for path in names.pop(ITEMS_FOLDER, []):
        _copy_items(source / path, root / path)
    return [name for name, paths in names.items() if _copy_run(source, root, name, paths)]


def _copy_items(source: Path, target: Path) -> None:
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        shutil.copyfile(source, unfinished)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def _copy_run(source: Path, root: Path, name: str, paths: list[Path]) -> bool:
    if (root / name).exists():
        return False
    # a name with a dot: no reader takes it for a run
    unfinished = root / f".{name}.{secrets.token_hex(8)}"
    try:
        for path in paths:
            copy = unfinished / path.relative_to(name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / path, copy)
        try:
            os.rename(unfinished, root / name)
        except OSError:
            # somebody else was faster
            if not (root / name).is_dir():
                raise
            return False
        return True
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
