"""What run.json says, read defensively: it may be missing, foreign, broken or from a newer version."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uwml_core.runlog.cache import BoundedCache
from uwml_core.runlog.listing import HealthIssue
from uwml_core.runlog.runfile import CLOSED_STATUSES, RUN_FILE
from uwml_core.runlog.schema import SCHEMA_VERSION

STALE_AFTER_S = 30.0


class SchemaTooNew(RuntimeError):
    """The run was written by a newer version."""


@dataclass(frozen=True)
class RunInfo:
    """Content of a run.json of ours, empty otherwise, and what is wrong with it, if anything."""

    values: dict[str, Any]
    issue: HealthIssue | None = None

    @property
    def foreign(self) -> bool:
        """Whether there is no run.json of ours."""
        return not self.values

    def refuse_newer(self, run_id: str) -> None:
        """Raise where the schema is newer than this version.

        Raises:
            SchemaTooNew: naming the run and both versions.
        """
        version = self.values.get("schema_version", SCHEMA_VERSION)
        if version > SCHEMA_VERSION:
            raise SchemaTooNew(
                f"run {run_id!r} has schema version {version}, this version reads up to {SCHEMA_VERSION}; "
                "update uwml-lens to open it"
            )

    def text(self, name: str) -> str | None:
        """A text entry; None when it is missing, empty or no text."""
        value = self.values.get(name)
        return value if isinstance(value, str) and value else None

    def pair(self, name: str) -> tuple[str, str] | None:
        """An entry of two texts."""
        value = self.values.get(name)
        if isinstance(value, list) and len(value) == 2 and all(isinstance(entry, str) for entry in value):
            return value[0], value[1]
        return None

    def moment(self, name: str) -> datetime | None:
        """A time entry, in UTC."""
        try:
            moment = datetime.fromisoformat(self.text(name) or "")
        except ValueError:
            return None
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)

    def status(self, now: datetime | None = None) -> str:
        """Running, finished, stopped, failed, stale (running, but no heartbeat for 30 s) or foreign."""
        if self.foreign:
            return "foreign"
        written = self.text("status")
        if written in CLOSED_STATUSES:
            return str(written)
        beat = self.moment("heartbeat_at")
        alive = beat is not None and ((now or datetime.now(UTC)) - beat).total_seconds() <= STALE_AFTER_S
        return "running" if alive and written == "running" else "stale"

    def limits(self) -> dict[int, int]:
        """Per segment the step from which later segments replace it."""
        segments = self.values.get("segments")
        firsts = {
            entry["segment"]: entry["first_step"]
            for entry in (segments if isinstance(segments, list) else [])
            if isinstance(entry, dict) and _whole(entry.get("segment")) and _whole(entry.get("first_step"))
        }
        # the smallest of all later ones: a third segment may begin before the second did
        limits: dict[int, int] = {}
        smallest: int | None = None
        for segment in sorted(firsts, reverse=True):
            if smallest is not None:
                limits[segment] = smallest
            smallest = firsts[segment] if smallest is None else min(smallest, firsts[segment])
        return limits


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_infos: BoundedCache[RunInfo] = BoundedCache(4096)


def read_info(run: Path) -> RunInfo:
    """Read a run's run.json; parsed again only after it changed."""
    path = run / RUN_FILE
    try:
        stat = os.stat(path)
    except OSError:
        return RunInfo({})
    key = (str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns)
    info = _infos.get(key)
    if info is None:
        info = _parse(path)
        _infos.put(key, info)
    return info


def _parse(path: Path) -> RunInfo:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        message = f"{RUN_FILE} cannot be read ({error}); the run is shown without its settings"
        return RunInfo({}, HealthIssue(RUN_FILE, "run_file", message))
    if not isinstance(values, dict) or not _whole(values.get("schema_version")):
        message = f"{RUN_FILE} has no schema_version; the run is shown without its settings"
        return RunInfo({}, HealthIssue(RUN_FILE, "run_file", message))
    return RunInfo(values)
