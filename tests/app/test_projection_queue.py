"""The queue of layouts: one at a time, the same one once, ended when told to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from uwml_core.projection.parameters import ProjectionParameters
from uwml_core.projection.progress import Progress, write_progress
from uwml_core.runlog.projections import projection_path
from uwml_core.ui import projection as module
from uwml_core.ui.projection import Job, ProjectionQueue, project_command

ANY = ProjectionParameters()


@pytest.fixture
def queue() -> Iterator[ProjectionQueue]:
    queue = ProjectionQueue()
    yield queue
    queue.close()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run's folder; a layout is a shell script that notes its begin and end, and waits for ``go``."""
    (tmp_path / "projections").mkdir()

    def command(folder: Path, parameters: ProjectionParameters) -> list[str]:
        key = f"{parameters.neighbors:08x}"
        steps = [
            f"echo begin >> log-{key}; echo x >> running; test $(wc -l < running) -le 1 || touch overlap",
            "until [ -e go ]; do sleep 0.02; done",
            f"sed -i 1d running; touch projections/{key}.parquet",
        ]
        return ["sh", "-c", f"cd '{folder}'; " + "; ".join(steps)]

    monkeypatch.setattr(module, "project_command", command)
    return tmp_path


def start(queue: ProjectionQueue, run: Path, number: int) -> Job:
    return queue.start(run, f"{number:08x}", ProjectionParameters(neighbors=number))


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_same_layout_asked_for_twice_is_computed_once(queue: ProjectionQueue, run: Path) -> None:
    first, second = start(queue, run, 2), start(queue, run, 2)
    assert first is second
    (run / "go").touch()
    wait(lambda: first.state == "finished")
    assert (run / "log-00000002").read_text() == "begin\n"


def test_different_layouts_come_one_after_the_other(queue: ProjectionQueue, run: Path) -> None:
    jobs = [start(queue, run, number) for number in (2, 3, 4)]
    wait(lambda: jobs[0].state == "running")
    assert [job.state for job in jobs[1:]] == ["queued", "queued"]
    assert [queue.waiting_before(job.key) for job in jobs] == [0, 1, 2]
    (run / "go").touch()
    wait(lambda: all(job.state == "finished" for job in jobs))
    assert not (run / "overlap").exists()
    again = start(queue, run, 5)
    wait(lambda: again.state == "finished")


def test_cancelled_job_ends_and_makes_room_for_the_next(queue: ProjectionQueue, run: Path) -> None:
    first, second, third = (start(queue, run, number) for number in (2, 3, 4))
    wait(lambda: first.process is not None)
    queue.cancel(second.key)
    queue.cancel(first.key)
    wait(lambda: third.state == "running")
    assert (first.state, second.state) == ("cancelled", "cancelled")
    assert first.process is not None
    first.process.wait(60)
    assert not (run / "log-00000003").exists()
    assert start(queue, run, 3) is not second


def test_command_that_cannot_start_or_fails_says_why(
    queue: ProjectionQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "project_command", lambda *_args: [str(tmp_path / "nothing")])
    broken = start(queue, tmp_path, 2)
    wait(lambda: broken.state == "failed")
    assert "nothing" in broken.problem
    monkeypatch.setattr(module, "project_command", lambda *_args: ["sh", "-c", "exit 7"])
    silent = start(queue, tmp_path, 3)
    wait(lambda: silent.state == "failed")
    assert silent.problem == "exit code 7"
    monkeypatch.setattr(module, "project_command", lambda *_args: ["true"])
    without = start(queue, tmp_path, 4)
    wait(lambda: without.state == "failed")


def test_progress_is_what_the_process_wrote(queue: ProjectionQueue, run: Path) -> None:
    job = start(queue, run, 2)
    assert job.progress() is None
    write_progress(projection_path(run / "projections", job.key), Progress(3, 8))
    assert job.progress() == Progress(3, 8)


def test_finished_jobs_are_forgotten_beyond_a_hundred(queue: ProjectionQueue, run: Path) -> None:
    (run / "go").touch()
    first = start(queue, run, 2)
    wait(lambda: first.state == "finished")
    with queue._lock:
        done = {f"{k:08x}": Job(run, f"{k:08x}", [], state="finished") for k in range(1000, 1200)}
        queue._jobs.update(done)
    newest = start(queue, run, 3)
    assert len(queue._jobs) <= module._REMEMBERED + 1
    assert queue.job(first.key) is None
    assert queue.job(newest.key) is newest


def test_unknown_key_has_no_job(queue: ProjectionQueue) -> None:
    assert queue.job("abc") is None
    queue.cancel("abc")
    assert queue.waiting_before("abc") == 0


def test_command_names_every_parameter(tmp_path: Path) -> None:
    words = project_command(tmp_path, ProjectionParameters(neighbors=7, min_dist=0.25, seed=3))
    assert words[1:6] == ["-m", "uwml_core", "project", str(tmp_path), "--quiet"]
    options = dict(zip(words[6::2], words[7::2], strict=True))
    assert options == {
        "--method": "umap", "--neighbors": "7", "--min-dist": "0.25", "--metric": "cosine",
        "--items": "20000", "--seed": "3",
    }  # fmt: skip
