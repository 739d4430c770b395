"""Copying a run while it is written: in a thread of its own, trying again where the network fails."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from uwml_core.runlog.copying import CopyRefused, RunCopy
from uwml_core.runlog.last_good import FAILURES
from uwml_core.runlog.records import EventRecord
from uwml_core.runlog.runfile import RunInUseError

KIND = "copy"
# well below the age at which a reader takes a heartbeat for that of a killed run
EVERY_S = 5.0
_LONGEST_DELAY_S = 30.0
# how long the end of a training waits for a place that is out of reach
PATIENCE_S = 60.0


class CopyThread(threading.Thread):
    """Brings a copy up every few seconds; training hears of a problem by an event and at the end.

    Args:
        copy: of the run.
        tell: takes the events.
        step: gives the last step logged.
    """

    def __init__(
        self, copy: RunCopy, *, tell: Callable[[EventRecord], None], step: Callable[[], int]
    ) -> None:
        super().__init__(name="uwml-copy", daemon=True)
        self._copy, self._tell, self._step = copy, tell, step
        self._closing = threading.Event()
        self._failures = 0
        # set where nothing more can be done
        self._refused: Exception | None = None
        self.start()

    def run(self) -> None:
        """Loop until the run is closed, or somebody else writes there."""
        while not self._closing.wait(self._pause_s()) and self._refused is None:
            self._try()

    def _pause_s(self) -> float:
        return min(EVERY_S * 2.0 ** min(self._failures, 10), max(EVERY_S, _LONGEST_DELAY_S))

    def _try(self) -> Exception | None:
        """Bring the copy up; the error where that failed."""
        try:
            self._copy.bring_up()
        except (RunInUseError, CopyRefused) as error:
            self._refused = error
            self._event("error", f"the run is not copied any more: {error}")
            return error
        except (*FAILURES, ValueError) as error:
            self._failures += 1
            if self._failures == 1:
                self._event("warning", f"{self._copy.shown} cannot be written, and is tried again: {error}")
            return error
        if self._failures:
            self._failures = 0
            self._event("info", f"{self._copy.shown} is written again")
        return None

    def close(self, patience_s: float = PATIENCE_S) -> Exception | None:
        """Put the rest, once the run is closed.

        Returns:
            Why the copy is not complete; None when it is.
        """
        end = time.monotonic() + patience_s
        self._closing.set()
        self.join()
        problem, delay = self._refused or self._try(), 0.2
        while problem is not None and self._refused is None and time.monotonic() + delay < end:
            time.sleep(delay)
            problem, delay = self._try(), 2 * delay
        self._copy.close()
        return problem

    def _event(self, level: str, message: str) -> None:
        # what comes up at the end is for the caller of close: the log is closed by then
        if not self._closing.is_set():
            now = time.time_ns() // 1000
            self._tell(EventRecord(now, self._step(), level, KIND, message, json.dumps({})))
