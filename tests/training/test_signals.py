"""The command line under Ctrl-C, SIGTERM and SIGKILL, in processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import uwml_core
from uwml_core.runlog.reader import open_run
from uwml_core.training import build_config, run_training

ROOT = Path(uwml_core.__file__).parent.parent
LONG = ["data.batch_size=16", "train.epochs=12"]
STEPS = 12 * 15


def start(python: str, settings: list[str], *words: str) -> subprocess.Popen[str]:
    command = [python, "-m", "uwml_core", "train", *words]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_run(root: Path, process: subprocess.Popen[str], checkpoints: int) -> Path:
    """Folder of the run once so many checkpoints were written."""
    seen: set[int] = set()
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        for path in root.glob("*/checkpoint/last.pt"):
            seen.add(path.stat().st_mtime_ns)
            if len(seen) >= checkpoints:
                return path.parent.parent
        time.sleep(0.005)
    pytest.fail(f"no run to stop: {process.communicate()}")


def losses(path: Path) -> list[tuple[int, float]]:
    table = open_run(path).table("steps", columns=["step", "loss"]).sort_by("step")
    return list(zip(table["step"].to_pylist(), table["loss"].to_pylist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_cleanly(python, settings, tmp_path, number, code):
    process = start(python, [*settings, *LONG])
    path = wait_for_run(tmp_path / "logs", process, 2)
    process.send_signal(number)
    out, err = process.communicate(timeout=240)
    assert process.returncode == code
    assert out == ""
    assert f"Continue with: uwml train --resume {path}" in err
    assert "Traceback" not in err
    run = open_run(path)
    assert run.status == "stopped"
    assert not run.health()
    steps = [step for step, _ in losses(path)]
    assert steps == list(range(len(steps)))
    assert f"Stopped after {len(steps)} steps" in err


@pytest.mark.slow
def test_a_killed_run_resumes_without_a_step_twice_and_with_the_losses_of_an_unbroken_one(
    python, settings, tmp_path
):
    process = start(python, [*settings, *LONG])
    path = wait_for_run(tmp_path / "logs", process, 3)
    time.sleep(0.1)
    process.kill()
    process.communicate()
    assert open_run(path).info["status"] == "running"
    resumed = start(python, [], "--resume", str(path), "--quiet")
    out, err = resumed.communicate(timeout=240)
    assert (resumed.returncode, out.strip(), err) == (0, str(path), "")
    unbroken = run_training(build_config(settings=[*settings, *LONG]), progress=False)
    assert losses(path) == losses(unbroken)
    assert [step for step, _ in losses(path)] == list(range(STEPS))
    assert open_run(path).status == "finished"
