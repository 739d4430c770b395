"""One layout is computed once, whoever asks, and is there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.snapshots import log_run, pair_vectors
from uwml_core.projection import job as job_module
from uwml_core.projection.job import follow, project
from uwml_core.projection.parameters import ProjectionParameters, chain_keys
from uwml_core.projection.progress import Progress, only_one, progress_path, read_progress, write_progress
from uwml_core.runlog.projection_facts import read_facts
from uwml_core.runlog.projections import projection_folders, projection_path, read_parameters, read_projection
from uwml_core.runlog.reader import open_run

PCA = ProjectionParameters(method="pca")
UMAP = ProjectionParameters(neighbors=5)


def command(run: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "uwml_core", "project", str(run), *options]


def started(run: Path, *options: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command(run, *options), env=environment, **pipes)  # type: ignore[call-overload,no-any-return]


def layout_path(run: Path, parameters: ProjectionParameters) -> Path:
    key = chain_keys(open_run(run), parameters)[-1]
    return projection_path(projection_folders(run)[0], key)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return log_run(tmp_path / "logs", "a", [pair_vectors(12, seed=seed) for seed in range(3)])


def test_layout_has_every_point_of_every_snapshot(run: Path) -> None:
    reported: list[Progress] = []
    path = project(open_run(run), PCA, reported.append)
    frame = read_projection(path)
    assert frame is not None
    assert frame.groupby(["step", "epoch"], observed=True).size().to_dict() == {
        (0, 0): 24,
        (10, 1): 24,
        (20, 2): 24,
    }
    assert set(frame["modality"]) == {"image", "text"}
    assert reported == [Progress(1, 3), Progress(2, 3), Progress(3, 3)]
    assert read_parameters(path) == {"method": "pca"}
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_layout_that_is_there_is_not_computed_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project(open_run(run), PCA)

    def never(*_args: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(job_module, "_compute", never)
    assert project(open_run(run), PCA) == path


def test_run_without_snapshots_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="log them with RunLogger"):
        project(open_run(log_run(tmp_path, "empty", [])), PCA)


def test_layout_says_what_became_of_each_snapshot(tmp_path: Path) -> None:
    nothing = np.full((12, 8), np.nan)
    wider = np.concatenate([pair_vectors(12)[0], np.zeros((12, 2))], axis=1)
    logged = [(nothing, nothing), pair_vectors(12), (wider, wider), pair_vectors(12, seed=1)]
    path = project(open_run(log_run(tmp_path, "a", logged)), PCA)
    facts = read_facts(path)
    assert facts is not None
    assert [one.outcome for one in facts.snapshots] == ["empty", "axes", "other_size", "axes"]
    assert [(one.points, one.left_out) for one in facts.snapshots] == [(0, 24), (24, 0), (0, 0), (24, 0)]
    assert (facts.noise_floor, facts.items, facts.items_of) == (None, None, 0)


@pytest.mark.parametrize("parameters", [PCA, UMAP])
def test_run_without_a_usable_vector_has_an_empty_layout(
    tmp_path: Path, parameters: ProjectionParameters
) -> None:
    nothing = np.full((6, 8), np.nan)
    path = project(open_run(log_run(tmp_path, "a", [(nothing, nothing)] * 2)), parameters)
    frame, facts = read_projection(path), read_facts(path)
    assert frame is not None
    assert len(frame) == 0
    assert facts is not None
    assert [(one.outcome, one.left_out) for one in facts.snapshots] == [("empty", 12)] * 2


def test_following_a_run_that_has_ended_lays_it_out_once(run: Path) -> None:
    assert follow(open_run(run), PCA) == project(open_run(run), PCA)


def test_following_a_running_run_takes_in_what_arrives(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = iter(["running", "running", "finished"])
    monkeypatch.setattr(type(open_run(run)), "status", property(lambda _self: next(asked)))
    monkeypatch.setattr(job_module, "_LOOK_S", 0.0)
    done: list[int] = []
    monkeypatch.setattr(job_module, "project", lambda *_args: done.append(1) or run)
    assert follow(open_run(run), PCA) == run
    assert len(done) == 3


@pytest.mark.slow
def test_run_of_many_items_is_laid_out_by_the_same_sample_everywhere(tmp_path: Path) -> None:
    logged = [pair_vectors(30, seed=seed) for seed in range(2)]
    path = project(open_run(log_run(tmp_path, "a", logged)), ProjectionParameters(neighbors=5, items=10))
    frame, facts = read_projection(path), read_facts(path)
    assert frame is not None
    assert facts is not None
    items = [set(rows["item_id"]) for _step, rows in frame.groupby("step")]
    assert items[0] == items[1]
    assert len(items[0]) == 10
    assert (facts.items, facts.items_of, facts.stratified_by) == (10, 30, "split")


@pytest.mark.slow
def test_grown_run_continues_and_gives_the_same_as_from_the_start(tmp_path: Path) -> None:
    logged = [pair_vectors(12, seed=seed) for seed in range(3)]
    whole, growing = (log_run(tmp_path / name, "a", logged) for name in ("whole", "growing"))
    last = sorted((growing / "snapshots").iterdir())[-1]
    kept = last.rename(tmp_path / "kept")
    earlier = project(open_run(growing), UMAP)
    kept.rename(last)
    reported: list[Progress] = []
    after = read_projection(project(open_run(growing), UMAP, reported.append))
    expected = read_projection(project(open_run(whole), UMAP))
    assert after is not None
    assert expected is not None
    np.testing.assert_array_equal(after[["x", "y"]].to_numpy(), expected[["x", "y"]].to_numpy())
    assert reported == [Progress(3, 3)]
    facts = [read_facts(layout_path(place, UMAP)) for place in (growing, whole)]
    assert facts[0] is not None
    assert facts[0] == facts[1]
    # the new file has all that was in it
    assert not earlier.exists()


@pytest.mark.slow
def test_two_processes_that_ask_at_once_compute_once(run: Path) -> None:
    both = [started(run, "--neighbors", "5") for _ in range(2)]
    answers = [process.communicate(timeout=240) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert answers[0][0] == answers[1][0] == f"{layout_path(run, UMAP)}\n"
    assert sorted("laid out" in errors for _output, errors in answers) == [False, True]
    assert [p.name for p in (run / "projections").iterdir()] == [layout_path(run, UMAP).name]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_half_way_leaves_no_half_file(tmp_path: Path, number: signal.Signals) -> None:
    run = log_run(tmp_path / "logs", "a", [pair_vectors(60, seed=seed) for seed in range(60)])
    process = started(run, "--neighbors", "5")
    path = layout_path(run, UMAP)
    deadline = time.monotonic() + 240
    while read_progress(path) is None and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (143 if number == signal.SIGTERM else -9)
    assert not path.exists()
    if number == signal.SIGTERM:
        assert list(path.parent.iterdir()) == []
    (path.parent / f".{path.name}.123.tmp").write_bytes(b"half")
    assert project(open_run(run), UMAP) == path
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_command_says_in_one_line_what_is_wrong(tmp_path: Path, run: Path) -> None:
    for arguments, message in (
        ([str(tmp_path / "nothing")], "is no folder; expected the folder of a run"),
        ([str(run), "--neighbors", "1"], "neighbors=1 is outside 2 to 200"),
        ([str(log_run(tmp_path, "empty", []))], "has no snapshots"),
    ):
        done = subprocess.run(
            [*command(Path(arguments[0]), *arguments[1:])], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_lock_is_free_again_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "abcdef01.parquet"
    for _ in range(2):
        with only_one(path):
            assert (tmp_path / f".{path.name}.lock").exists()
    assert list(tmp_path.iterdir()) == []


def test_progress_reads_back_and_a_broken_one_is_none(tmp_path: Path) -> None:
    path = tmp_path / "abcdef01.parquet"
    assert read_progress(path) is None
    write_progress(path, Progress(2, 5))
    assert read_progress(path) == Progress(2, 5)
    for text in ("", "[]", '{"done": 1}', '{"done": "x", "total": 2}'):
        progress_path(path).write_text(text)
        assert read_progress(path) is None
