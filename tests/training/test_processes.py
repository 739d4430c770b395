"""Several processes train as one would: what they log, and that they end and go on together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import uwml_core
from uwml_core.data import load_pairs
from uwml_core.runlog.reader import open_run
from uwml_core.training import build_config, processes_of_torchrun, run_training
from uwml_core.training.batch_norm import share_statistics
from uwml_core.training.batches import BatchSource, Corpus
from uwml_core.training.checkpoint import load_checkpoint
from uwml_core.training.distributed import Processes

ROOT = Path(uwml_core.__file__).parent.parent
LIMIT_S = 300
TROUBLE = str(ROOT / "tests" / "support" / "trouble.py")
# a small step: Adam's first ones are signs of gradients, which rounding turns over where they are tiny
SETTINGS = ["train.epochs=2", "model.dim=16", "train.learning_rate=1e-5"]
SETTINGS += ["loss.learnable_temperature=true", "loss.memory_batches=2"]
STEPS = 14
TIMES = ["time", "elapsed_s", "step_time_ms", "telemetry_time_ms"]
COMPARED = ["loss", "loss_t2i", "gap_i2t", "gap_t2i", "direction_weight_i2t", "ess_i2t", "temperature"]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def torchrun(settings: list[str], *words: str, script: tuple[str, ...] = ("-m", "uwml_core")) -> Ended:
    """Train with two processes; all are killed where they have not ended in time."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    command += [*script, "train", "--quiet", *words]
    for setting in settings:
        command += ["--set", setting]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        # torchrun ends its processes when it is asked to
        process.send_signal(signal.SIGTERM)
        pytest.fail(f"not ended after {LIMIT_S} s: {process.communicate()}")
    return Ended(process.returncode, out, err)


def rows(path: Path, name: str, *keys: str) -> pd.DataFrame:
    frame = open_run(path).table(name).to_pandas()
    return frame.sort_values(["step", *keys], kind="stable").reset_index(drop=True)


def the_run(root: Path) -> Path:
    [path] = [file.parent for file in root.glob("*/run.json")]
    return path


def assert_close(one: pd.DataFrame, two: pd.DataFrame, columns: list[str], **tolerance: float) -> None:
    assert len(one) == len(two)
    for column in columns:
        expected = pytest.approx(one[column].tolist(), **tolerance)
        assert two[column].tolist() == expected, column


@pytest.fixture(scope="module")
def settings(small_pairs: Path) -> list[str]:
    return [f"data.path={small_pairs}", "data.batch_size=32", *SETTINGS]


@pytest.fixture(scope="module")
def together(settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two processes."""
    root = tmp_path_factory.mktemp("two")
    ended = torchrun([*settings, f"run.root={root}"])
    assert (ended.code, ended.out) == (0, f"{the_run(root)}\n"), ended.err
    return the_run(root)


@pytest.mark.slow
def test_two_processes_log_the_run_that_one_does(together, settings, tmp_path, monkeypatch):
    # the same arithmetic in batch normalization: torch's own adds up in another order
    monkeypatch.setattr(Processes, "wrapped", lambda self, model: (share_statistics(model), model)[1])
    alone = run_training(build_config(settings=[*settings, f"run.root={tmp_path}"]), progress=False)
    assert [open_run(path).status for path in (alone, together)] == ["finished", "finished"]
    assert not open_run(together).health()
    one, two = (rows(path, "steps") for path in (alone, together))
    assert [steps["rank_count"].unique().tolist() for steps in (one, two)] == [[1], [2]]
    known = one.drop(columns=[*TIMES, "phase", "rank_count"]).dropna(axis="columns").columns.tolist()
    assert_close(one, two, known, rel=1e-5)
    assert set(COMPARED) < set(known)
    assert one["temperature"].nunique() == STEPS
    one, two = (rows(path, "pairs", "direction", "item_id") for path in (alone, together))
    same = ["step", "epoch", "direction", "item_id", "caption"]
    assert one[same].equals(two[same])
    assert (one["negative_item_id"] == two["negative_item_id"]).mean() > 0.99
    floats = ["positive_similarity", "negative_similarity", "margin", "pair_loss", "weight", "gradient_share"]
    assert_close(one, two, floats, rel=1e-3, abs=1e-5)


@pytest.mark.slow
def test_the_first_process_alone_evaluates_and_saves(together, settings, tmp_path):
    alone = run_training(build_config(settings=[*settings, f"run.root={tmp_path}"]), progress=False)
    for name in ("evals", "ranks", "snapshots", "neighbors"):
        one, two = (rows(path, name) for path in (alone, together))
        assert one[["step", "epoch"]].equals(two[["step", "epoch"]]), name
    assert rows(together, "events")["kind"].tolist().count("checkpoint") == 3
    assert load_checkpoint(together).model.keys() == load_checkpoint(alone).model.keys()
    # torch's own batch normalization rounds otherwise
    assert_close(*(rows(path, "steps")[:10] for path in (alone, together)), COMPARED, rel=1e-4)


@pytest.mark.slow
def test_a_run_goes_on_after_a_kill_and_a_stop_and_with_another_number_of_processes(
    together, settings, tmp_path
):
    killed = torchrun([*settings, f"run.root={tmp_path}"], script=(TROUBLE, "kill", "9"))
    assert killed.code != 0
    path = the_run(tmp_path)
    assert not open_run(path).health()
    assert rows(path, "steps")["step"].tolist() == list(range(9))
    stopped = torchrun([], "--resume", str(path), script=(TROUBLE, "stop", "11"))
    assert stopped.err.count("Stopped after 12 steps, everything saved.") == 1, stopped.err
    assert (open_run(path).status, load_checkpoint(path).step) == ("stopped", 12)
    resume = build_config(settings=[*settings, f"run.root={tmp_path}", f"train.resume={path}"])
    assert run_training(resume, progress=False) == path
    segments = open_run(path).info["segments"]
    assert [(entry["first_step"], entry["world_size"]) for entry in segments] == [(0, 2), (7, 2), (12, 1)]
    one, two = (rows(run, "steps") for run in (together, path))
    known = one.columns.drop([*TIMES, "rank_count"])
    assert one[known][:12].equals(two[known][:12])
    assert_close(one, two, COMPARED, rel=1e-4)
    one, two = (rows(run, "pairs", "direction", "item_id") for run in (together, path))
    same = ["step", "direction", "item_id", "caption"]
    assert one[same].equals(two[same])
    assert one[one["step"] < 12].equals(two[two["step"] < 12])


@pytest.mark.slow
def test_a_number_that_is_not_finite_in_one_process_ends_all(settings, tmp_path):
    ended = torchrun([*settings, f"run.root={tmp_path}"], script=(TROUBLE, "nan", "3"))
    assert ended.code != 0
    message = "embedding is not finite at step 3; lower train.learning_rate or set train.gradient_clip"
    assert ended.err.count(f"uwml: error: {message}") == 2, ended.err
    path = the_run(tmp_path)
    assert open_run(path).status == "failed"
    assert "non_finite" in rows(path, "events")["kind"].tolist()
    assert rows(path, "steps")["step"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_parts_of_all_processes_are_the_batch(small_pairs, count):
    data = load_pairs(small_pairs)

    def source(**part: int) -> BatchSource:
        return BatchSource(Corpus(data), data.rows("train"), batch_size=32, seed=5, **part)

    whole = source().at(8)
    parts = [source(rank=rank, processes=count).at(8) for rank in range(count)]
    for name in ("item_ids", "captions", "labels", "pictures"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(joined, getattr(whole, name)), name


def test_chunks_hold_the_texts_of_their_rows(small_pairs):
    data = load_pairs(small_pairs)
    corpus = Corpus(data)
    batch = BatchSource(corpus, data.rows("train"), batch_size=32, seed=5).at(2)
    for chunk in batch.chunks(4):
        expected = corpus.texts(chunk.item_ids, chunk.captions)
        assert [values.tolist() for values in chunk.texts] == [values.tolist() for values in expected]


def test_variables_of_torchrun_decide_and_half_of_them_are_refused():
    assert (processes_of_torchrun({}).size, processes_of_torchrun({"WORLD_SIZE": "1"}).first) == (1, True)
    variables = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    with pytest.raises(ValueError, match="WORLD_SIZE=2 is set but MASTER_ADDR, MASTER_PORT is not; start"):
        processes_of_torchrun(variables)
    processes = processes_of_torchrun({**variables, "MASTER_ADDR": "localhost", "MASTER_PORT": "1"})
    assert (processes.rank, processes.size, processes.first) == (1, 2, False)


def test_a_batch_that_does_not_divide_into_processes_is_refused(small_pairs):
    data = load_pairs(small_pairs)
    with pytest.raises(ValueError, match=r"data\.batch_size=32 is no multiple of processes=3 x loss\.acc"):
        BatchSource(Corpus(data), data.rows("train"), batch_size=32, seed=0, processes=3)
