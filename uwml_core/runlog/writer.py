"""``RunLogger`` writes a run while it trains; ``NullLogger`` takes the same calls and writes nothing."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from uwml_core.runlog.arrays import kept
from uwml_core.runlog.attaching import open_for_writing
from uwml_core.runlog.destination import destination
from uwml_core.runlog.items import write_items
from uwml_core.runlog.nearest import Nearest
from uwml_core.runlog.null import NullLogger
from uwml_core.runlog.records import EventRecord, Record, StepRecord
from uwml_core.runlog.rows import (
    Metric,
    Where,
    check_batch,
    check_direction,
    check_numbers,
    eval_rows,
    rank_rows,
)
from uwml_core.runlog.runfile import CLOSED_STATUSES, RunInUseError
from uwml_core.runlog.session import Session, TelemetryError, TelemetryWarning
from uwml_core.runlog.similarity_log import SimilarityLog
from uwml_core.runlog.snapshot_log import SnapshotLog
from uwml_core.runlog.warmup import warm_up

__all__ = ["Nearest", "NullLogger", "RunInUseError", "RunLogger", "TelemetryError", "TelemetryWarning"]


class RunLogger(SimilarityLog, SnapshotLog):
    """Writes the run log of one training run into ``root/run_id``.

    A thread turns what is logged into Parquet parts that can be read at once. Errors there (full disk,
    vanished folder) never stop training: the next call warns, an event tells, and the log goes on as
    soon as it can. The log itself notes phase changes, non-finite losses and gradients, resumes and its
    own stalls as events. Before a checkpoint is written call ``flush()``, or a kill right after it may
    leave steps out that the resumed run does not repeat.

    Args:
        root: logs folder; made when missing.
        run_id: folder name of the run; made from the time when None.
        name: free text shown for the run; the run id when None.
        modalities: names of both modalities; the directions' names come from their first letters.
        config: ``UWMLConfig`` (stored under ``loss``), mapping or anything with ``to_dict``.
        seed: seed of the run.
        data_fingerprint: what ``log_items`` returned, or ``data_fingerprint`` computed.
        parent: run id of the run that this one continues, copies weights from or tries other settings of.
        resume_from_step: opens a new segment of an existing run; the first step that it will log.
        flush_seconds: a part is written at least that often.
        flush_steps: and after so many steps; where they come fast, each second or after three times as many.
        total_steps: optimizer steps planned.
        strict: raise ``TelemetryError`` at the next call instead of warning.
        pairs_every: pairs are kept of the steps that are multiples of it; the rollups count all of them.
        rank, world_size: which of how many processes that train together this is. Rank 0 writes the run;
            the others wait for it, then add their share of ``pairs`` and nothing else, so each is given
            its own part of the batch, and what they are told besides is left out.
        alert_seconds: another process of the lowest priority asks the rules of ``uwml doctor`` that often
            what is wrong, and a new warning becomes an event of kind ``alert``; None asks nobody.
        copy_to: URL of a logs folder, such as ``s3://bucket/logs``, into which a thread copies what has been
            written, every five seconds and at the end. Credentials come from the environment. A place out of
            reach is tried again, and never stops training; the run in ``root`` is whole whatever happens.

    Raises:
        ValueError: for an unsafe or taken run id, nothing to resume, or ranks that disagree.
        RunInUseError: if another writer holds the run.
        TimeoutError: if rank 0 does not open the run in time.

    Example:
        >>> import tempfile
        >>> from uwml_core.runlog.writer import RunLogger
        >>> with tempfile.TemporaryDirectory() as root, RunLogger(root, "demo") as log:
        ...     log.log_event("note", "began")
        ...     log.path.name
        'demo'
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        run_id: str | None = None,
        *,
        name: str | None = None,
        modalities: tuple[str, str] = ("image", "text"),
        config: Any = None,
        seed: int | None = None,
        data_fingerprint: str | None = None,
        parent: str | None = None,
        resume_from_step: int | None = None,
        flush_seconds: float = 2.0,
        flush_steps: int = 100,
        total_steps: int | None = None,
        strict: bool = False,
        pairs_every: int = 1,
        rank: int = 0,
        world_size: int = 1,
        alert_seconds: float | None = None,
        copy_to: str | None = None,
    ) -> None:
        if alert_seconds is not None and not alert_seconds > 0:
            raise ValueError(f"alert_seconds={alert_seconds!r}: expected more than 0, or None for no alerts")
        if not flush_seconds > 0 or flush_steps < 1:
            raise ValueError(
                f"flush_seconds={flush_seconds!r} and flush_steps={flush_steps!r}: expected more than 0"
            )
        copied = None if copy_to is None or rank else destination(copy_to)
        described = {"name": name, "modalities": modalities, "config": config, "seed": seed}
        described |= {"data_fingerprint": data_fingerprint, "parent": parent, "total_steps": total_steps}
        described |= {"rank": rank, "world_size": world_size, "pairs_every": pairs_every}
        opened = open_for_writing(root, run_id, resume_from_step, **described)
        self._session = Session(opened, flush_seconds=flush_seconds, flush_steps=flush_steps, strict=strict)
        warm_up(self._session.directions)
        self.path: Path = opened.runfile.folder
        self.run_id: str = opened.runfile.content["run_id"]
        self.directions = self._session.directions
        self.rank = rank
        self._began = self._last_call = time.perf_counter()
        self._timed = False
        self._telemetry_time_ms: float | None = None
        if opened.segment:
            self.log_event("resume", f"resumed at step {opened.first_step}", segment=opened.segment)
        if alert_seconds is not None and not rank:
            self._session.raise_alerts(alert_seconds)
        if copied is not None:
            self._session.copy_to(copied)

    def log_step(
        self,
        last: Any,
        *,
        item_ids: Any,
        captions: Any = None,
        step: int | None = None,
        epoch: int | None = None,
        phase: str | None = None,
        learning_rate: Any = None,
        gradient_norm: Any = None,
        step_time_ms: float | None = None,
        **scalars: Any,
    ) -> None:
        """Log one optimizer step; takes references and returns at once.

        Args:
            last: the step's ``StepDiagnostics``, or anything with ``directions``, ``negative_index`` and any
                of its fields. Read later, as all tensors are, so they must not be changed in place.
            item_ids: whole numbers ``[batch]``, rows of the data set.
            captions: caption index within the item ``[batch]``, or None.
            step: number of the step, larger than the one before; counted on when None.
            epoch, phase: where training is; a new phase becomes an event.
            learning_rate, gradient_norm: numbers or tensors of one element.
            step_time_ms: time of the whole step; measured between calls when None.
            **scalars: further numbers; a column of ``steps``, or a new float64 column.

        Raises:
            ValueError: if directions, lengths or the order of steps do not fit.
        """
        start = time.perf_counter()
        self._session.check()
        check_batch(last, self.directions, item_ids, captions)
        if self._telemetry_time_ms is None:
            # once, as it costs more than the rest; the writer thread looks at every step
            check_numbers(item_ids, captions)
        self._session.step = number = self._next_step(step)
        if step_time_ms is None and self._timed:
            step_time_ms = (start - self._last_call) * 1e3
        scalars["learning_rate"], scalars["gradient_norm"] = learning_rate, gradient_norm
        record = StepRecord(
            number,
            epoch,
            phase,
            time.time_ns() // 1000,
            start - self._began,
            step_time_ms,
            self._telemetry_time_ms,
            last,
            kept(item_ids),
            None if captions is None else kept(captions),
            scalars,
        )
        self._last_call, self._timed = start, True
        self._session.put(record)
        self._telemetry_time_ms = (time.perf_counter() - start) * 1e3

    def _next_step(self, step: int | None) -> int:
        before = self._session.step
        if step is not None and step <= before:
            raise ValueError(
                f"step={step} is not after step {before}; expected increasing steps "
                "(resume_from_step opens a new segment)"
            )
        return before + 1 if step is None else int(step)

    def log_eval(
        self,
        *,
        split: str,
        metrics: Iterable[Metric],
        step: int | None = None,
        epoch: int | None = None,
    ) -> None:
        """Log an evaluation: metrics as (direction or None, name, value, n, tied share or None).

        ``step`` is the last completed step, -1 before training; that of the log when None.

        Raises:
            ValueError: for a direction that the run does not have.
        """
        self._put(eval_rows(self._where(step, epoch, split), self.directions, list(metrics)))

    def log_ranks(
        self,
        *,
        split: str,
        direction: str,
        item_ids: Any,
        captions: Any,
        ranks: Any,
        step: int | None = None,
        epoch: int | None = None,
    ) -> None:
        """Log the rank of each query ``[n]``; ``captions`` is None where the queries are pictures.

        Raises:
            ValueError: for an unknown direction, or lengths that differ.
        """
        where = self._where(step, epoch, split)
        check_direction(direction, self.directions)
        self._put(rank_rows(where, direction, item_ids, captions, ranks))

    def log_items(self, **described: Any) -> str:
        """Write the data set's items once, beside the runs; see ``items.write_items`` for the arguments.

        Returns:
            The data fingerprint, which run.json then carries; behind rank 0 the one given, if any.
        """
        self._session.check()
        if self.rank:
            return described.get("fingerprint") or ""
        fingerprint = write_items(self.path.parent, **described)
        # where the disk fails, the writer thread tells of it and saves it with its next heartbeat
        with contextlib.suppress(OSError):
            self._session.opened.runfile.save(data_fingerprint=fingerprint)
        return fingerprint

    def log_event(
        self, kind: str, message: str, level: str = "info", step: int | None = None, **data: Any
    ) -> None:
        """Log an event: one sentence, and details that JSON knows (anything else as text)."""
        now = time.time_ns() // 1000
        details = json.dumps(data, ensure_ascii=False, default=str)
        at = self._session.step if step is None else int(step)
        self._put(EventRecord(now, at, level, kind, message, details))

    def flush(self, timeout_s: float = 60.0) -> bool:
        """Write everything logged so far; False where the log could not be written in time."""
        return self._session.flush(timeout_s)

    def close(self, status: str = "finished") -> None:
        """Write the rest, set the status and give the run free; a second call does nothing.

        Raises:
            ValueError: if the status is not one of finished, stopped or failed.
        """
        if status not in CLOSED_STATUSES:
            raise ValueError(f"status={status!r} is unknown; choose one of {', '.join(CLOSED_STATUSES)}")
        self._session.close(status)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close("finished")
        elif issubclass(kind, (KeyboardInterrupt, SystemExit)):
            self.close("stopped")
        else:
            self.log_event("failure", f"{kind.__name__}: {error}", level="error")
            self.close("failed")

    def _where(self, step: int | None, epoch: int | None, split: str) -> Where:
        at = self._session.step if step is None else int(step)
        return Where(at, self._session.opened.segment, epoch, split)

    def _put(self, record: Record | None) -> None:
        self._session.check()
        # what happens between two steps is not part of the next one's time
        self._timed = False
        if record is not None and not self.rank:
            self._session.put(record)
