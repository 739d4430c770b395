"""Opening a run for writing, as the first process or as one of several that train together."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uwml_core.runlog.location import local_folder
from uwml_core.runlog.makers import RankJobMaker
from uwml_core.runlog.opening import OpenRun, create_run, resume_run
from uwml_core.runlog.runfile import RUN_FILE, RunFile, RunLock, check_run_id, is_held, rank_lock

# How long a process waits for the first one to open the run: loading a model may take minutes.
ATTACH_S = 300.0


class SharedRunFile(RunFile):
    """The run.json that the first process keeps; the others read it once and leave it alone."""

    def save(self, **changes: Any) -> None:
        """Do nothing."""


@dataclass
class AttachedRun(OpenRun):
    """A run to which this process adds its share of the pairs."""

    rank: int = 1

    def maker(self, directions: tuple[str, str]) -> RankJobMaker:
        """What turns this process's records into part files."""
        return RankJobMaker(self.segment, self.rank, directions, self.pairs_every)

    def restore(self) -> bool:
        """Lock the run again once the first process has brought it back.

        Returns:
            Whether it had vanished.

        Raises:
            OSError: if it has not yet.
        """
        folder = self.runfile.folder
        vanished = not (folder / rank_lock(self.rank)).exists()
        if vanished:
            (folder / RUN_FILE).stat()
            self.release()
            self.lock = RunLock(folder, rank_lock(self.rank))
        return vanished


def open_for_writing(
    root: str | os.PathLike[str],
    run_id: str | None,
    resume_from_step: int | None,
    *,
    rank: int = 0,
    world_size: int = 1,
    pairs_every: int = 1,
    **described: Any,
) -> OpenRun:
    """Attach to a run where the rank is not 0; continue one where a step is given, make one otherwise.

    Raises:
        ValueError: for numbers out of range, or if the run cannot be made, continued or joined.
        RunInUseError: if another writer holds it.
        TimeoutError: if the first process does not open it in time.
        OSError: if the folder cannot be made.
    """
    if not 0 <= rank < world_size:
        raise ValueError(f"rank={rank} with world_size={world_size}: expected 0 to world_size - 1")
    if pairs_every < 1:
        raise ValueError(f"pairs_every={pairs_every}: expected 1 to keep the pairs of every step, or more")
    # absolute, so that a later change of directory does no harm
    folder = local_folder(root, "root").expanduser().absolute()
    if rank:
        return attach_run(folder, run_id, resume_from_step, rank=rank, world_size=world_size)
    kept = {"world_size": world_size, "pairs_every": pairs_every}
    if resume_from_step is None:
        return create_run(folder, run_id, **kept, **described)
    return resume_run(folder, run_id, int(resume_from_step), **kept)


def attach_run(
    root: Path, run_id: str | None, first_step: int | None, *, rank: int, world_size: int
) -> AttachedRun:
    """Join the segment that the first process has opened; waits for it.

    Raises:
        ValueError: if the run is not named, or the first process was told something else.
        RunInUseError: if another process has this rank.
        TimeoutError: if the first process does not open the run in time.
    """
    if run_id is None:
        raise ValueError(f"run_id=None with rank={rank}: expected the id of the run that rank 0 opens")
    folder = root / check_run_id(run_id)
    _wait_for_first(folder, rank)
    lock = RunLock(folder, rank_lock(rank))
    try:
        runfile = SharedRunFile.load(folder)
        segment = runfile.content["segments"][-1]
        _check_same("world_size", world_size, segment.get("world_size"))
        if first_step is not None:
            _check_same("resume_from_step", first_step, segment["first_step"])
    except BaseException:
        lock.release()
        raise
    names = ("segment", "first_step", "world_size", "pairs_every")
    return AttachedRun(runfile, lock, **{name: segment[name] for name in names}, rank=rank)


def _wait_for_first(folder: Path, rank: int) -> None:
    end = time.monotonic() + ATTACH_S
    while not is_held(folder, rank_lock(0)):
        if time.monotonic() >= end:
            raise TimeoutError(
                f"rank={rank} found no run {folder.name!r} opened by rank 0 in {folder.parent} within "
                f"{ATTACH_S:g} s; give rank 0 the same root, run_id and world_size"
            )
        time.sleep(0.05)


def _check_same(name: str, own: int, first: int | None) -> None:
    if own != first:
        raise ValueError(f"{name}={own} differs from {first}, which rank 0 was given; expected the same")
