"""Compute the layout of a run, once, whoever asks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from uwml_core.projection.chain import Layouts
from uwml_core.projection.parameters import ProjectionParameters, chain_keys
from uwml_core.projection.progress import Progress, only_one, progress_path, write_progress
from uwml_core.runlog.projections import find_projection, projection_path, writable_folder, write_projection
from uwml_core.runlog.reader import Run
from uwml_core.runlog.snapshots import snapshot_steps

_LOOK_S = 2.0

Report = Callable[[Progress], None]


def project(run: Run, parameters: ProjectionParameters, report: Report | None = None) -> Path:
    """Lay a run's snapshots out and keep the layout, unless it is there already.

    A second process that asks for the same waits for the first and takes its result. A run that grew
    continues from the layout that it had.

    Args:
        run: the run.
        parameters: how to lay it out.
        report: called before each snapshot and at the end.

    Returns:
        The file.

    Raises:
        ValueError: if the run has no snapshot.
        OSError: if neither the run nor the cache can be written.
    """
    keys = chain_keys(run, parameters)
    if not keys:
        raise ValueError(f"run {run.run_id!r} has no snapshots; log them with RunLogger.log_snapshot")
    found = find_projection(run.path, keys[-1])
    if found is not None:
        return found
    path = projection_path(writable_folder(run.path), keys[-1])
    with only_one(path):
        # whoever held the lock may have written it
        if not path.exists():
            _compute(run, parameters, keys, path, report)
    return path


def follow(run: Run, parameters: ProjectionParameters, report: Report | None = None) -> Path:
    """``project``, again whenever a running run has new snapshots, until it runs no more.

    Args:
        run: the run; it may have no snapshot yet while it runs.
        parameters, report: as for ``project``.

    Returns:
        The file of the last layout.

    Raises:
        ValueError: if the run has ended without a snapshot.
        OSError: as ``project``.
    """
    while True:
        # asked first: what came in the meantime is then laid out once more
        running = run.status == "running"
        if not running or run.parts("snapshots"):
            path = project(run, parameters, report)
        if not running:
            return path
        time.sleep(_LOOK_S)


def _compute(
    run: Run, parameters: ProjectionParameters, keys: Sequence[str], path: Path, report: Report | None
) -> None:
    _remove_leftovers(path)
    steps = [step for step, _epoch in snapshot_steps(run)]
    layouts = Layouts(run, parameters)
    earlier = None if parameters.method == "pca" else _take_over(layouts, run, keys)
    try:
        for done in layouts.add(steps):
            progress = Progress(done, len(steps))
            write_progress(path, progress)
            if report is not None:
                report(progress)
        write_projection(path, layouts.placed, parameters.to_dict(), layouts.facts())
        if earlier is not None:
            # the new file has all of it
            with contextlib.suppress(OSError):
                earlier.unlink()
    finally:
        with contextlib.suppress(OSError):
            progress_path(path).unlink()


def _take_over(layouts: Layouts, run: Run, keys: Sequence[str]) -> Path | None:
    """Begin with the layout of the longest beginning of the run that is kept; its file."""
    for key in reversed(keys[:-1]):
        found = find_projection(run.path, key)
        if found is not None and layouts.go_on_from(found):
            return found
    return None


def _remove_leftovers(path: Path) -> None:
    """Delete what a killed process left; only the one that holds the lock may call this."""
    for name in (path.name, progress_path(path).name):
        for leftover in path.parent.glob(f".{name}.*.tmp"):
            leftover.unlink(missing_ok=True)
