"""The writer thread: parts at least every few seconds, heartbeat, and what happens when the disk fails."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from uwml_core.runlog.buffer import RecordBuffer
from uwml_core.runlog.compactor import Compactor
from uwml_core.runlog.jobs import Backlog, Job
from uwml_core.runlog.losses import Lost, add_losses, joined_losses, lost_rows
from uwml_core.runlog.makers import JobMaker, RankJobMaker
from uwml_core.runlog.records import EventRecord, Record
from uwml_core.runlog.runfile import RunFile

HEARTBEAT_S = 4.0


@dataclass(frozen=True)
class Problem:
    """What went wrong in the thread, in one sentence, and the error behind it."""

    what: str
    error: Exception

    def __str__(self) -> str:
        return f"{self.what}: {self.error}"


class WriterThread(threading.Thread):
    """Empties the buffer into part files until the buffer closes.

    Args:
        buffer: what the training thread fills.
        maker: turns records into jobs.
        runfile: run.json, whose heartbeat is renewed here.
        flush_seconds: longest time that a record waits.
        restore: called before a retry, to bring back a folder that vanished; whether it had.
        last_step: gives the last step logged, for events.
    """

    def __init__(
        self,
        buffer: RecordBuffer,
        maker: JobMaker | RankJobMaker,
        runfile: RunFile,
        *,
        flush_seconds: float,
        restore: Callable[[], bool],
        last_step: Callable[[], int],
    ) -> None:
        super().__init__(name="uwml-runlog", daemon=True)
        self._buffer, self._maker, self._runfile = buffer, maker, runfile
        self._flush_seconds, self._restore, self._last_step = flush_seconds, restore, last_step
        self._backlog = Backlog(self._lose)
        # what was lost since an event said so
        self._lost: list[Lost] = []
        self._request = 0
        self._reached: int | None = None
        self._epoch: int | None = None
        self._compactor = Compactor(runfile.folder, maker.segment, maker.rank, maker.directions)
        self._joining = True
        self._events: list[EventRecord] = []
        self._beat_due = time.monotonic() + HEARTBEAT_S
        self._failing: Exception | None = None
        # set here, read and cleared by the training thread
        self.problem: Problem | None = None

    def run(self) -> None:
        """Loop until the buffer closes; whatever happens, the thread lives on."""
        flush_due = time.monotonic() + self._flush_seconds
        busy = False
        while not self._buffer.closing:
            due = self._buffer.wait(0.0 if busy else min(flush_due, self._beat_due) - time.monotonic())
            if due or time.monotonic() >= flush_due:
                # counted from here, so that the time of writing does not add to the age of a record
                flush_due = time.monotonic() + self._flush_seconds
                self._cycle()
            if time.monotonic() >= self._beat_due:
                self._beat_due = time.monotonic() + HEARTBEAT_S
                self._save()
            busy = not self._buffer.closing and self._join_files()
        self._cycle()
        if self._events:
            self._cycle()

    def finish(self, status: str) -> None:
        """Write the rest, stop and set the status; for the training thread, once."""
        self._buffer.close()
        self.join()
        unwritten = self.unwritten
        if unwritten:
            self._give_up()
        self._save(status=status)
        # of thinned pairs nobody could count again what a resume cuts through
        self._compactor.finish(ended=status == "finished" and not self._maker.thinned)
        while self._join_files():
            pass
        self._compactor.leave_off()
        if self._failing is not None:
            what = f"{unwritten} part files" if unwritten else "run.json"
            self.problem = Problem(f"{what} could not be written", self._failing)

    @property
    def unwritten(self) -> int:
        """Part files that still wait for the disk."""
        return len(self._backlog)

    def _cycle(self) -> None:
        taken = self._buffer.take()
        if taken.stalled_s > 0 or taken.dropped:
            self._note_stall(taken.stalled_s, taken.dropped)
        events, self._events = self._events, []
        misfits: list[Exception] = []
        self._backlog.add(self._jobs([*taken.records, *events], misfits))
        if taken.request != self._request or self._buffer.closing:
            # a checkpoint may follow: what is counted before and after must be told apart
            self._backlog.add(self._maker.cut())
        if self._maker.epoch != self._epoch:
            self._epoch = self._maker.epoch
            self._compactor.end_epoch()
        self._request = taken.request
        if misfits:
            self._report(f"{len(misfits)} records do not fit into a part file and are lost", misfits[0])
        self._write()
        self._buffer.served(taken.request)

    def _jobs(self, records: Sequence[Record], misfits: list[Exception]) -> list[Job]:
        try:
            return self._maker.jobs(records)
        except Exception as error:
            if len(records) == 1:
                misfits.append(error)
                return []
        # halve until the record that does not fit is alone
        middle = len(records) // 2
        return [*self._jobs(records[:middle], misfits), *self._jobs(records[middle:], misfits)]

    def _write(self) -> None:
        try:
            if self._failing is not None and self._restore():
                self._note_vanished()
            self._backlog.write(self._runfile.folder, self._maker.segment, self._written)
        except Exception as error:
            self._backlog.make_room()
            self._fail(error)
        else:
            self._recover()

    def _join_files(self) -> bool:
        """Join a slice of part files; False when there is nothing to do."""
        if self._failing is not None:
            return False
        try:
            return self._compactor.step()
        except Exception as error:
            if self._joining:
                self._note("warning", f"part files stay small, joining them failed: {error}")
            self._joining = False
            return True

    def _save(self, **changes: Any) -> None:
        try:
            self._runfile.save(**changes)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._failing is None:
            # makes room on a full disk
            self._compactor.leave_off()
            self._report("the run log cannot be written, training goes on and the log tries again", error)
        self._failing = error

    def _report(self, what: str, error: Exception) -> None:
        self.problem = Problem(what, error)
        self._note("error", str(self.problem), error=type(error).__name__)

    def _recover(self) -> None:
        if self._failing is None:
            return
        self._failing = None
        lost = self._settle_losses()
        found = ", ".join(map(str, lost))
        tail = f"; {found} found no room in memory and are lost" if lost else ""
        self._note("warning" if lost else "info", f"the run log is written again{tail}", lost=lost)

    def _lose(self, job: Job) -> None:
        # rollups are counted again from the pairs, where those are all there
        if self._maker.thinned or not job.table.startswith("rollups/"):
            self._lost.append(lost_rows(self._maker.segment, job))
        if job.table == "pairs":
            self._count_anew()

    def _count_anew(self) -> None:
        """Write no rollup that counts rows which are gone; readers count those that are not."""
        if not self._maker.thinned:
            self._backlog.give_up(lambda job: job.table.startswith("rollups/"))
            self._maker.begin_anew()

    def _settle_losses(self) -> list[Lost]:
        """Note in run.json, for its next save, what was lost since the last time."""
        lost, self._lost = joined_losses(self._lost), []
        if lost:
            add_losses(self._runfile.content, lost)
        return lost

    def _give_up(self) -> None:
        """What waits is lost, but for events: they are small, and may find room."""
        for job in self._backlog.give_up(lambda job: job.table != "events"):
            self._lose(job)
        if lost := self._settle_losses():
            self._note("error", f"the run ends; {', '.join(map(str, lost))} are lost", lost=lost)
        try:
            self._backlog.add(self._maker.jobs(self._events))
            self._backlog.write(self._runfile.folder, self._maker.segment, self._written)
        except Exception as error:
            self._failing = error
        for job in self._backlog.give_up(lambda job: True):
            self._lose(job)
        self._settle_losses()

    def _written(self, job: Job) -> None:
        self._compactor.written(job)
        if job.table in {"steps", "pairs"}:
            self._reached = job.last

    def _note_vanished(self) -> None:
        self._compactor.forget()
        self._count_anew()
        lost = f", and steps up to {self._reached} with it" if self._reached is not None else ""
        self._note("error", f"the run's folder had vanished{lost}", lost_up_to=self._reached)

    def _note_stall(self, stalled_s: float, dropped: int) -> None:
        message = f"training waited {stalled_s:.3g} s for the run log, {dropped} records were dropped"
        self._note("warning", message, stalled_s=stalled_s, dropped=dropped)

    def _note(self, level: str, message: str, **data: object) -> None:
        now, step = time.time_ns() // 1000, self._last_step()
        self._events.append(EventRecord(now, step, level, "telemetry", message, json.dumps(data)))
