"""Disks that fill up, folders that vanish: training goes on, the log says so and continues."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.rollups import assert_rollups_equal_recount
from tests.support.steps import a_step, eventually, log_batches, log_steps
from uwml_core.runlog import jobs, joining, parts, runfile
from uwml_core.runlog.buffer import RecordBuffer
from uwml_core.runlog.jobs import Job
from uwml_core.runlog.losses import lost_issues
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.records import EventRecord
from uwml_core.runlog.writer import RunInUseError, RunLogger, TelemetryError, TelemetryWarning


class FullDisk:
    """Stands in for every write of a part; full while ``full`` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full, self.failures = True, 0
        real = jobs.write_parquet

        def write(*arguments: object) -> None:
            if self.full:
                self.failures += 1
                raise OSError(errno.ENOSPC, "No space left on device")
            real(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(jobs, "write_parquet", write)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[FullDisk]:
    full = FullDisk(monkeypatch)
    yield full
    full.full = False


def test_training_goes_on_when_the_disk_is_full_and_nothing_is_lost_when_it_is_not_any_more(
    tmp_path: Path, disk: FullDisk
) -> None:
    log = RunLogger(tmp_path, "run", flush_seconds=0.02)
    log_steps(log, range(5))
    assert eventually(lambda: disk.failures > 2)
    with pytest.warns(TelemetryWarning, match="training goes on and the log tries again.*No space left"):
        log_steps(log, [5])
    log_steps(log, range(6, 9))
    disk.full = False
    assert eventually(log.flush)
    log_steps(log, [9])
    log.close()
    run = open_run(tmp_path / "run")
    assert run.table("steps")["step"].to_pylist() == list(range(10))
    assert run.table("pairs").num_rows == 40
    told = [(row["level"], row["kind"]) for row in run.table("events").to_pylist()]
    assert told == [("error", "telemetry"), ("info", "telemetry")]
    assert run.status == "finished"
    assert run.health() == ()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def fill(path: Path) -> None:
    """Write until no byte more fits."""
    with path.open("wb", buffering=0) as sink, contextlib.suppress(OSError):
        while sink.write(b"x" * 512):
            pass


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    log = RunLogger(small_disk, "run", flush_seconds=0.02)
    filler = small_disk / "filler"
    log_steps(log, range(3))
    assert log.flush()
    fill(filler)
    log_steps(log, range(3, 60), batch=64)
    with pytest.warns(TelemetryWarning, match="No space left"):
        assert not log.flush()
    run = open_run(small_disk / "run")
    assert run.health() == ()
    assert run.table("steps")["step"].to_pylist() == [0, 1, 2]
    filler.unlink()
    assert eventually(log.flush)
    log.close()
    assert run.table("steps")["step"].to_pylist() == list(range(60))
    assert run.status == "finished"
    assert not list(run.path.rglob(".*"))


def test_strict_log_raises_at_the_next_call(tmp_path: Path, disk: FullDisk) -> None:
    log = RunLogger(tmp_path, "run", flush_seconds=0.02, strict=True)
    log_steps(log, [0])
    assert eventually(lambda: disk.failures > 0)
    with pytest.raises(TelemetryError, match="No space left") as raised:
        assert eventually(lambda: log_steps(log, [1]) is not None)
    assert isinstance(raised.value.__cause__, OSError)
    disk.full = False
    log.close()


def test_disk_that_stays_full_is_told_at_the_end(tmp_path: Path, disk: FullDisk) -> None:
    log = RunLogger(tmp_path, "run")
    log_steps(log, range(3))
    with pytest.warns(TelemetryWarning, match="part files could not be written: .*No space left"):
        log.close()
    run = open_run(tmp_path / "run")
    assert run.status == "finished"
    assert [(issue.kind, issue.file, issue.steps) for issue in run.health()] == [
        ("lost", "events", (2, 2)),
        ("lost", "pairs", (0, 2)),
        ("lost", "steps", (0, 2)),
    ]
    assert run.health()[1].message == "12 rows of pairs, steps 0 to 2 could not be written and are lost"


def test_a_disk_that_is_full_to_the_end_is_told_in_the_run(small_disk: Path) -> None:
    log = RunLogger(small_disk, "run", flush_seconds=0.02)
    filler = small_disk / "filler"
    log_batches(log, range(3))
    assert log.flush()
    fill(filler)
    os.truncate(filler, filler.stat().st_size - 40_000)
    # more than there is room for, while run.json and an event still fit
    log_batches(log, range(3, 9), batch=2000)
    with pytest.warns(TelemetryWarning, match="part files could not be written: .*No space left"):
        log.close()
    run = open_run(small_disk / "run")
    assert run.status == "finished"
    assert {(issue.kind, issue.file) for issue in run.health()} >= {("lost", "pairs"), ("lost", "steps")}
    lost = next(issue for issue in run.health() if issue.file == "steps")
    assert run.table("steps")["step"].to_pylist() == list(range(lost.steps[0]))
    assert lost.steps[1] == 8
    assert "the run ends; " in run.table("events")["message"].to_pylist()[-1]
    assert_rollups_equal_recount(run)
    assert not list(run.path.rglob(".*"))


def test_steps_that_a_later_segment_does_again_are_not_lost(tmp_path: Path, disk: FullDisk) -> None:
    log = RunLogger(tmp_path, "run")
    log_steps(log, range(3))
    with pytest.warns(TelemetryWarning, match="No space left"):
        log.close()
    disk.full = False
    with RunLogger(tmp_path, "run", resume_from_step=0) as log:
        log_steps(log, range(4))
    run = open_run(tmp_path / "run")
    assert run.table("steps")["step"].to_pylist() == list(range(4))
    assert run.health() == ()


def test_what_a_strange_run_file_says_of_losses_is_no_error() -> None:
    entry = {"segment": 0, "table": "steps", "first": 1, "last": 2, "rows": 2}
    for odd in (None, 3, "x", [3], [{"segment": 0}], [{**entry, "first": "1"}], [{**entry, "table": None}]):
        assert lost_issues({"lost": odd}, {}) == []
    assert len(lost_issues({"lost": [entry]}, {})) == 1
    assert lost_issues({"lost": [entry]}, {0: 1}) == []


def test_flush_says_when_it_did_not_work(tmp_path: Path, disk: FullDisk) -> None:
    log = RunLogger(tmp_path, "run")
    log_steps(log, [0])
    with pytest.warns(TelemetryWarning, match="No space left"):
        assert not log.flush()
    disk.full = False
    assert log.flush()
    log.close()


def test_run_folder_that_vanishes_is_made_again(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run", name="kept", flush_seconds=0.02)
    log_steps(log, range(3))
    assert log.flush()
    shutil.rmtree(tmp_path / "run")
    log_steps(log, range(3, 6))
    with pytest.warns(TelemetryWarning, match="No such file"):
        assert eventually(log.flush)
    run = open_run(tmp_path / "run")
    assert run.name == "kept"
    assert run.table("steps")["step"].to_pylist() == [3, 4, 5]
    with pytest.raises(RunInUseError, match="being written by another process"):
        RunLogger(tmp_path, "run", resume_from_step=6)
    log.close()
    assert [row["level"] for row in run.table("events").to_pylist()] == ["error", "error", "info"]


def test_logs_folder_that_vanishes_is_made_again(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "logs"
    log = RunLogger(root, "run", flush_seconds=0.02)
    log_steps(log, range(3))
    assert log.flush()
    shutil.rmtree(tmp_path / "deep")
    log_steps(log, range(3, 6))
    with pytest.warns(TelemetryWarning, match="No such file"):
        assert eventually(log.flush)
    log.close()
    run = open_run(root / "run")
    assert run.table("steps")["step"].to_pylist() == [3, 4, 5]
    assert run.health() == ()
    told = [(row["level"], row["message"]) for row in run.table("events").to_pylist()]
    assert (told[1][0], told[1][1]) == ("error", "the run's folder had vanished, and steps up to 2 with it")


@pytest.mark.parametrize("gone", ["logs", "logs/run"])
def test_rollups_leave_out_the_steps_that_vanished(tmp_path: Path, gone: str) -> None:
    log = RunLogger(tmp_path / "logs", "run", flush_seconds=3600, flush_steps=2)
    log_batches(log, range(8), per_epoch=100)
    thread = log._session._thread
    assert eventually(lambda: open_run(log.path).table("steps").num_rows == 8 and not thread.unwritten)
    shutil.rmtree(tmp_path / gone)

    def train() -> None:
        log_batches(log, range(8, 30), per_epoch=100)
        assert eventually(log.flush)

    with pytest.warns(TelemetryWarning, match="No such file"):
        train()
    log_batches(log, range(30, 40), per_epoch=100)
    log.close()
    run = open_run(tmp_path / "logs" / "run")
    assert run.table("steps")["step"].to_pylist() == list(range(8, 40))
    assert_rollups_equal_recount(run)


def test_a_join_that_a_full_disk_interrupts_leaves_nothing_behind(
    tmp_path: Path, disk: FullDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.full = False
    monkeypatch.setattr("uwml_core.runlog.compactor.FAN_IN", 2)
    entered, may_end = threading.Event(), threading.Event()

    def slow(path: Path) -> None:
        entered.set()
        may_end.wait(60)

    monkeypatch.setattr(joining, "_to_disk", slow)
    log = RunLogger(tmp_path, "run", flush_seconds=3600, flush_steps=2)
    for first in (0, 2):
        log_batches(log, range(first, first + 2), per_epoch=100)
        assert log.flush()
    assert eventually(entered.is_set)
    assert list(log.path.rglob(".*"))
    disk.full = True
    log_batches(log, range(4, 6), per_epoch=100)
    assert eventually(lambda: not list(log.path.rglob(".*")))
    may_end.set()
    with pytest.warns(TelemetryWarning, match="No space left"):
        log.close()
    assert not list(log.path.rglob(".*"))
    assert open_run(log.path).table("steps")["step"].to_pylist() == list(range(4))


def test_logs_folder_that_cannot_be_made_again_costs_what_memory_cannot_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "logs"
    log = RunLogger(root, "run", flush_seconds=0.02)
    shutil.rmtree(root)
    root.write_text("a file stands where the folder was")
    log_steps(log, range(3))
    with pytest.warns(TelemetryWarning, match="Not a directory|No such file"):
        assert not log.flush()
    log_steps(log, [3])
    root.unlink()
    assert eventually(log.flush)
    log.close()
    assert open_run(root / "run").table("steps")["step"].to_pylist() == [0, 1, 2, 3]


def test_slow_disk_costs_nothing_but_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = parts.encode

    def slow(*arguments: object) -> None:
        time.sleep(0.02)
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(parts, "encode", slow)
    monkeypatch.setattr(joining, "_to_disk", lambda path: time.sleep(0.05))
    with RunLogger(tmp_path, "run", flush_steps=2, flush_seconds=0.02) as log:
        log_batches(log, range(60))
    run = open_run(tmp_path / "run")
    assert run.table("steps")["step"].to_pylist() == list(range(60))
    assert_rollups_equal_recount(run)
    assert run.health() == ()
    assert {row["level"] for row in run.table("events").to_pylist()} <= {"warning"}


def test_full_disk_loses_no_rollup(tmp_path: Path, disk: FullDisk) -> None:
    log = RunLogger(tmp_path, "run", flush_seconds=0.02)

    def train() -> None:
        log_batches(log, range(20))
        assert eventually(lambda: disk.failures > 2)
        log_batches(log, range(20, 30))

    with pytest.warns(TelemetryWarning, match="No space left"):
        train()
    disk.full = False
    log.close()
    run = open_run(tmp_path / "run")
    assert sum(run.table("rollups/margins")["count"].to_pylist()) == 30 * 16
    assert_rollups_equal_recount(run)


LIMITED = """
import resource, sys, time, warnings
from tests.support.steps import log_batches
from uwml_core.runlog import compactor
from uwml_core.runlog.writer import RunLogger

warnings.simplefilter("ignore")
compactor.FAN_IN = 3
small, large = int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_FSIZE)[0]
log = RunLogger(sys.argv[1], "run", flush_steps=5)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for step in range(0, 60, 5):
    if step == 20:
        resource.setrlimit(resource.RLIMIT_FSIZE, (small, hard))
    if step == 40 and sys.argv[3] == "again":
        resource.setrlimit(resource.RLIMIT_FSIZE, (large, hard))
    log_batches(log, range(step, step + 5), per_epoch=10, batch=32, items=500)
    print(log.flush())
    # time to join files
    time.sleep(0.05)
log.close()
"""


def limited(root: Path, size: int, then: str) -> list[str]:
    """Log 60 steps in a process whose files may not grow beyond a size from step 20 on."""
    command = [sys.executable, "-c", LIMITED, str(root), str(size), then]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.split()


def test_files_that_cannot_be_written_are_written_when_they_can(tmp_path: Path) -> None:
    told = limited(tmp_path, 1500, "again")
    assert told == ["True"] * 4 + ["False"] * 4 + ["True"] * 4
    run = open_run(tmp_path / "run")
    assert run.table("steps")["step"].to_pylist() == list(range(60))
    assert run.health() == ()
    assert run.status == "finished"
    assert not list(run.path.rglob(".*"))
    told = run.table("events").to_pylist()
    levels = [row["level"] for row in told if "stay small" not in row["message"]]
    assert levels == ["error", "info"]
    assert_rollups_equal_recount(run)


def test_a_join_that_does_not_fit_leaves_the_small_files(tmp_path: Path) -> None:
    told = limited(tmp_path, 22_000, "never")
    assert told == ["True"] * 12
    run = open_run(tmp_path / "run")
    assert run.table("steps")["step"].to_pylist() == list(range(60))
    assert run.table("pairs").num_rows == 60 * 64
    assert run.health() == ()
    assert not list(run.path.rglob(".*"))
    assert any("part files stay small" in row["message"] for row in run.table("events").to_pylist())
    assert_rollups_equal_recount(run)


READ_ONLY = """
import os, sys, tempfile, warnings
from tests.support.steps import log_batches
from uwml_core.runlog.writer import RunLogger

warnings.simplefilter("ignore")
with tempfile.TemporaryDirectory() as other, RunLogger(other, "run") as log:
    # loads all that another user may not be allowed to
    log_batches(log, range(5))
if os.geteuid() == 0:
    # root may write anywhere
    os.setegid(65534)
    os.seteuid(65534)
log = RunLogger(sys.argv[1], "run", flush_steps=5)
log_batches(log, range(10))
print(log.flush())
folders = [log.path, *(path for path in log.path.rglob("*") if path.is_dir())]
for folder in folders:
    folder.chmod(0o555)
log_batches(log, range(10, 20))
print(log.flush())
for folder in folders:
    folder.chmod(0o755)
log_batches(log, range(20, 30))
print(log.flush())
log.close()
"""


def test_folder_that_becomes_read_only_for_a_while() -> None:
    # not below the test's own folder, which no other user may enter
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        command = [sys.executable, "-c", READ_ONLY, folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout.split() == ["True", "False", "True"]
        run = open_run(Path(folder) / "run")
        assert run.table("steps")["step"].to_pylist() == list(range(30))
        assert run.health() == ()
        told = run.table("events").to_pylist()
        # joining files may have met the closed folder first and say so, too
        assert [row["level"] for row in told if row["level"] != "warning"] == ["error", "info"]
        assert "Permission denied" in told[0]["message"]
        assert_rollups_equal_recount(run)


def test_heartbeat_that_cannot_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwml_core.runlog.thread.HEARTBEAT_S", 0.01)
    log = RunLogger(tmp_path, "run", flush_seconds=3600)
    real = runfile.os.replace

    def refuse(source: object, target: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(runfile.os, "replace", refuse)
    assert eventually(lambda: log._session._thread.problem is not None)
    with pytest.warns(TelemetryWarning, match="Permission denied"):
        log.log_event("note", "tick")
    monkeypatch.setattr(runfile.os, "replace", real)
    assert eventually(log.flush)
    log.close()


def test_heartbeat_is_renewed_without_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uwml_core.runlog.thread.HEARTBEAT_S", 0.01)
    with RunLogger(tmp_path, "run") as log:
        run = open_run(log.path)
        first, version = run.heartbeat_at, run.version()
        assert eventually(lambda: run.heartbeat_at != first)
        assert run.version() == version


def test_record_that_fits_no_column_is_told_and_the_next_ones_are_kept(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run", flush_seconds=3600)
    log_steps(log, range(3), phase="train")
    log.log_step(a_step(3), item_ids=[0, 1], odd="text")
    log_steps(log, [4, 5], phase="train")
    with pytest.warns(TelemetryWarning, match="1 records do not fit into a part file and are lost: .*text"):
        log.flush()
    log_steps(log, [6])
    log.close()
    run = open_run(tmp_path / "run")
    assert run.table("steps")["step"].to_pylist() == [0, 1, 2, 4, 5, 6]
    assert run.table("pairs").num_rows == 24
    assert [row["kind"] for row in run.table("events").to_pylist()] == ["phase", "telemetry"]


@pytest.mark.parametrize("name", ["margin", "negative_index"])
def test_an_array_of_another_length_is_told_by_its_name(tmp_path: Path, name: str) -> None:
    log = RunLogger(tmp_path, "run", flush_seconds=3600)
    log_steps(log, range(2))
    bad = np.zeros((3, 2), np.int64)
    log.log_step(a_step(2, **{name: bad}), item_ids=[0, 1])
    # together as many as expected, but not for each
    log.log_step(a_step(3, **{name: bad[:1]}), item_ids=[0, 1])
    log_steps(log, [4])
    with pytest.warns(TelemetryWarning, match=rf"2 records .* last.{name} has \[6\] .* expected .* \[4\]"):
        log.flush()
    log.close()
    assert open_run(tmp_path / "run").table("steps")["step"].to_pylist() == [0, 1, 4]


def test_a_batch_waits_for_the_rest_after_the_last_one_unless_many_do() -> None:
    buffer = RecordBuffer(batch=2, capacity=8, rest_s=3600.0)
    event = EventRecord(0, 0, "info", "note", "", None)
    assert not buffer.wait(0.0)
    buffer.put(event)
    buffer.put(event)
    assert buffer.wait(0.0)
    assert len(buffer.take().records) == 2
    for _ in range(5):
        buffer.put(event)
        assert not buffer.wait(0.0)
    buffer.put(event)
    assert buffer.wait(0.0)
    assert len(buffer.take().records) == 6
    # rested by now
    buffer._rested = 0.0
    buffer.put(event)
    assert not buffer.wait(0.0)
    buffer.put(event)
    assert buffer.wait(0.0)


def test_full_buffer_blocks_until_the_writer_takes_and_says_how_long() -> None:
    buffer = RecordBuffer(batch=1, capacity=2)
    event = EventRecord(0, 0, "info", "note", "", None)
    buffer.put(event)
    buffer.put(event)
    third = threading.Thread(target=buffer.put, args=(event,))
    third.start()
    third.join(0.05)
    assert third.is_alive()
    assert len(buffer.take().records) == 2
    third.join(30)
    taken = buffer.take()
    assert len(taken.records) == 1
    assert taken.stalled_s > 0
    assert taken.dropped == 0


def test_writer_that_hangs_costs_records_but_never_the_training() -> None:
    buffer = RecordBuffer(batch=1, capacity=1, patience_s=0.01)
    event = EventRecord(0, 0, "info", "note", "", None)
    for _ in range(4):
        buffer.put(event)
    taken = buffer.take()
    assert (len(taken.records), taken.dropped) == (1, 3)
    buffer.put(event)
    assert buffer.take().dropped == 0


def test_stall_becomes_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    real = jobs.write_parquet

    def slow(*arguments: object) -> None:
        gate.wait(30)
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs, "write_parquet", slow)
    with RunLogger(tmp_path, "run", flush_steps=1) as log:
        trainer = threading.Thread(target=log_steps, args=(log, range(12)))
        trainer.start()
        trainer.join(0.1)
        assert trainer.is_alive()
        gate.set()
        trainer.join(30)
    run = open_run(tmp_path / "run")
    assert run.table("steps")["step"].to_pylist() == list(range(12))
    told = run.table("events").to_pylist()
    assert {(event["level"], event["kind"]) for event in told} == {("warning", "telemetry")}
    assert all("training waited" in event["message"] for event in told)
    assert [json.loads(event["data"])["dropped"] for event in told] == [0] * len(told)


def test_backlog_gives_up_the_oldest_parts_when_memory_is_short(tmp_path: Path, disk: FullDisk) -> None:
    log = RunLogger(tmp_path, "run", flush_seconds=0.01)
    log._session._thread._backlog._limit_bytes = 20_000

    def train() -> None:
        for step in range(12):
            log_batches(log, [step], batch=16)
            log.flush()

    with pytest.warns(TelemetryWarning, match="No space left"):
        train()
    disk.full = False
    assert eventually(log.flush)
    log.close()
    run = open_run(tmp_path / "run")
    steps = run.table("steps")["step"].to_pylist()
    assert 0 < len(steps) < 12
    assert steps == sorted(set(steps))
    assert steps[-1] == 11
    last = run.table("events").to_pylist()[-1]
    assert last["level"] == "warning"
    assert "rows of pairs, steps 0 to" in last["message"]
    assert "found no room in memory and are lost" in last["message"]
    assert json.loads(last["data"])["lost"]
    told = {issue.file: issue for issue in run.health()}
    assert {issue.kind for issue in told.values()} == {"lost"}
    assert told["steps"].steps == (0, steps[0] - 1)
    assert_rollups_equal_recount(run)


def test_failed_write_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parts, "encode", fail)
    job = Job(table="steps", first=0, last=0, data=None)
    with pytest.raises(OSError, match="No space"):
        job.write(tmp_path, 0)
    assert list(tmp_path.rglob("*.*")) == []
