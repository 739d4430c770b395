"""Finding runs in a logs folder."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.synthetic import make_run, rewrite_run_json
from uwml_core.runlog.reader import list_runs


def test_runs_come_newest_first(tmp_path: Path) -> None:
    for name, created in (("b", "2026-01-02"), ("a", "2026-01-03"), ("c", "2026-01-01")):
        rewrite_run_json(make_run(tmp_path, run_id=name, steps=1), created_at=f"{created}T00:00:00+00:00")
    assert [run.run_id for run in list_runs(tmp_path)] == ["a", "b", "c"]


def test_only_folders_that_look_like_runs_are_listed(tmp_path: Path) -> None:
    make_run(tmp_path, run_id="ours", steps=1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign" / "pairs").mkdir(parents=True)
    (tmp_path / "flat").mkdir()
    pq.write_table(pa.table({"step": [1]}), tmp_path / "flat" / "steps.parquet")
    (tmp_path / "other" / "checkpoints").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file.txt").write_text("x")
    assert (tmp_path / "_items").is_dir()
    assert {run.run_id for run in list_runs(tmp_path)} == {"ours", "empty", "foreign", "flat"}


def test_newer_runs_are_listed_so_that_a_page_can_say_why(tmp_path: Path) -> None:
    rewrite_run_json(make_run(tmp_path, steps=1), schema_version=99)
    (run,) = list_runs(tmp_path)
    assert (run.run_id, run.status) == ("demo", "finished")


def test_no_folder_means_no_runs(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "nowhere") == []
    (tmp_path / "file").write_text("x")
    assert list_runs(tmp_path / "file") == []
    assert list_runs(tmp_path) == []


def test_a_thousand_runs_are_listed(tmp_path: Path) -> None:
    content = json.dumps(
        {"schema_version": 1, "status": "finished", "created_at": "2026-01-01T00:00:00+00:00"}
    )
    for k in range(1000):
        (tmp_path / f"run-{k:04d}").mkdir()
        (tmp_path / f"run-{k:04d}" / "run.json").write_text(content)
    runs = list_runs(tmp_path)
    assert [run.run_id for run in runs] == [f"run-{k:04d}" for k in reversed(range(1000))]
    assert {run.status for run in runs} == {"finished"}
