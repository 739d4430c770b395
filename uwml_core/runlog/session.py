"""The training thread's side of the writer thread: hand over, wait, and hear of problems."""

from __future__ import annotations

import atexit
import warnings
import weakref
from contextlib import ExitStack

from uwml_core.runlog.alerts import Alerts
from uwml_core.runlog.buffer import RecordBuffer
from uwml_core.runlog.copy_thread import CopyThread
from uwml_core.runlog.copying import RunCopy
from uwml_core.runlog.destination import Destination
from uwml_core.runlog.opening import OpenRun
from uwml_core.runlog.runfile import RunInUseError
from uwml_core.runlog.thread import Problem, WriterThread

# a part is written that often at most, unless many steps wait
REST_S = 1.0


class TelemetryWarning(UserWarning):
    """The log could not be written; training goes on."""


class TelemetryError(RuntimeError):
    """The log could not be written and ``strict=True`` was asked for."""


class Session:
    """One open run with its buffer and writer thread.

    Attributes:
        opened: the run's folder, run.json, locks and segment.
        directions: names of both directions, from run.json.
        put: hands a record to the writer thread; blocks while too many wait.
        step: last step logged; the one before the segment's first at the beginning.
    """

    def __init__(self, opened: OpenRun, *, flush_seconds: float, flush_steps: int, strict: bool) -> None:
        first, second = opened.runfile.content["directions"]
        self.opened, self.directions = opened, (str(first), str(second))
        self.step = opened.first_step - 1
        self._strict = strict
        self._closed = False
        self._ending = ExitStack()
        self._copying: CopyThread | None = None
        rest_s = min(REST_S, flush_seconds / 2)
        self._buffer = RecordBuffer(batch=flush_steps, capacity=4 * flush_steps, rest_s=rest_s)
        self._thread = WriterThread(
            self._buffer,
            opened.maker(self.directions),
            opened.runfile,
            flush_seconds=flush_seconds,
            restore=opened.restore,
            last_step=lambda: self.step,
        )
        self.put = self._buffer.put
        self._thread.start()
        _open.add(self)

    def raise_alerts(self, every_s: float) -> None:
        """Note as events, until the end, what ``uwml doctor`` finds wrong with the run."""
        alerts = Alerts(self.opened.runfile.folder, tell=self.put, step=lambda: self.step, every_s=every_s)
        self._ending.callback(alerts.close)

    def copy_to(self, place: Destination) -> None:
        """Have the run copied there while it grows, and at the end."""
        try:
            copy = RunCopy(self.opened.runfile.folder, place)
        except RunInUseError as error:
            self._thread.problem = Problem("it is not copied from here", error)
            return
        self._copying = CopyThread(copy, tell=self.put, step=lambda: self.step)

    def check(self) -> None:
        """Report a problem of the thread, if there is one.

        Raises:
            RuntimeError: if the run is closed.
            TelemetryError: for a problem when strict; otherwise it is a warning.
        """
        if self._closed:
            raise RuntimeError(
                f"run {self.opened.runfile.folder.name!r} is closed; open it again with resume_from_step"
            )
        if self._thread.problem is not None:
            self._report()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is written; False where that did not work in time."""
        self.check()
        served = self._buffer.flush(timeout_s)
        self._report()
        return served and not self._thread.unwritten

    def close(self, status: str) -> bool:
        """Write the rest and release the run; False when it was closed already."""
        if self._closed:
            return False
        self._closed = True
        _open.discard(self)
        self._ending.close()
        self._thread.finish(status)
        self.opened.release()
        self._report()
        if self._copying is not None and (error := self._copying.close()) is not None:
            self._thread.problem = Problem("its copy is not complete, `uwml copy` completes it", error)
            self._report()
        return True

    def _report(self) -> None:
        problem, self._thread.problem = self._thread.problem, None
        if problem is None:
            return
        message = f"run {self.opened.runfile.folder.name!r}: {problem}"
        if self._strict:
            raise TelemetryError(message) from problem.error
        warnings.warn(message, TelemetryWarning, stacklevel=4)


_open: weakref.WeakSet[Session] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # a loop that never calls close() keeps what it logged
    for session in list(_open):
        session.close("stopped")
