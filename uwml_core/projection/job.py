"""Compute the layout of a run, once, whoever asks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from uwml_core.projection.layout import next_layout
from uwml_core.projection.parameters import ProjectionParameters, chain_keys
from uwml_core.projection.pca import joint_axes, moments, place
from uwml_core.projection.progress import Progress, only_one, progress_path, write_progress
from uwml_core.runlog.projections import (
    PlacedSnapshot,
    find_projection,
    placed_snapshots,
    projection_path,
    read_projection,
    writable_folder,
    write_projection,
)
from uwml_core.runlog.reader import Run
from uwml_core.runlog.snapshots import Snapshot, read_snapshot, snapshot_steps

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


def _compute(
    run: Run, parameters: ProjectionParameters, keys: Sequence[str], path: Path, report: Report | None
) -> None:
    _remove_leftovers(path)
    placed: list[PlacedSnapshot] = []
    steps = [step for step, _epoch in snapshot_steps(run)]
    try:
        for snapshot in _layouts(run, parameters, keys, steps):
            placed.append(snapshot)
            progress = Progress(len(placed), len(steps))
            write_progress(path, progress)
            if report is not None:
                report(progress)
        write_projection(path, placed, parameters.to_dict())
    finally:
        with contextlib.suppress(OSError):
            progress_path(path).unlink()


def _layouts(
    run: Run, parameters: ProjectionParameters, keys: Sequence[str], steps: Sequence[int]
) -> Iterator[PlacedSnapshot]:
    if parameters.method == "pca":
        yield from _by_pca(run, steps)
        return
    before = _earlier(run, keys)
    yield from before
    last = before[-1] if before else None
    for step in steps[len(before) :]:
        snapshot = read_snapshot(run, step)
        if snapshot is not None:
            last = next_layout(snapshot, last, parameters)
            yield last


def _by_pca(run: Run, steps: Sequence[int]) -> Iterator[PlacedSnapshot]:
    axes = joint_axes(moments(snapshot.vectors) for snapshot in _snapshots(run, steps))
    for snapshot in _snapshots(run, steps):
        if axes is not None and snapshot.vectors.shape[1] == len(axes.mean):
            yield place(snapshot, axes)


def _snapshots(run: Run, steps: Sequence[int]) -> Iterator[Snapshot]:
    found = (read_snapshot(run, step) for step in steps)
    return (snapshot for snapshot in found if snapshot is not None)


def _earlier(run: Run, keys: Sequence[str]) -> list[PlacedSnapshot]:
    """Layout of the longest beginning of the run that is kept, snapshot by snapshot."""
    for key in reversed(keys[:-1]):
        found = find_projection(run.path, key)
        frame = read_projection(found) if found else None
        if frame is not None:
            return placed_snapshots(frame)
    return []


def _remove_leftovers(path: Path) -> None:
    """Delete what a killed process left; only the one that holds the lock may call this."""
    for name in (path.name, progress_path(path).name):
        for leftover in path.parent.glob(f".{name}.*.tmp"):
            leftover.unlink(missing_ok=True)
