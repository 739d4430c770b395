"""``uwml train --project``: the layout is there with the run, and its failure does not spoil the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.snapshots import log_run, pair_vectors
from uwml_core.__main__ import main
from uwml_core.projection import ProjectionParameters
from uwml_core.projection import job as job_module


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = log_run(tmp_path, "a", [pair_vectors(6)])
    monkeypatch.setattr("uwml_core.training.run_training", lambda *_, **__: path)
    return path


def test_snapshots_are_laid_out_at_the_end_where_asked(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ProjectionParameters]] = []
    monkeypatch.setattr(job_module, "project", lambda r, parameters: asked.append((r.run_id, parameters)))
    assert main(["train"]) == 0
    assert asked == []
    assert main(["train", "--project"]) == 0
    assert asked == [("a", ProjectionParameters())]


def test_run_is_told_though_its_layout_failed(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(job_module, "project", broken)
    assert main(["train", "--project"]) == 0
    told = capsys.readouterr()
    assert told.out == f"{run}\n"
    assert told.err == "The snapshots could not be laid out: disk full\n"
