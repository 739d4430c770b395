"""Making a run folder, or continuing one with a new segment."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from uwml_core.runlog.environment import code_revision, package_versions, plain_config
from uwml_core.runlog.listing import remove_covered
from uwml_core.runlog.makers import JobMaker, RankJobMaker
from uwml_core.runlog.parts import remove_leftovers
from uwml_core.runlog.runfile import RUN_FILE, RunFile, RunLock, check_run_id, rank_lock, utc_now
from uwml_core.runlog.schema import TABLES
from uwml_core.weighting import direction_names


@dataclass
class OpenRun:
    """A run that this process may write: its run.json, its lock, and the segment that begins now.

    ``seat`` tells the processes behind the first that run.json speaks of the segment they belong to; None
    where there is one process.
    """

    runfile: RunFile
    lock: RunLock
    segment: int
    first_step: int
    world_size: int = 1
    pairs_every: int = 1
    seat: RunLock | None = None

    def maker(self, directions: tuple[str, str]) -> JobMaker | RankJobMaker:
        """What turns this process's records into part files."""
        return JobMaker(self.segment, directions, rank_count=self.world_size, pairs_every=self.pairs_every)

    def release(self) -> None:
        """Give the run free; a second call does nothing."""
        for lock in (self.seat, self.lock):
            if lock is not None:
                lock.release()

    def described(self) -> dict[str, Any]:
        """The segment's entry in run.json."""
        return {
            "segment": self.segment,
            "first_step": self.first_step,
            "started_at": utc_now(),
            "world_size": self.world_size,
            "pairs_every": self.pairs_every,
        }

    def take_seat(self) -> Self:
        """Let the other processes in, once run.json is written; returns itself."""
        if self.world_size > 1:
            self.seat = RunLock(self.runfile.folder, rank_lock(0))
        return self

    def restore(self) -> bool:
        """Bring back a run folder that vanished, and the logs folder where that is gone, too.

        Returns:
            Whether it had vanished.

        Raises:
            OSError: if that is not possible yet.
        """
        folder = self.runfile.folder
        vanished = not (folder / RUN_FILE).exists()
        if vanished:
            folder.mkdir(parents=True, exist_ok=True)
            self.release()
            self.lock = RunLock(folder)
            self.runfile.save()
            self.take_seat()
        self.runfile.save()
        return vanished


def new_run_id() -> str:
    """Run id from the time in UTC and four random hex digits, so that ids sort by age."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def create_run(
    root: Path, run_id: str | None, *, world_size: int = 1, pairs_every: int = 1, **described: Any
) -> OpenRun:
    """Make ``root/run_id`` and its run.json.

    Raises:
        ValueError: if the run id is no safe folder name, or such a run exists.
        RunInUseError: if it exists and is being written.
        OSError: if the folder cannot be made.
    """
    folder = root / check_run_id(new_run_id() if run_id is None else run_id)
    folder.mkdir(parents=True, exist_ok=True)
    lock = RunLock(folder)
    if (folder / RUN_FILE).exists():
        lock.release()
        raise ValueError(
            f"run_id={folder.name!r} exists in {root}; pass resume_from_step to continue it or another run_id"
        )
    runfile = RunFile(folder, _content(folder.name, **described))
    opened = OpenRun(runfile, lock, 0, 0, world_size, pairs_every)
    runfile.save(segments=[opened.described()])
    return opened.take_seat()


def _content(run_id: str, **described: Any) -> dict[str, Any]:
    modalities = tuple(described["modalities"])
    now = utc_now()
    return {
        "run_id": run_id,
        "name": described["name"] or run_id,
        "created_at": now,
        "status": "running",
        "heartbeat_at": now,
        "config": plain_config(described["config"]),
        "modalities": list(modalities),
        "directions": list(direction_names(modalities)),
        "seed": described["seed"],
        "packages": package_versions(),
        "code_revision": code_revision(),
        "data_fingerprint": described["data_fingerprint"],
        "parent": described["parent"],
        "total_steps": described["total_steps"],
    }


def resume_run(
    root: Path, run_id: str | None, first_step: int, *, world_size: int = 1, pairs_every: int = 1
) -> OpenRun:
    """Open a new segment of an existing run, whose steps begin at ``first_step``.

    Readers then drop steps of earlier segments from there on; the rest of run.json stays.

    Raises:
        ValueError: if there is no such run to continue, or the step is negative.
        RunInUseError: if it is being written.
    """
    if run_id is None:
        raise ValueError("run_id=None cannot be resumed; name the run that resume_from_step continues")
    if first_step < 0:
        raise ValueError(f"resume_from_step={first_step} is negative; expected the next step to be done")
    folder = root / check_run_id(run_id)
    if not folder.is_dir():
        raise ValueError(f"run_id={run_id!r} does not exist in {root}; nothing to resume")
    lock = RunLock(folder)
    try:
        runfile = RunFile.load(folder)
        remove_leftovers(folder)
        remove_covered(folder, TABLES)
        segments = runfile.content["segments"]
        opened = OpenRun(runfile, lock, len(segments), first_step, world_size, pairs_every)
        runfile.save(status="running", segments=[*segments, opened.described()])
    except BaseException:
        lock.release()
        raise
    return opened.take_seat()
