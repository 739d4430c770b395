"""A run on precomputed features, from the folder to the log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from uwml_core.__main__ import main
from uwml_core.data import open_data
from uwml_core.data.features import FeatureRows
from uwml_core.runlog.reader import open_run
from uwml_core.training import build_config, run_training

WORDS = ["red", "green", "blue", "black", "white", "brown", "pink", "grey"]


def concepts(folder: Path, part: str, images: int, *shape: int, seed: int) -> None:
    """Features around one of 64 directions, and five captions that name it."""
    rng = np.random.default_rng(seed)
    directions = np.random.default_rng(0).normal(size=(64, *shape))
    shown = np.arange(images) % 64
    values = directions[shown] + 0.1 * rng.normal(size=(images, *shape))
    np.save(folder / f"{part}_ims.npy", values.astype(np.float32))
    lines = [f"{WORDS[k // 8]} upon {WORDS[k % 8]} {j}" for k in shown for j in range(5)]
    (folder / f"{part}_caps.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "f30k_precomp"
    path.mkdir()
    concepts(path, "train", 256, 3, 24, seed=1)
    concepts(path, "dev", 64, 3, 24, seed=2)
    return path


def test_features_are_learned_from_and_logged(folder, tmp_path):
    settings = [f"data.path={folder}", "model.dim=32", "data.batch_size=64"]
    settings += ["train.epochs=12", f"run.root={tmp_path}", "train.learning_rate=0.01"]
    run = open_run(run_training(build_config(settings=settings), progress=False))
    evals = run.table("evals").to_pandas()
    recall = evals[(evals["metric"] == "R@5") & (evals["direction"] == "i2t")]["value"].tolist()
    # chance is 5 * 5 / 320
    assert recall[-1] > 50 > 20 > recall[0]
    assert run.status == "finished"
    items = run.items()
    assert items["thumbnail"].isna().all()
    assert items["captions"].map(len).eq(5).all()


def test_rows_of_several_files_are_found():
    files = [np.arange(12.0).reshape(4, 3), 100 + np.arange(6.0).reshape(2, 3)]
    rows = FeatureRows(files, np.array([5, 0, 4, 3]))
    assert rows.take(np.array([0, 1, 2, 3])).tolist() == [
        [103, 104, 105],
        [0, 1, 2],
        [100, 101, 102],
        [9, 10, 11],
    ]
    assert rows.chosen(np.array([2])).take(np.array([0])).tolist() == [[100, 101, 102]]


def test_files_of_different_widths_are_refused():
    with pytest.raises(ValueError, match=r"features have shapes \[2, 3\], \[2, 4\]"):
        FeatureRows([np.zeros((2, 3)), np.zeros((2, 4))], np.arange(2))


def test_the_fingerprint_follows_the_features(folder, tmp_path):
    before = open_data(folder).fingerprint
    copy = tmp_path / folder.name
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert open_data(copy).fingerprint == before
    values = np.load(copy / "dev_ims.npy")
    values[7, 0, 0] += 1
    np.save(copy / "dev_ims.npy", values)
    assert open_data(copy).fingerprint != before


def test_the_command_says_what_there_is(folder, capsys):
    assert main(["inspect-data", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "f30k_precomp: SCAN precomp, 320 items (image), 1600 captions" in out
    assert "splits: train 256, val 64" in out
    assert "train: im_div 5, 256 images for 1280 captions" in out
    assert "the 3 regions of an image are averaged to 24 numbers" in out


def test_the_command_ends_with_one_where_something_cannot_be_used(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("image,caption\na.jpg,x\n")
    assert main(["inspect-data", str(tmp_path)]) == 1
    assert "1 pictures are missing: a.jpg" in capsys.readouterr().out
    assert main(["inspect-data", str(tmp_path / "none")]) == 2
    assert "is neither a file nor a shipped sample set" in capsys.readouterr().err
