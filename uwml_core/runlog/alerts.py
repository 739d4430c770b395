"""Alerts while training runs: another process looks for illnesses, and the log notes what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from uwml_core.installation import child_environment
from uwml_core.runlog.records import EventRecord

KIND = "alert"
# Notes are no alerts.
_LEVELS = {"serious": "error", "warning": "warning"}
_GRACE_S = 5.0
_TOLD = ("rule", "severity", "numbers", "link")


class Alerts:
    """Has ``uwml doctor`` follow a run, and makes an event of each finding that is a warning or worse.

    The doctor is a process of the lowest priority that reads what was written. It ends with ``close``, with
    the run, and when this process is gone. That it could not start, or has failed, is told by an event, too.

    Args:
        run: folder of the run, on this machine.
        tell: takes the events; called by a thread of its own.
        step: gives the last step logged.
        every_s: seconds between two looks.
    """

    def __init__(
        self, run: Path, *, tell: Callable[[EventRecord], None], step: Callable[[], int], every_s: float
    ) -> None:
        self._tell, self._step = tell, step
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - the listening thread closes it
        try:
            self._process = process = _spawn(run, every_s, errors)
        except OSError as error:
            errors.close()
            self._event("warning", f"no alerts, their process cannot be started: {error}")
            return
        self._thread = threading.Thread(
            target=self._listen, args=(process, errors), name="uwml-alerts", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the process; what it has told until now is told."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
            # the thread waits where the log has no room
            self._thread.join(_GRACE_S)

    def _listen(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        with process, errors:
            for line in process.stdout or ():
                # the last one of a process that was ended may be cut off
                if line.endswith(b"\n"):
                    self._take(json.loads(line))
            code = process.wait()
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
        # 1 says that something serious was found
        if code not in (0, 1) and not self._closed:
            said = lines[-1] if lines else f"exit code {code}"
            self._event("warning", f"no more alerts, their process has failed: {said}")

    def _take(self, finding: dict[str, Any]) -> None:
        level = _LEVELS.get(finding["severity"])
        if level is not None:
            self._event(level, finding["title"], **{name: finding[name] for name in _TOLD})

    def _event(self, level: str, message: str, **data: Any) -> None:
        now = time.time_ns() // 1000
        self._tell(EventRecord(now, self._step(), level, KIND, message, json.dumps(data, ensure_ascii=False)))


def _spawn(run: Path, every_s: float, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    # -P: a random.py in the folder of the training is not the module of that name
    command = [sys.executable, "-P", "-m", "uwml_core", "doctor", str(run.absolute())]
    return subprocess.Popen(
        [*command, "--follow", "--every", str(every_s), "--json"],
        env={**child_environment(), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        # Ctrl-C is for the training, which ends this process
        start_new_session=True,
    )
