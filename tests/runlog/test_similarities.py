"""Steps of a loop with another loss: margins and gaps against loops and against the loss's own."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support.steps import a_step
from uwml_core.losses import UWMLLoss
from uwml_core.runlog import similarities
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.similarities import SimilarityStep, hardest_negatives
from uwml_core.runlog.writer import NullLogger, RunLogger

DIRECTIONS = ("i2t", "t2i")
LOSS_ONLY = ("pair_loss", "pair_weight", "weight", "gradient_share")
MIB = 2**20


def slow_anchors(sim: list[list[float]], labels: list[int]) -> dict[str, list[list[float]]]:
    """Positive, hardest negative and its place of each anchor, by nested loops."""
    found: dict[str, list[list[float]]] = {"positive": [], "negative": [], "index": []}
    for direction in (0, 1):
        negative, index = [], []
        for i in range(len(labels)):
            scored = [
                (sim[i][j] if direction == 0 else sim[j][i], -j)
                for j in range(len(labels))
                if labels[j] != labels[i]
            ]
            best, place = max(scored, default=(float("nan"), 1))
            negative.append(best)
            index.append(-place)
        found["positive"].append([sim[i][i] for i in range(len(labels))])
        found["negative"].append(negative)
        found["index"].append(index)
    return found


def a_matrix(batch: int, seed: int, levels: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if levels is not None:
        return rng.integers(-levels, levels + 1, (batch, batch)) / levels
    return rng.uniform(-1, 1, (batch, batch))


def labels_of(batch: int, count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, count, batch).tolist()


@pytest.mark.parametrize("kept_bytes", [0, MIB])
@pytest.mark.parametrize(("batch", "count", "levels"), [(1, 1, None), (2, 2, 1), (9, 3, 2), (30, 29, None)])
def test_anchors_equal_nested_loops(monkeypatch, batch, count, levels, kept_bytes):
    monkeypatch.setattr(similarities, "_KEPT_BYTES", kept_bytes)
    sim, labels = a_matrix(batch, batch, levels), labels_of(batch, count)
    step, slow = SimilarityStep(sim, labels, DIRECTIONS), slow_anchors(sim.tolist(), labels)
    np.testing.assert_array_equal(step.positive_similarity, slow["positive"])
    np.testing.assert_array_equal(step.negative_similarity, slow["negative"])
    np.testing.assert_array_equal(step.negative_index, slow["index"])
    np.testing.assert_array_equal(step.margin, np.array(slow["positive"]) - np.array(slow["negative"]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_fields_are_those_of_the_loss_on_the_same_batch(dtype):
    generator = torch.Generator().manual_seed(1)
    pictures, texts = (
        torch.nn.functional.normalize(torch.randn(24, 6, generator=generator, dtype=dtype), dim=1)
        for _ in range(2)
    )
    labels = torch.tensor(labels_of(24, 15))
    loss = UWMLLoss(total_steps=10)
    loss(pictures, texts, labels=labels)
    step = SimilarityStep((pictures @ texts.T).requires_grad_(), labels, DIRECTIONS)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    for name in ("positive_similarity", "negative_similarity", "margin", "gap", "accuracy"):
        np.testing.assert_allclose(getattr(step, name), getattr(loss.last, name).numpy(), atol=tolerance)
    np.testing.assert_array_equal(step.negative_index, loss.last.negative_index.numpy())
    np.testing.assert_array_equal(step.no_negative_count, loss.last.no_negative_count.numpy())
    assert step.negatives_per_anchor == pytest.approx(loss.last.negatives_per_anchor)


@pytest.mark.parametrize(
    "convert",
    [
        lambda sim: sim.astype(np.float16),
        lambda sim: torch.from_numpy(sim).half(),
        lambda sim: torch.from_numpy(sim).bfloat16().requires_grad_(),
        lambda sim: np.asfortranarray(sim)[:, ::1],
    ],
)
def test_other_types_are_widened_first(convert):
    sim = convert(a_matrix(7, 2))
    tensor = torch.as_tensor(sim).detach()
    wide = tensor.to(torch.promote_types(tensor.dtype, torch.float32)).numpy()
    step = SimilarityStep(sim, list(range(7)), DIRECTIONS)
    np.testing.assert_array_equal(step.margin, SimilarityStep(wide, list(range(7)), DIRECTIONS).margin)


def test_without_any_negative_the_gap_is_not_a_number_and_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = SimilarityStep(a_matrix(3, 0), [5, 5, 5], DIRECTIONS)
        assert np.isnan(step.gap).all()
        assert np.isnan(step.accuracy).all()
    assert step.no_negative_count.tolist() == [3.0, 3.0]
    assert step.negatives_per_anchor == 0.0


def logged(tmp_path: Path, *steps: dict[str, Any], **settings: Any) -> Any:
    with RunLogger(tmp_path, "run", strict=True, **settings) as log:
        for step in steps:
            log.log_similarities(**step)
    return open_run(tmp_path / "run")


def test_rows_are_logged_and_what_a_loss_would_tell_is_null(tmp_path):
    sim = np.array([[0.9, 0.2, 0.8], [0.1, 0.5, 0.4], [0.3, 0.95, 0.7]])
    run = logged(
        tmp_path,
        {
            "sim": sim,
            "item_ids": [7, 8, 7],
            "captions": [0, 1, 2],
            "step": 4,
            "epoch": 1,
            "loss": torch.tensor(1.25),
            "temperature": torch.tensor([0.05]),
            "own": 3.0,
        },
    )
    rows = run.frame("pairs")
    assert rows["direction"].tolist() == ["i2t"] * 3 + ["t2i"] * 3
    assert rows["item_id"].tolist() == [7, 8, 7] * 2
    assert rows["negative_item_id"].tolist() == [8, 7, 8, 8, 7, 8]
    assert rows["negative_caption"].tolist() == [1, 2, 1, 1, 2, 1]
    assert rows["margin"].tolist() == pytest.approx([0.7, 0.1, -0.25, 0.8, -0.45, 0.3])
    assert rows["suspected_false_negative"].tolist() == [False, False, True, False, True, False]
    table = run.table("pairs")
    assert {name: table[name].null_count for name in LOSS_ONLY} == dict.fromkeys(LOSS_ONLY, 6)
    (step,) = run.frame("steps", columns=[*run.table("steps").column_names, "own"]).to_dict("records")
    told = {"step": 4, "epoch": 1, "batch_size": 3, "loss": 1.25, "own": 3.0, "no_negative_count_i2t": 0.0}
    told |= {"gap_i2t": 0.55 / 3, "gap_t2i": 0.65 / 3, "accuracy_i2t": 2 / 3, "negatives_per_anchor": 4 / 3}
    assert {name: step[name] for name in told} == pytest.approx(told)
    assert step["temperature"] == pytest.approx(0.05)
    steps = run.table("steps")
    for name in ("loss_i2t", "direction_weight_t2i", "steepness", "ess_i2t", "clamped_share_t2i"):
        assert steps[name].null_count == 1


def test_labels_win_over_item_ids(tmp_path):
    sim = np.array([[0.9, 0.2], [0.1, 0.5]])
    run = logged(tmp_path, {"sim": sim, "item_ids": [1, 2], "labels": [3, 3]})
    rows = run.table("pairs")
    assert rows["negative_item_id"].null_count == 4
    assert np.isnan(rows["margin"].to_numpy()).all()


def test_what_is_changed_afterwards_does_not_reach_the_log(tmp_path):
    for kind, make in (("numpy", np.array), ("torch", torch.tensor)):
        sim = make([[0.9, 0.2], [0.1, 0.5]])
        with RunLogger(tmp_path, kind, strict=True) as log:
            log.log_similarities(sim, item_ids=[0, 1])
            sim[:] = -1.0
        margins = open_run(tmp_path / kind).frame("pairs")["margin"]
        assert margins.tolist() == pytest.approx([0.7, 0.4, 0.8, 0.3])


def test_steps_of_ours_and_of_others_share_a_run(tmp_path):
    with RunLogger(tmp_path, "run", strict=True) as log:
        log.log_step(a_step(0, 2), item_ids=[0, 1])
        log.log_similarities(a_matrix(3, 0), item_ids=[0, 1, 2])
        log.log_step(a_step(2, 2), item_ids=[0, 1])
    table = open_run(tmp_path / "run").table("pairs")
    known = [value is not None for value in table["weight"].to_pylist()]
    assert known == [True] * 4 + [False] * 6 + [True] * 4
    assert table["step"].to_pylist() == [0] * 4 + [1] * 6 + [2] * 4
    assert table["weight"].to_pylist()[10:12] == pytest.approx([2.6, 3.6])


def test_a_loss_that_is_no_number_becomes_an_event(tmp_path):
    step = {"sim": a_matrix(2, 0), "item_ids": [0, 1], "loss": float("nan")}
    events = logged(tmp_path, step).frame("events")
    assert events["kind"].tolist() == ["non_finite"]
    assert events["message"].tolist() == ["loss is nan at step 0"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sim": np.zeros((2, 3))}, r"sim has shape \[2, 3\]; expected \[batch, batch\]"),
        ({"sim": np.zeros((0, 0))}, r"sim has shape \[0, 0\]"),
        ({"sim": np.zeros(4)}, r"sim has shape \[4\]"),
        ({"sim": [[1.0, 0.0], [0.0, 1.0]]}, r"sim has shape \[\]"),
        ({"sim": np.eye(2, dtype=int)}, "sim has type int64; expected floating-point"),
        ({"sim": torch.eye(2, dtype=torch.complex64)}, "sim has type torch.complex64"),
        ({"sim": np.array([[1.0, 0.0], [np.nan, 1.0]])}, r"sim is not finite in rows \[1\]"),
        ({"sim": torch.tensor([[torch.inf, 0.0], [0.0, 1.0]])}, r"sim is not finite in rows \[0\]"),
        ({"labels": [0]}, "labels has 1 entries for a batch of 2"),
        ({"labels": [[0], [1]]}, "labels has shape"),
        ({"labels": [0.5, 1.0]}, "labels has shape .* and type float64; expected one whole number"),
        ({"item_ids": [1, 2, 3]}, "item_ids has 3 entries for a batch of 2"),
        ({"item_ids": [1, 2, 3], "labels": [0, 1]}, "item_ids has 3 entries for a batch of 2"),
        ({"captions": [0]}, "captions has 1 entries for a batch of 2"),
    ],
)
def test_what_does_not_fit_is_refused_and_the_log_goes_on(tmp_path, changes, message):
    with RunLogger(tmp_path, "run", strict=True) as log:
        with pytest.raises(ValueError, match=message):
            log.log_similarities(**{"sim": np.eye(2), "item_ids": [0, 1], **changes})
        log.log_similarities(np.eye(2), item_ids=[0, 1])
    assert open_run(tmp_path / "run").table("steps")["step"].to_pylist() == [0]


def test_what_is_found_late_is_told_again_at_each_look():
    step = SimilarityStep(np.eye(2), [0, 1], DIRECTIONS)
    step._inputs[0][0, 1] = np.nan
    for _ in range(2):
        with pytest.raises(ValueError, match=r"sim is not finite in rows \[0\]"):
            _ = step.margin


def test_the_training_thread_does_not_look_at_the_similarities(monkeypatch, tmp_path):
    looked: list[str] = []

    def noted(*values: Any) -> similarities.Hardest:
        looked.append(threading.current_thread().name)
        return hardest_negatives(*values)

    monkeypatch.setattr(similarities, "hardest_negatives", noted)
    with RunLogger(tmp_path, run_id="run") as log:
        for seed in range(3):
            log.log_similarities(a_matrix(8, seed), item_ids=range(8))
    assert len(looked) == 3
    assert threading.current_thread().name not in looked


def test_the_null_logger_takes_similarities():
    NullLogger().log_similarities(np.eye(2), item_ids=[0, 1], labels=[0, 1], step=3, loss=0.0)


def test_numpy_similarities_load_no_torch(tmp_path):
    code = (
        "import sys, numpy as np; from uwml_core.runlog.writer import RunLogger\n"
        f"with RunLogger({str(tmp_path)!r}, 'run') as log: log.log_similarities(np.eye(2), item_ids=[0, 1])\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
