"""Evaluation of a checkpoint, against rank counting written out on the whole matrix."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from uwml_core.__main__ import main
from uwml_core.data import open_data
from uwml_core.training import build_config, run_training
from uwml_core.training.assessment import assess, summary
from uwml_core.training.batches import Corpus
from uwml_core.training.checkpoint import load_checkpoint
from uwml_core.training.encoders import build_model


def write_part(folder: Path, part: str, images: int) -> None:
    values = np.random.default_rng(images).normal(size=(images, 6))
    np.save(folder / f"{part}_ims.npy", values.astype(np.float32))
    # no two images share a caption, which would be true for both
    lines = [f"w{round(10 * x)} n{k} {j}" for k, x in enumerate(values[:, 0]) for j in range(5)]
    (folder / f"{part}_caps.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("precomp")
    for part, images in (("train", 64), ("dev", 20), ("test", 40)):
        write_part(folder, part, images)
    settings = [f"data.path={folder}", "model.dim=8", "data.batch_size=32"]
    settings += ["train.epochs=3", f"run.root={tmp_path_factory.mktemp('logs')}"]
    return folder, run_training(build_config(settings=settings), progress=False)


def hits(folder: Path, run: Path, first: int, last: int) -> tuple[float, float]:
    """R@5 both ways as VSE++ counts it: five captions follow one another for each image."""
    data, checkpoint = open_data(folder), load_checkpoint(run)
    model = build_model("small", 8, 0, (6, None))
    model.load_state_dict(checkpoint.model)
    model.eval()
    rows = data.rows("test")[first:last]
    corpus = Corpus(data)
    with torch.no_grad():
        images = model.pictures(data.inputs(rows)).double()
        texts = model.texts(*corpus.texts(np.repeat(rows, 5), np.tile(np.arange(5), len(rows)))).double()
    images, texts = (x / x.norm(dim=1, keepdim=True) for x in (images, texts))
    scores = (images @ texts.T).numpy()
    of_image = [
        min(list(np.argsort(-scores[i])).index(5 * i + j) for j in range(5)) for i in range(len(rows))
    ]
    of_text = [list(np.argsort(-scores[:, t])).index(t // 5) for t in range(5 * len(rows))]
    return 100 * float(np.mean(np.array(of_image) < 5)), 100 * float(np.mean(np.array(of_text) < 5))


@pytest.mark.parametrize("folds", [1, 4])
def test_recall_equals_independent_code_whole_and_in_folds(trained, folds):
    folder, run = trained
    found = assess(run, split="test", folds=folds)
    size = 40 // folds
    slow = [hits(folder, run, k * size, (k + 1) * size) for k in range(folds)]
    for place, direction in enumerate(("i2t", "t2i")):
        values = [m[2] for fold in found for m in fold.metrics if m[:2] == (direction, "R@5")]
        assert values == pytest.approx([pair[place] for pair in slow])
        [(mean, spread)] = [row[2:4] for row in summary(found) if row[:2] == (direction, "R@5")]
        assert mean == pytest.approx(np.mean(values))
        assert spread == pytest.approx(np.std(values, ddof=1) if folds > 1 else 0)


def test_each_query_keeps_its_rank_and_id(trained):
    [fold] = assess(trained[1])
    assert {name: len(result.ranks) for name, result in fold.results.items()} == {"i2t": 40, "t2i": 200}
    assert fold.queries["i2t"].tolist() == list(range(84, 124))


def test_folds_that_do_not_divide_the_split_are_refused(trained):
    with pytest.raises(ValueError, match="folds=7 does not divide the 40 items of 'test' equally"):
        assess(trained[1], folds=7)


def test_other_data_than_the_runs_is_refused(trained, tmp_path):
    for part, images in (("train", 64), ("dev", 20), ("test", 41)):
        write_part(tmp_path, part, images)
    with pytest.raises(ValueError, match=r"is not what run .* was trained on"):
        assess(trained[1], data=str(tmp_path))


def test_the_command_prints_n_and_spread(trained, capsys):
    assert main(["evaluate", str(trained[1]), "--folds", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("test: 2 x 20 items\n")
    assert "(s.d. over 2 folds)   n = 100" in out
    assert main(["evaluate", str(trained[1]), "--json"]) == 0
    [whole] = json.loads(capsys.readouterr().out)
    assert whole["items"] == 40
    assert main(["evaluate", str(trained[1]), "--split", "none"]) == 2
    assert "split 'none' has 0 different item(s)" in capsys.readouterr().err
