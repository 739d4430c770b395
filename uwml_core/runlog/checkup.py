"""What is wrong with a run's files and rows, and what is still usable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from uwml_core.runlog.info import SchemaTooNew
from uwml_core.runlog.listing import HealthIssue
from uwml_core.runlog.run import Run
from uwml_core.runlog.schema import MARGIN_ROLLUPS, TABLES

CLOCK_TOLERANCE_S = 5.0
"""Wall clock and monotonic clock may differ this much between two steps: what a time server corrects."""

_SHOWN = 5

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TableSummary:
    """What can be read of one table.

    Attributes:
        table: its name.
        files, rows: those that count.
        first_step, last_step: range of the column ``step``; None without rows.
    """

    table: str
    files: int
    rows: int
    first_step: int | None
    last_step: int | None


@dataclass(frozen=True, kw_only=True)
class Checkup:
    """Result of a look at a run.

    Attributes:
        run_id, status: of the run.
        issues: everything that is wrong, files first.
        tables: what is usable all the same.
    """

    run_id: str
    status: str
    issues: tuple[HealthIssue, ...]
    tables: tuple[TableSummary, ...]


def check_run(run: Run) -> Checkup:
    """Look at every file and the rows of ``steps`` and ``pairs``.

    Nothing is repaired or changed. Kinds of issues beside those of ``Run.health``: ``schema``,
    ``stale``, ``gap``, ``duplicate``, ``clock`` and ``mismatch``.
    """
    try:
        run.refuse_newer()
    except SchemaTooNew as error:
        issue = HealthIssue("run.json", "schema", str(error))
        return Checkup(run_id=run.run_id, status=run.status, issues=(issue,), tables=())
    tables = tuple(_summary(run, table) for table in TABLES if run.has(table))
    # after the rows were read, so that a file whose pages are broken is named, too
    issues = (*run.health(), *(issue for check in _CHECKS for issue in check(run)))
    return Checkup(run_id=run.run_id, status=run.status, issues=issues, tables=tables)


def _summary(run: Run, table: str) -> TableSummary:
    parts = run.map_parts(table, _extent, columns=("step",))
    known = [(first, last) for _, first, last in parts if first is not None and last is not None]
    return TableSummary(
        table=table,
        files=len(run.parts(table)),
        rows=sum(rows for rows, _, _ in parts),
        first_step=min((first for first, _ in known), default=None),
        last_step=max((last for _, last in known), default=None),
    )


def _extent(rows: pa.Table) -> tuple[int, int | None, int | None]:
    step = _numbers(rows, "step")
    return (len(rows), int(step.min()), int(step.max())) if len(step) else (len(rows), None, None)


def _numbers(rows: pa.Table, name: str) -> Ints:
    return np.asarray(rows[name].drop_null().cast(pa.int64()).to_numpy(), dtype=np.int64)


def _check_status(run: Run) -> Iterator[HealthIssue]:
    if run.status == "stale":
        beat = run.heartbeat_at
        when = "never" if beat is None else f"last at {beat:%Y-%m-%d %H:%M:%S} UTC"
        yield HealthIssue(
            "run.json",
            "stale",
            f"the run says running, but its writer gave a sign of life {when}; it was probably killed, and "
            "what was flushed is there",
        )
    if run.status == "foreign":
        yield HealthIssue(
            "run.json", "foreign", "there is no run.json of ours; status, settings and directions are guessed"
        )


def _check_steps(run: Run) -> Iterator[HealthIssue]:
    step = _numbers(run.table("steps", columns=["step"]), "step")
    if not len(step):
        return
    values, counts = np.unique(step, return_counts=True)
    if (twice := values[counts > 1]).size:
        yield HealthIssue("steps", "duplicate", f"{twice.size} steps are there more than once: {_few(twice)}")
    first = _first_step(run)
    if values[0] > first:
        yield HealthIssue(
            "steps", "gap", f"the first {values[0] - first} steps, from {first} on, are missing"
        )
    if (missing := _missing(values)).size:
        yield HealthIssue(
            "steps",
            "gap",
            f"{missing.size} steps between {values[0]} and {values[-1]} are missing: {_few(missing)}; means "
            "over steps leave them out",
        )


def _first_step(run: Run) -> int:
    """First step that the run logged, as run.json says; of a foreign run nobody knows."""
    segments = run.info.get("segments")
    firsts = [entry.get("first_step") for entry in segments or () if isinstance(entry, dict)]
    return min((first for first in firsts if isinstance(first, int)), default=2**62)


def _missing(values: Ints) -> Ints:
    return np.setdiff1d(np.arange(values[0], values[-1] + 1), values)


def _few(values: Ints) -> str:
    """The first stretches of sorted numbers.

    Example:
        >>> _few(np.array([1, 2, 3, 7]))
        '1-3, 7'
    """
    stretches = np.split(values, np.flatnonzero(np.diff(values) != 1) + 1)
    shown = [f"{s[0]}-{s[-1]}" if len(s) > 1 else f"{s[0]}" for s in stretches[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(stretches) > _SHOWN else "")


def _check_clock(run: Run) -> Iterator[HealthIssue]:
    rows = run.table("steps", columns=["step", "time", "elapsed_s"])
    if len(rows) < 2:
        return
    step = rows["step"].to_numpy()
    time_s = rows["time"].cast(pa.int64()).to_numpy() / 1e6
    # elapsed_s starts again with each segment; such steps say nothing of the clock
    passed, elapsed = np.diff(time_s), np.diff(rows["elapsed_s"].to_numpy())
    jump = np.where(elapsed >= 0, passed - elapsed, np.where(passed < 0, passed, 0.0))
    found = np.flatnonzero(np.abs(jump) > CLOCK_TOLERANCE_S)
    for place in found[:_SHOWN]:
        yield HealthIssue(
            "steps",
            "clock",
            f"the clock jumped by {jump[place]:+.0f} s before step {step[place + 1]}; times of day are off, "
            "elapsed_s is not",
        )
    if len(found) > _SHOWN:
        yield HealthIssue("steps", "clock", f"the clock jumped {len(found) - _SHOWN} more times")


def _check_pairs(run: Run) -> Iterator[HealthIssue]:
    if not run.has("pairs"):
        return
    counts = run.map_parts("pairs", _rows_per_step, columns=("step",))
    pairs: dict[int, int] = reduce(_added, counts, {})
    rows = run.table("steps", columns=["step", "batch_size"])
    sizes = dict(zip(rows["step"].to_pylist(), rows["batch_size"].to_pylist(), strict=True))
    every = run.info.get("pairs_every") or 1
    expected = {step: 2 * size for step, size in sizes.items() if size is not None and step % every == 0}
    short = [step for step, n in expected.items() if pairs.get(step, 0) < n]
    long = [step for step, n in expected.items() if pairs.get(step, 0) > n]
    alone = [step for step in pairs if step not in sizes]
    if short:
        yield HealthIssue(
            "pairs", "gap", f"{len(short)} steps have fewer rows than anchors: {_listed(short)}"
        )
    if long:
        yield HealthIssue(
            "pairs", "duplicate", f"{len(long)} steps have more rows than anchors: {_listed(long)}"
        )
    if alone:
        yield HealthIssue("pairs", "mismatch", f"{len(alone)} steps are not in steps: {_listed(alone)}")


def _check_rollups(run: Run) -> Iterator[HealthIssue]:
    # of thinned pairs the rollups alone know every step
    if not run.has(MARGIN_ROLLUPS.name) or (run.info.get("pairs_every") or 1) != 1:
        return
    counted = sum(run.rollup("margins")["count"].to_pylist())
    rows = sum(run.map_parts("pairs", len, columns=("step",)))
    if counted != rows:
        yield HealthIssue(
            "rollups", "mismatch", f"the histograms count {counted:,} rows of pairs, there are {rows:,}"
        )


def _rows_per_step(rows: pa.Table) -> dict[int, int]:
    values, counts = np.unique(_numbers(rows, "step"), return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _added(total: dict[int, int], more: dict[int, int]) -> dict[int, int]:
    for step, n in more.items():
        total[step] = total.get(step, 0) + n
    return total


def _listed(steps: list[int]) -> str:
    return _few(np.array(sorted(steps)))


_CHECKS: tuple[Callable[[Run], Iterator[HealthIssue]], ...] = (
    _check_status,
    _check_steps,
    _check_clock,
    _check_pairs,
    _check_rollups,
)
