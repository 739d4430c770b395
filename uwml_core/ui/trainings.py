"""The training that this server has started: one at a time, in a process of its own, for all visitors.

The process belongs to the server and not to a visitor: pages come and go while it trains, and what it has
done so far stands in its run log like that of any other run. When the server ends, the training is asked
to stop, saves everything and can be continued with ``uwml train --resume``; when the server is killed, it
trains on to its end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from uwml_core.installation import child_environment

_PREFIX = "uwml: error: "


@dataclass(eq=False)
class Training:
    """One training process.

    Attributes:
        run_id: of the run that it writes, whose folder appears once the data are read.
        name: what the run is called.
        parent: id of the run whose settings it changes; None without.
        state: running, stopping, finished, stopped or failed.
        problem: last line of the error output of one that failed; empty without.
        code: exit code, below 0 the number of a signal; None before the end.
        ended_at: ``time.monotonic()`` of its end, None before.
    """

    run_id: str
    name: str
    parent: str | None = None
    state: str = "running"
    problem: str = ""
    code: int | None = None
    ended_at: float | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def runs(self) -> bool:
        """Whether its process is still there."""
        return self.state in ("running", "stopping")

    def wait(self, seconds: float) -> None:
        """Wait for the end of the process, at most so long."""
        end = time.monotonic() + seconds
        while self.runs and time.monotonic() < end:
            time.sleep(0.02)


class Trainings:
    """Starts trainings, one at a time, and knows the newest."""

    def __init__(self) -> None:
        self._newest: Training | None = None
        self._lock = threading.Lock()

    @property
    def newest(self) -> Training | None:
        """The one that runs, or ran last; None before the first."""
        return self._newest

    def start(self, training: Training, options: Sequence[str]) -> Training:
        """Start a training.

        Args:
            training: a new one.
            options: of ``uwml train``; ``--run-id`` is added.

        Returns:
            The training, failed where its process cannot be made.

        Raises:
            RuntimeError: if another one is running.
        """
        with self._lock:
            if self._newest is not None and self._newest.runs:
                raise RuntimeError(f"{self._newest.name!r} is being trained; stop it or wait for its end")
            self._newest = training
            errors = tempfile.TemporaryFile()  # noqa: SIM115 - the watching thread closes it
            try:
                training._process = _spawn(train_command(training.run_id, options), errors)
            except (OSError, ValueError) as error:
                errors.close()
                training.problem, training.state = str(error), "failed"
                training.ended_at = time.monotonic()
                return training
        # waited for, so that nothing of it stays in the table of processes
        watcher = threading.Thread(target=self._watch, args=(training, errors), daemon=True)
        watcher.start()
        return training

    def stop(self, training: Training) -> None:
        """Ask a training to end with everything saved; nothing happens where it has ended."""
        with self._lock:
            if training._process is not None and training.runs:
                training.state = "stopping"
                training._process.terminate()

    def close(self) -> None:
        """Ask what is running to end."""
        if self._newest is not None:
            self.stop(self._newest)

    def _watch(self, training: Training, errors: IO[bytes]) -> None:
        process = training._process
        if process is None:
            return
        code = process.wait()
        with errors:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
        with self._lock:
            asked = training.state == "stopping" and code != 0
            training.code, training.ended_at = code, time.monotonic()
            training.state = "stopped" if asked else "failed" if code else "finished"
            training.problem = lines[-1].removeprefix(_PREFIX) if lines and training.state == "failed" else ""


def train_command(run_id: str, options: Sequence[str]) -> list[str]:
    """Command line of a training.

    Args:
        run_id: of the run that it writes.
        options: of ``uwml train``.
    """
    # -P: a random.py in the folder of the server is not the module of that name
    return [sys.executable, "-P", "-m", "uwml_core", "train", "--quiet", "--run-id", run_id, *options]


def _spawn(command: list[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    # the folder of the server, which paths of data are relative to
    return subprocess.Popen(
        command,
        cwd=Path.cwd(),
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
    )


trainings = Trainings()
