"""Every page with runs that have no training of ours: finished models, and loops with another loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uwml_core.__main__ import main
from uwml_core.runlog.writer import RunLogger

PAGES = (
    "pages/watch/runs.py",
    "pages/watch/training.py",
    "pages/explain/weight_curve.py",
    "pages/explain/modal_balance.py",
    "pages/explain/hard_negatives.py",
    "pages/explain/embedding_map.py",
    "pages/decide/compare.py",
)
TRAINING, WEIGHTS, BALANCE, HARD, MAP, COMPARE = PAGES[1:]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    rng = np.random.default_rng(0)
    images = rng.normal(size=(40, 8))
    texts = images + rng.normal(size=(40, 8))
    for name, values in (("images", images), ("texts", texts), ("similarities", images @ texts.T)):
        np.save(folder / f"{name}.npy", values)
    (folder / "captions.txt").write_text("\n".join(f"<i>{k}</i> 图" for k in range(40)), encoding="utf-8")
    for run_id, given in (("embedded", ("images", "texts")), ("matrix", ("similarities",))):
        words = [word for name in given for word in (f"--{name}", str(folder / f"{name}.npy"))]
        words += ["--captions", str(folder / "captions.txt"), "--logs", str(folder), "--run-id", run_id]
        assert main(["diagnose-embeddings", *words]) == 0
    with RunLogger(folder, "foreign", total_steps=60) as log:
        for step in range(60):
            sim = np.clip(rng.normal(0, 0.2, (12, 12)) + 0.4 * np.eye(12), -1, 1)
            log.log_similarities(sim, item_ids=np.arange(12), epoch=step // 20, loss=1.0 / (step + 1))
    return folder


@pytest.mark.parametrize("run", ["embedded", "matrix", "foreign"])
@pytest.mark.parametrize("page", PAGES)
def test_no_page_fails(open_page: Callable[..., Any], logs: Path, page: str, run: str) -> None:
    assert not open_page(page, logs, run=run).failures


@pytest.mark.parametrize("page", [TRAINING, WEIGHTS, BALANCE])
def test_a_finished_model_has_recall_and_no_training(
    open_page: Callable[..., Any], logs: Path, page: str
) -> None:
    text = open_page(page, logs, run="embedded").text
    assert "R@1 / R@5 / R@10 of a finished model" in text
    assert "it has no steps table" in text


def test_a_finished_model_has_a_gallery_and_a_map(open_page: Callable[..., Any], logs: Path) -> None:
    gallery = open_page(HARD, logs, run="embedded")
    assert "40 i2t pairs" in gallery.text
    assert (
        "From the probes of 1 snapshot, with the first caption of each, as no pairs were logged"
        in gallery.text
    )
    assert "In the finished model, " in gallery.text
    assert "epoch 0" not in gallery.text
    assert "<i>" not in gallery.markup
    assert "too little data yet to say how they move" in open_page(MAP, logs, run="embedded").text


def test_a_matrix_says_why_it_has_no_map(open_page: Callable[..., Any], logs: Path) -> None:
    opened = open_page(MAP, logs, run="matrix")
    assert "made from similarities, which have no place on a map" in opened.text
    assert any("--images images.npy" in block.value for block in opened.app.code)
    assert "40 i2t pairs" in open_page(HARD, logs, run="matrix").text


def test_another_loss_is_previewed_on_its_margins(open_page: Callable[..., Any], logs: Path) -> None:
    opened = open_page(WEIGHTS, logs, run="foreign", curve="bell", hard_floor="0.0")
    assert "The effective sample size is 100 %" in opened.text
    assert "→" in opened.text
    assert "Not available: the log has no weights" in opened.text


def test_another_loss_has_gaps_and_no_weights(open_page: Callable[..., Any], logs: Path) -> None:
    assert "No direction weight was logged." in open_page(BALANCE, logs, run="foreign").text
