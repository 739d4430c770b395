"""Several processes that train together and write one run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.compute as pc
import pytest

from tests.support.steps import a_step, eventually, log_steps
from uwml_core.runlog import attaching
from uwml_core.runlog.reader import Run, open_run
from uwml_core.runlog.writer import RunInUseError, RunLogger, TelemetryWarning


def log_as(log: RunLogger, steps: range, batch: int = 2, tag: int = 0) -> None:
    """Steps whose items tell rank and tag."""
    ids = np.arange(batch) + 1000 * (log.rank + 1) + 100 * tag
    for step in steps:
        log.log_step(a_step(step, batch), item_ids=ids, step=step, epoch=0)


def both(root: Path, resume: int | None = None, **changes: object) -> tuple[RunLogger, RunLogger]:
    first = RunLogger(root, "run", rank=0, world_size=2, resume_from_step=resume, **changes)
    return first, RunLogger(root, "run", rank=1, world_size=2, resume_from_step=resume, **changes)


def test_each_process_adds_its_share_of_the_pairs(tmp_path: Path) -> None:
    logs = both(tmp_path)
    for log in logs:
        log_as(log, range(3))
        log.flush()
        log_as(log, range(3, 5))
        log.log_eval(split="val", metrics=[("i2t", "R@1", 1.0, 2, None)])
        log.log_event("note", f"rank {log.rank}")
        log.flush()
    run = open_run(tmp_path / "run")
    assert run.health() == ()
    names = sorted(part.path.name for part in run.parts("pairs"))
    assert names == [
        "part-0000-000000000-000000002.parquet",
        "part-0000-000000003-000000004.parquet",
        "part-0000r1-000000000-000000002.parquet",
        "part-0000r1-000000003-000000004.parquet",
    ]
    query = f"""SELECT step, item_id // 1000 AS writer, count(*) FROM '{run.path}/pairs/*.parquet'
        GROUP BY ALL ORDER BY ALL"""
    with duckdb.connect() as connection:
        assert connection.sql(query).fetchall() == [(s, w, 4) for s in range(5) for w in (1, 2)]
    own = run.frame("pairs").groupby(["step", run.frame("pairs")["item_id"] // 1000]).size()
    assert set(own) == {4}
    assert len(own) == 10
    # everything else comes from rank 0 alone
    assert run.table("steps").select(["step", "rank_count"]).to_pydict() == {
        "step": list(range(5)),
        "rank_count": [2] * 5,
    }
    assert run.table("evals").num_rows == 1
    assert [row["message"] for row in run.table("events").to_pylist()] == ["rank 0"]
    (segment,) = run.info["segments"]
    assert segment["world_size"] == 2
    for log in logs:
        log.close()


def test_a_resume_replaces_the_later_steps_of_every_process(tmp_path: Path) -> None:
    for tag, (first, last) in enumerate([(0, 10), (6, 12)]):
        for log in both(tmp_path, first or None):
            log_as(log, range(first, last), tag=tag)
            log.close()
    pairs = open_run(tmp_path / "run").frame("pairs")
    rows = pairs.groupby(["step", "item_id"]).size().index.to_list()
    expected = [
        (step, 1000 * writer + 100 * (step >= 6) + k)
        for step in range(12)
        for writer in (1, 2)
        for k in (0, 1)
    ]
    assert rows == expected
    assert len(pairs) == 12 * 2 * 4


def test_rows_come_step_by_step_then_by_direction_then_by_process(tmp_path: Path) -> None:
    first, second = both(tmp_path, flush_steps=2)
    log_as(first, range(6))
    for step in range(6):
        log_as(second, range(step, step + 1))
        second.flush()
    first.close()
    second.close()
    run = open_run(tmp_path / "run")
    table = run.table("pairs", columns=["item_id", "margin"])
    assert table.schema.names == ["item_id", "margin"]
    rows = run.table("pairs", columns=["step", "direction", "item_id"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (step, direction, item)
        for step in range(6)
        for direction in ("i2t", "t2i")
        for item in (1000, 1001, 2000, 2001)
    ]
    assert table["item_id"].to_pylist() == [row["item_id"] for row in rows]
    late = run.table("pairs", columns=["item_id"], filter=pc.field("step") == 4)
    assert late["item_id"].to_pylist() == [1000, 1001, 2000, 2001] * 2


def test_a_resume_may_have_fewer_processes(tmp_path: Path) -> None:
    for log in both(tmp_path):
        log_as(log, range(6))
        log.close()
    with RunLogger(tmp_path, "run", resume_from_step=4) as log:
        log_as(log, range(4, 8))
    run = open_run(tmp_path / "run")
    counts = run.frame("pairs").groupby("step").size().tolist()
    assert counts == [8] * 4 + [4] * 4
    assert run.table("steps")["rank_count"].to_pylist() == [2] * 4 + [1] * 4
    assert [entry["world_size"] for entry in run.info["segments"]] == [2, 1]


def test_a_wide_file_of_one_process_hides_nothing_of_another(tmp_path: Path) -> None:
    first, second = both(tmp_path)
    log_as(first, range(10))
    first.close()
    for steps in (range(5), range(5, 10)):
        log_as(second, steps)
        second.flush()
    run = open_run(tmp_path / "run")
    assert [(p.rank, p.first, p.last) for p in run.parts("pairs")] == [(0, 0, 9), (1, 0, 4), (1, 5, 9)]
    wide = run.path / "pairs" / "part-0000r1-000000000-000000009.parquet"
    shutil.copy(run.parts("pairs")[0].path, wide)
    assert [(p.rank, p.first, p.last) for p in run.parts("pairs")] == [(0, 0, 9), (1, 0, 9)]
    second.close()


def test_the_others_wait_for_the_first(tmp_path: Path) -> None:
    opened: list[RunLogger] = []

    def attach() -> None:
        opened.append(RunLogger(tmp_path, "run", rank=1, world_size=2))

    waiting = threading.Thread(target=attach)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    with RunLogger(tmp_path, "run", rank=0, world_size=2):
        waiting.join(60)
        (second,) = opened
        log_as(second, range(2))
        second.close()
    assert open_run(tmp_path / "run").table("pairs").num_rows == 8


def test_a_dead_run_is_not_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for log in both(tmp_path):
        log.close()
    monkeypatch.setattr(attaching, "ATTACH_S", 0.1)
    with pytest.raises(TimeoutError, match=r"rank=1 found no run 'run' opened by rank 0 .* within 0.1 s"):
        RunLogger(tmp_path, "run", rank=1, world_size=2, resume_from_step=3)
    with pytest.raises(TimeoutError, match="rank=1 found no run 'new'"):
        RunLogger(tmp_path, "new", rank=1, world_size=2)
    assert not (tmp_path / "new").exists()


def test_second_writer_of_a_rank_is_refused(tmp_path: Path) -> None:
    logs = both(tmp_path)
    with pytest.raises(RunInUseError, match="being written by another process"):
        RunLogger(tmp_path, "run", rank=0, world_size=2, resume_from_step=0)
    with pytest.raises(RunInUseError, match="being written by another process"):
        RunLogger(tmp_path, "run", rank=1, world_size=2)
    for log in logs:
        log.close()


def test_processes_that_disagree_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rank=2 with world_size=2: expected 0 to world_size - 1"):
        RunLogger(tmp_path, "run", rank=2, world_size=2)
    with pytest.raises(ValueError, match="run_id=None with rank=1"):
        RunLogger(tmp_path, rank=1, world_size=2)
    with RunLogger(tmp_path, "run", rank=0, world_size=2):
        with pytest.raises(ValueError, match="world_size=3 differs from 2"):
            RunLogger(tmp_path, "run", rank=1, world_size=3)
        with pytest.raises(ValueError, match="resume_from_step=5 differs from 0"):
            RunLogger(tmp_path, "run", rank=1, world_size=2, resume_from_step=5)
        RunLogger(tmp_path, "run", rank=1, world_size=2).close()


def test_one_process_needs_no_further_lock(tmp_path: Path) -> None:
    RunLogger(tmp_path, "run").close()
    assert sorted(path.name for path in (tmp_path / "run").glob("*.lock")) == ["run.lock"]


def test_every_process_goes_on_after_the_folder_vanished(tmp_path: Path) -> None:
    first, second = both(tmp_path, flush_seconds=0.02)
    for log in (first, second):
        log_as(log, range(2))
        assert log.flush()
    shutil.rmtree(tmp_path / "run")
    log_as(second, range(2, 4))
    with pytest.warns(TelemetryWarning, match="No such file"):
        assert not second.flush()
    assert not (tmp_path / "run").exists()
    log_as(first, range(2, 4))
    with pytest.warns(TelemetryWarning, match="No such file"):
        assert eventually(first.flush)
    assert eventually(second.flush)
    with pytest.raises(RunInUseError):
        RunLogger(tmp_path, "run", rank=1, world_size=2)
    for log in (second, first):
        log.close()
    assert open_run(tmp_path / "run").table("pairs").num_rows == 2 * 2 * 4


PROCESS = """
import sys
from tests.runlog.test_several_processes import log_as
from tests.support.steps import eventually
from uwml_core.runlog.writer import RunLogger
with RunLogger(sys.argv[1], "run", rank=int(sys.argv[2]), world_size=3) as log:
    log_as(log, range(30))
    # processes that train together meet at every step, so none ends before another has begun
    seen = {rank: (lambda rank=rank: list(log.path.glob(f"pairs/part-0000r{rank}-*"))) for rank in (1, 2)}
    assert log.rank or all(eventually(found) for found in seen.values())
"""


@pytest.mark.slow
def test_processes_of_their_own_write_one_run(tmp_path: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path), str(rank)]) for rank in (2, 1, 0)
    ]
    assert [child.wait(timeout=120) for child in children] == [0, 0, 0]
    run = Run(tmp_path / "run")
    assert set(run.frame("pairs").groupby(["step", "item_id"]).size()) == {2}
    assert run.table("pairs").num_rows == 30 * 3 * 4


def test_null_steps_of_ranks_stay_out_of_the_other_tables(tmp_path: Path) -> None:
    first, second = both(tmp_path)
    log_steps(second, range(2), phase="train")
    second.log_snapshot(embeddings={"image": [[1.0]]}, item_ids=[1], labels=[1], splits="val")
    assert second.log_items(item_keys=["a"], labels=[0], captions=[["b"]], fingerprint="ab" * 8) == "ab" * 8
    second.close("failed")
    run = open_run(tmp_path / "run")
    assert run.status == "running"
    assert sorted(path.name for path in run.path.iterdir() if path.is_dir()) == ["pairs", "rollups"]
    first.close()
    assert run.status == "finished"
    assert not (tmp_path / "_items").exists()
