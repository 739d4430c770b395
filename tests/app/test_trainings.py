"""The one training of a server: started, watched, stopped, never left as a zombie."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from uwml_core.ui import trainings as module
from uwml_core.ui.trainings import Training, Trainings, train_command

Start = Callable[..., Training]


@pytest.fixture
def trainings() -> Iterator[Trainings]:
    own = Trainings()
    yield own
    own.close()
    if own.newest is not None:
        own.newest.wait(30)


@pytest.fixture
def start(trainings: Trainings, monkeypatch: pytest.MonkeyPatch) -> Start:
    def start_(code: str) -> Training:
        def spawn(command: list[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
            return subprocess.Popen([sys.executable, "-c", code], stderr=errors)

        monkeypatch.setattr(module, "_spawn", spawn)
        return trainings.start(Training("run", "a run"), [])

    return start_


def is_left(training: Training) -> bool:
    """Whether the process is still in the table of processes, as a zombie too."""
    assert training._process is not None
    try:
        os.kill(training._process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_training_that_ends_well_is_finished_and_leaves_no_process(start: Start) -> None:
    training = start("pass")
    training.wait(60)
    assert (training.state, training.problem, training.code) == ("finished", "", 0)
    assert training.ended_at is not None
    assert not is_left(training)


def test_the_last_line_of_the_errors_says_why_it_failed(start: Start) -> None:
    training = start("import sys; print('a\\nuwml: error: data.path is gone', file=sys.stderr); sys.exit(2)")
    training.wait(60)
    assert (training.state, training.problem, training.code) == ("failed", "data.path is gone", 2)


def test_a_killed_training_has_failed_by_a_signal(start: Start) -> None:
    training = start("import os; os.kill(os.getpid(), 9)")
    training.wait(60)
    assert (training.state, training.problem, training.code) == ("failed", "", -9)


def test_stopping_lets_it_save_and_is_no_failure(start: Start, trainings: Trainings, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = (
        "import pathlib, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        f"pathlib.Path({str(ready)!r}).touch()\nsignal.pause()"
    )
    training = start(code)
    end = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < end:
        time.sleep(0.01)
    trainings.stop(training)
    training.wait(60)
    assert (training.state, training.problem, training.code) == ("stopped", "", 143)
    trainings.stop(training)
    assert training.state == "stopped"
    assert not is_left(training)


def test_a_second_one_is_refused_while_the_first_runs(start: Start, trainings: Trainings) -> None:
    first = start("import time; time.sleep(60)")
    with pytest.raises(RuntimeError, match="'a run' is being trained; stop it or wait for its end"):
        trainings.start(Training("other", "another"), [])
    assert trainings.newest is first
    trainings.close()
    first.wait(60)
    assert start("pass") is trainings.newest


def test_a_process_that_cannot_be_made_is_a_failed_training(
    trainings: Trainings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(module, "_spawn", refuse)
    training = trainings.start(Training("run", "a run"), [])
    assert (training.state, training.problem) == ("failed", "[Errno 12] Cannot allocate memory")
    assert not training.runs


def test_the_command_runs_no_shell_and_no_module_of_the_folder() -> None:
    command = train_command("id", ["--set", "run.name=$(touch x); y"])
    assert command[0] == sys.executable
    assert command[1:4] == ["-P", "-m", "uwml_core"]
    assert command[-2:] == ["--set", "run.name=$(touch x); y"]
    assert command[command.index("--run-id") + 1] == "id"
