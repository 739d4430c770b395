"""A run in object storage: its tables are fetched into the mirror when asked for, then read there."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from uwml_core.runlog.info import RunInfo, read_info
from uwml_core.runlog.items import ITEMS_FOLDER
from uwml_core.runlog.listing import HealthIssue
from uwml_core.runlog.parts import parse_part_name
from uwml_core.runlog.remote import Mirror, Seen, safe_name
from uwml_core.runlog.run import Run
from uwml_core.runlog.runfile import CLOSED_STATUSES, RUN_FILE
from uwml_core.runlog.schema import PROJECTIONS, TABLES

# with the two seconds of a page that follows a run, a row is on screen three after it arrived
_OPEN_S = 0.5
# a run that has ended changes when it is resumed, compacted or laid out
_CLOSED_S = 60.0
_SIDE_BY_SIDE = 16
_ITEMS_S = 60.0


class RemoteRun(Run):
    """As ``Run``, over the network. While the place is out of reach it stays as it was seen last.

    Args:
        mirror: of the logs folder.
        run_id: name of the run's folder in it.
    """

    def __init__(self, mirror: Mirror, run_id: str) -> None:
        super().__init__(mirror.path / run_id)
        self._mirror = mirror
        self._remote = mirror.folder(run_id)

    def __repr__(self) -> str:
        return f"Run({self._remote.shown!r})"

    @property
    def _max_age_s(self) -> float:
        closed = read_info(self.path).text("status") in CLOSED_STATUSES
        return _CLOSED_S if closed else _OPEN_S

    @property
    def _seen(self) -> Seen:
        return self._remote.seen(self._max_age_s)

    @property
    def _info(self) -> RunInfo:
        self._remote.bring(RUN_FILE, _run_file, self._max_age_s)
        if self._remote.listing.value.files and RUN_FILE not in self._remote.listing.value.files:
            with contextlib.suppress(OSError):
                (self.path / RUN_FILE).unlink()
        return read_info(self.path)

    @property
    def status(self) -> str:
        """As of the newest listing: where nothing can be read, nothing is known of the heartbeat."""
        info, listing = self._info, self._remote.listing
        return info.status(listing.read_at if listing.problem else None)

    @property
    def created_at(self) -> datetime:
        """When the run was made, UTC; of a foreign run when its newest file was written."""
        newest = max((file.mtime_ns for file in self._seen.files.values()), default=0)
        return self._info.moment("created_at") or datetime.fromtimestamp(newest / 1e9, UTC)

    @property
    def exists(self) -> bool:
        """Whether the newest listing shows a run: a run.json, or files of a table.

        Raises:
            OSError: if the place was out of reach from the beginning.
        """
        files = self._seen.files
        if self._remote.listing.read_at is None:
            raise OSError(f"{self._remote.shown} could not be read ({self._remote.listing.problem})")
        tables = {*TABLES, *(f"{table}.parquet" for table in TABLES), RUN_FILE}
        return any(name in tables or name.rpartition("/")[0] in tables for name in files)

    def _bring(self, name: str) -> None:
        foreign = self._info.foreign
        self._remote.bring(name, lambda seen: _files_of(name, seen, foreign), self._max_age_s)
        # the mirror's layouts may have been computed here
        if name != PROJECTIONS.name:
            self._remote.tidy(name, name)

    def _stamp(self, table: str) -> Sequence[Hashable]:
        seen = self._seen
        return [(name, seen.files[name]) for name in _files_of(table, seen, foreign=True)]

    def _items_version(self) -> Hashable:
        path = super().items_file()
        return path and self._mirror.folder(ITEMS_FOLDER).seen(_ITEMS_S).files.get(path.name)

    def items_file(self) -> Path | None:
        """As for a local run, the file at hand where it can be reached."""
        path = super().items_file()
        if path is not None:
            name = path.name
            items = self._mirror.folder(ITEMS_FOLDER)
            items.bring(name, lambda seen: [name] if name in seen.files else [], _ITEMS_S)
        return path

    def out_of_reach(self) -> HealthIssue | None:
        """The place that could not be read lately; None where all that was asked for is at hand."""
        folders = (self._remote, self._mirror.folder(ITEMS_FOLDER))
        issues = [issue for folder in folders for issue in folder.issues()]
        return next((issue for issue in issues if issue.kind == "remote"), None)

    def health(self) -> tuple[HealthIssue, ...]:
        """As of a local run, of the tables that were fetched; and what cannot be, with the reason."""
        foreign, seen = self._info.foreign, self._seen
        unused = [
            HealthIssue(name, "foreign", f"{name} is no part of the run log and is skipped")
            for table in TABLES
            for name in seen.by_folder.get(table, ())
            if not _is_part(name, foreign)
        ]
        return (*self._remote.issues(), *super().health(), *unused)


def _run_file(seen: Seen) -> list[str]:
    return [RUN_FILE] if RUN_FILE in seen.files else []


def _files_of(name: str, seen: Seen, foreign: bool) -> list[str]:
    """Files of a table, or of another folder of the run."""
    found = seen.by_folder.get(name, ())
    if name not in TABLES:
        return [file for file in found if file.endswith((".parquet", ".json"))]
    flat = [file for file in (f"{name}.parquet",) if foreign and file in seen.files]
    return [*(file for file in found if _is_part(file, foreign)), *flat]


def _is_part(name: str, foreign: bool) -> bool:
    base = name.rpartition("/")[2]
    return parse_part_name(base) is not None or (foreign and base.endswith(".parquet"))


def remote_runs(mirror: Mirror) -> list[RemoteRun]:
    """Runs in a remote logs folder; those seen last where it is out of reach."""
    runs = [RemoteRun(mirror, name) for name in mirror.names()]
    with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="uwml-list") as pool:
        there = list(pool.map(_is_there, runs))
    return [run for run, exists in zip(runs, there, strict=True) if exists]


def _is_there(run: RemoteRun) -> bool:
    with contextlib.suppress(OSError):
        # its run.json, which all of them are sorted by, is fetched here, too
        return run.exists and bool(run.status)
    return False


def remote_run(mirror: Mirror, run_id: str) -> RemoteRun:
    """One run in a remote logs folder.

    Raises:
        FileNotFoundError: if there is none.
        OSError: if it is out of reach.
    """
    if not safe_name(run_id) or "/" in run_id:
        raise FileNotFoundError(f"{run_id!a} in {mirror.shown} is no run; expected the URL of a run's folder")
    run = RemoteRun(mirror, run_id)
    if not run.exists:
        raise FileNotFoundError(f"{run!r} is no run; expected the folder of a run")
    return run
