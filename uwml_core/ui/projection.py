"""One queue of layouts for the whole server: one UMAP at a time, in a process of its own.

Two fits in two threads of one process can abort it, so the server itself never runs UMAP.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from uwml_core.projection.parameters import ProjectionParameters
from uwml_core.projection.progress import Progress, read_progress
from uwml_core.runlog.projections import find_projection, projection_folders, projection_path
from uwml_core.ui.assets import APP_ROOT

_REMEMBERED = 100
_GRACE_S = 5.0


@dataclass
class Job:
    """One layout that somebody asked for.

    Attributes:
        run: folder of the run.
        key: of the layout.
        command: what computes it.
        state: queued, running, finished, failed or cancelled.
        problem: last line of the error output of a failed one.
    """

    run: Path
    key: str
    command: list[str]
    state: str = "queued"
    problem: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def waits(self) -> bool:
        """Whether its result is still to come."""
        return self.state in ("queued", "running")

    def progress(self) -> Progress | None:
        """Snapshots laid out so far; None before the first."""
        for folder in projection_folders(self.run):
            progress = read_progress(projection_path(folder, self.key))
            if progress is not None:
                return progress
        return None


class ProjectionQueue:
    """Layouts asked for by all visitors; the same one asked for twice is computed once."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None

    def start(self, run: Path, key: str, parameters: ProjectionParameters) -> Job:
        """Queue a layout, or return the job that is at it already."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and job.waits:
                return job
            job = Job(run, key, project_command(run, parameters))
            self._jobs[key] = job
            self._jobs.move_to_end(key)
            self._forget_old()
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="uwml-projections", daemon=True)
                self._worker.start()
            return job

    def job(self, key: str) -> Job | None:
        """What became of a layout that was asked for; None where nobody did."""
        with self._lock:
            return self._jobs.get(key)

    def waiting_before(self, key: str) -> int:
        """How many others come first."""
        with self._lock:
            keys = [other for other, job in self._jobs.items() if job.waits]
        return keys.index(key) if key in keys else 0

    def cancel(self, key: str) -> None:
        """End a job; nothing of it stays but the state."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or not job.waits:
                return
            job.state = "cancelled"
            process = job.process
        if process is not None:
            _end(process)

    def close(self) -> None:
        """Cancel everything."""
        with self._lock:
            keys = [key for key, job in self._jobs.items() if job.waits]
        for key in keys:
            self.cancel(key)

    def _forget_old(self) -> None:
        done = [key for key, job in self._jobs.items() if not job.waits]
        for key in done[: max(0, len(self._jobs) - _REMEMBERED)]:
            del self._jobs[key]

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._run(job)

    def _next(self) -> Job | None:
        with self._lock:
            job = next((job for job in self._jobs.values() if job.state == "queued"), None)
            if job is None:
                self._worker = None
            return job

    def _run(self, job: Job) -> None:
        with tempfile.TemporaryFile() as errors:
            with self._lock:
                if job.state != "queued":
                    return
                try:
                    job.process = _spawn(job.command, errors.fileno())
                except OSError as error:
                    job.state, job.problem = "failed", str(error)
                    return
                job.state = "running"
            code = job.process.wait()
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
        with self._lock:
            if job.state == "running":
                found = code == 0 and find_projection(job.run, job.key) is not None
                job.state = "finished" if found else "failed"
                job.problem = "" if found else (lines[-1] if lines else f"exit code {code}")


def project_command(run: Path, parameters: ProjectionParameters) -> list[str]:
    """Command line that lays a run out."""
    options = [
        word
        for name, value in parameters.to_dict().items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return [sys.executable, "-m", "uwml_core", "project", str(run), "--quiet", *options]


def _spawn(command: list[str], errors: int) -> subprocess.Popen[bytes]:
    # one thread: the page and a training need the other cores
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        cwd=APP_ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()

    def insist() -> None:
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()

    threading.Thread(target=insist, daemon=True).start()


queue = ProjectionQueue()
atexit.register(queue.close)
