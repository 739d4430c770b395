"""Jobs that wait for the disk: none is lost unless the disk refuses them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from uwml_core.runlog.jobs import Backlog, Job
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger

LIMIT = 1000


def jobs(path: Path, count: int) -> list[Job]:
    """Parts of a table, a little more than the limit each two."""
    with RunLogger(path, "r") as log:
        log.log_eval(split="val", metrics=[("i2t", "R@1", 1.0, 10, 0.0)], step=0, epoch=0)
    table = open_run(path / "r").table("evals")
    one = table.take(np.zeros(LIMIT // (2 * max(1, table.nbytes)) + 1, np.int64))
    return [Job(table="evals", first=k, last=k, data=one) for k in range(100, 100 + count)]


def test_more_than_the_limit_at_once_is_written_whole(tmp_path: Path) -> None:
    lost: list[Job] = []
    made, backlog = jobs(tmp_path, 20), Backlog(lost.append, limit_bytes=LIMIT)
    backlog.add(made)
    written: list[Job] = []
    backlog.write(tmp_path / "r", 0, written.append)
    assert (lost, written, len(backlog)) == ([], made, 0)
    assert len(list((tmp_path / "r" / "evals").glob("*.parquet"))) == 21


def test_a_disk_that_refuses_costs_the_oldest(tmp_path: Path) -> None:
    lost: list[Job] = []
    made, backlog = jobs(tmp_path, 20), Backlog(lost.append, limit_bytes=LIMIT)
    backlog.add(made)
    with pytest.raises(FileNotFoundError):
        backlog.write(tmp_path / "gone", 0, lambda job: None)
    backlog.make_room()
    assert lost == made[: len(lost)]
    assert 0 < len(backlog) < 20
    assert sum(job.data.nbytes for job in made[len(lost) :]) <= LIMIT or len(backlog) == 1


def test_snapshots_that_are_larger_than_the_backlog_all_arrive(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "r") as log:
        log._session._thread._backlog._limit_bytes = 10_000
        for step in range(8):
            vectors = np.random.default_rng(step).normal(size=(50, 64)).astype(np.float32)
            log.log_snapshot(
                item_ids=np.arange(50),
                labels=np.arange(50),
                splits="val",
                embeddings={"image": vectors, "text": vectors},
                step=step,
                epoch=step,
            )
    run = open_run(tmp_path / "r")
    assert sorted(set(run.table("snapshots")["step"].to_pylist())) == list(range(8))
    assert not run.health()
