"""Rows that never came to the disk: noted in run.json by the writer, told by the reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from uwml_core.runlog.jobs import Job
from uwml_core.runlog.listing import HealthIssue
from uwml_core.runlog.parts import STEP_NAMED

LOST = "lost"


class Lost(NamedTuple):
    """``rows`` rows of a table between two steps."""

    segment: int
    table: str
    first: int
    last: int
    rows: int

    def __str__(self) -> str:
        return f"{self.rows:,} rows of {self.table}, steps {self.first} to {self.last}"


def lost_rows(segment: int, job: Job) -> Lost:
    """What is lost with a part file that cannot be written."""
    first, last = job.first, job.last
    if job.table not in STEP_NAMED:
        # those are named by row
        steps = job.data["step"].to_numpy()
        first, last = int(steps.min()), int(steps.max())
    return Lost(segment, job.table, first, last, job.data.num_rows)


def joined_losses(losses: Iterable[Lost]) -> list[Lost]:
    """Neighbouring stretches of a table as one.

    Example:
        >>> joined_losses([Lost(0, "steps", 3, 4, 2), Lost(0, "pairs", 3, 4, 8), Lost(0, "steps", 5, 9, 5)])
        [Lost(segment=0, table='pairs', first=3, last=4, rows=8), \
Lost(segment=0, table='steps', first=3, last=9, rows=7)]
    """
    joined: list[Lost] = []
    for lost in sorted(losses):
        before = joined[-1] if joined else None
        if before is not None and before[:2] == lost[:2] and lost.first <= before.last + 1:
            last, rows = max(before.last, lost.last), before.rows + lost.rows
            joined[-1] = before._replace(last=last, rows=rows)
        else:
            joined.append(lost)
    return joined


def add_losses(described: dict[str, Any], losses: Iterable[Lost]) -> None:
    """Note losses in the content of a run.json."""
    known = described.get(LOST)
    described[LOST] = [*(known if isinstance(known, list) else ()), *(lost._asdict() for lost in losses)]


def lost_issues(described: Mapping[str, Any], limits: Mapping[int, int]) -> list[HealthIssue]:
    """What run.json says is lost, but for steps that a later segment did again.

    Args:
        described: content of run.json, which may say anything.
        limits: per segment the step from which later ones replace it.
    """
    entries = described.get(LOST)
    found = [lost for entry in (entries if isinstance(entries, list) else ()) if (lost := _read(entry))]
    return [
        _issue(lost) for lost in joined_losses(found) if lost.first < limits.get(lost.segment, lost.first + 1)
    ]


def _read(entry: Any) -> Lost | None:
    values: list[Any] = [entry.get(name) for name in Lost._fields] if isinstance(entry, dict) else []
    kinds = [int, str, int, int, int]
    return Lost(*values) if [type(value) for value in values] == kinds else None


def _issue(lost: Lost) -> HealthIssue:
    message = f"{lost} could not be written and are lost"
    return HealthIssue(lost.table, LOST, message, steps=(lost.first, lost.last))
