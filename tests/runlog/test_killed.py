"""A writer that dies at any instant, and the segment that continues its run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.steps import CHILD, a_step, eventually, log_steps
from uwml_core.runlog.reader import Run, open_run
from uwml_core.runlog.writer import RunInUseError, RunLogger


def start(root: Path, first: int, output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as sink:
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, str(root), str(first), "0.1"], stdout=sink, start_new_session=True
        )


def kill_after(child: subprocess.Popen[bytes], run: Path, rows: int, pause_s: float) -> None:
    try:
        assert eventually(lambda: run.is_dir() and Run(run).table("steps").num_rows > rows)
        time.sleep(pause_s)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=120)


def assert_sound(run: Run, last_logged: int) -> int:
    """No issue, no gap, nothing twice, pairs of every listed step; returns the number of steps."""
    assert run.health() == ()
    steps = run.table("steps")["step"].to_pylist()
    assert steps == list(range(len(steps)))
    assert len(steps) <= last_logged + 1
    pairs = run.frame("pairs", columns=["step"])["step"].value_counts()
    assert set(steps) <= set(pairs.index)
    assert set(pairs) == {32}
    return len(steps)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_run_is_readable_and_a_resume_completes_it(tmp_path: Path, seed: int) -> None:
    pause, output = random.Random(seed).uniform(0.0, 0.3), tmp_path / "out"
    kill_after(start(tmp_path / "logs", 0, output), tmp_path / "logs" / "killed", 60, pause)
    run = open_run(tmp_path / "logs" / "killed")
    done = assert_sound(run, int(output.read_text().split("\n")[-2].split()[0]))
    assert run.info["status"] == "running"

    checkpoint = done - 25
    kill_after(start(tmp_path / "logs", checkpoint, output), run.path, done + 40, pause)
    again = assert_sound(run, int(output.read_text().split("\n")[-2].split()[0]))
    assert again > done
    assert [entry["first_step"] for entry in run.info["segments"]] == [0, checkpoint]
    evals = run.frame("evals")
    assert not evals.duplicated(["epoch", "metric"]).any()
    assert evals["value"].tolist() == [float(50 * k + 49) for k in range(len(evals))]
    segments = run.frame("ranks").groupby("step")["segment"].unique()
    assert all(len(found) == 1 for found in segments)
    assert not list(run.path.rglob("*/.*.tmp")) or run.health() == ()


def test_resume_drops_later_steps_of_earlier_segments(tmp_path: Path) -> None:
    for first, last in ((0, 10), (6, 12), (4, 8)):
        with RunLogger(tmp_path, "run", resume_from_step=first or None) as log:
            for step in range(first, last):
                log.log_step(a_step(step, loss=100.0 * first + step), item_ids=[0, 1])
                log.log_eval(split="val", metrics=[("i2t", "R@1", 100.0 * first + step, 2, None)])
                log.log_event("note", "here", origin=first)
                log.log_snapshot(embeddings={"image": [[first]]}, item_ids=[1], labels=[1], splits="val")
    run = open_run(tmp_path / "run")
    expected = [0.0, 1.0, 2.0, 3.0, 404.0, 405.0, 406.0, 407.0]
    assert run.table("steps")["loss"].to_pylist() == expected
    assert run.table("evals")["value"].to_pylist() == expected
    assert run.table("snapshots")["embedding"].to_pylist() == [[0]] * 4 + [[4]] * 4
    assert run.table("pairs").num_rows == 4 * len(expected)
    kinds = run.frame("events").query("kind == 'note'")["step"].tolist()
    assert kinds == list(range(8))
    parts = run.parts("steps")
    assert [(part.segment, part.first, part.last) for part in parts] == [(0, 0, 9), (2, 4, 7)]
    assert run.map_parts("steps", count_rows) == [4, 4]


def count_rows(table: object) -> int:
    return len(table)  # type: ignore[arg-type]


def test_resume_keeps_what_run_json_says_and_tells_by_an_event(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", name="first", seed=5, config={"a": 1}) as log:
        log_steps(log, range(3))
    leftover = tmp_path / "run" / "steps" / ".part-0000-000000003-000000004.parquet.1.tmp"
    leftover.write_bytes(b"half")
    with RunLogger(tmp_path, "run", resume_from_step=3) as log:
        assert open_run(log.path).status == "running"
        log_steps(log, [3])
    run = open_run(tmp_path / "run")
    assert (run.name, run.info["seed"], run.config) == ("first", 5, {"a": 1})
    assert run.status == "finished"
    assert not leftover.exists()
    (event,) = run.table("events").to_pylist()
    assert (event["kind"], event["step"], event["message"]) == ("resume", 2, "resumed at step 3")


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run_id=None cannot be resumed"):
        RunLogger(tmp_path, resume_from_step=3)
    with pytest.raises(ValueError, match="does not exist"):
        RunLogger(tmp_path, "run", resume_from_step=3)
    (tmp_path / "run").mkdir()
    with pytest.raises(ValueError, match=r"run\.json cannot be read"):
        RunLogger(tmp_path, "run", resume_from_step=3)
    (tmp_path / "run" / "run.json").write_text('{"schema_version": 99}')
    with pytest.raises(ValueError, match="schema_version=99"):
        RunLogger(tmp_path, "run", resume_from_step=3)


def test_second_writer_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    first = RunLogger(tmp_path, "run")
    for resume in (None, 0, 5):
        with pytest.raises(RunInUseError, match="run 'run' is being written by another process"):
            RunLogger(tmp_path, "run", resume_from_step=resume)
    first.close()
    RunLogger(tmp_path, "run", resume_from_step=0).close()


@pytest.mark.slow
def test_second_process_is_refused(tmp_path: Path) -> None:
    code = "import sys\nfrom uwml_core.runlog.writer import RunLogger\n"
    code += "RunLogger(sys.argv[1], 'run', resume_from_step=0)"
    with RunLogger(tmp_path, "run"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 1
    assert "RunInUseError: run 'run' is being written by another process" in done.stderr


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_data_loader_does_not_keep_the_run_locked(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run")
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        # the child closes its copy first thing, but maybe not yet
        time.sleep(0.2)
        log.close()
        RunLogger(tmp_path, "run", resume_from_step=0).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
