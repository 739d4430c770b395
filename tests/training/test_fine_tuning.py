"""Encoders of other libraries that learn on: real classes with random weights, saved in folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.vision_operators import declare_missing_operators

declare_missing_operators()

from tests.support.hugging_face import bert_folder, clip_folder  # noqa: E402
from tests.support.layouts import picture_folder  # noqa: E402
from uwml_core.data import open_data  # noqa: E402
from uwml_core.runlog.reader import open_run  # noqa: E402
from uwml_core.training import build_config, run_training  # noqa: E402
from uwml_core.training.assessment import assess  # noqa: E402
from uwml_core.training.checkpoint import load_checkpoint  # noqa: E402
from uwml_core.training.config import ModelConfig, OptimizationConfig  # noqa: E402
from uwml_core.training.encoders import build_model  # noqa: E402
from uwml_core.training.frozen import frozen_corpus  # noqa: E402
from uwml_core.training.inputs import corpus_of  # noqa: E402
from uwml_core.training.loop import build_optimizer  # noqa: E402
from uwml_core.training.pretrained.features import picture_features, text_features  # noqa: E402

ROWS = np.array([5, 0, 17, 9])


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    return picture_folder(folder)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Both halves of a CLIP, and a BERT for texts."""
    folder = tmp_path_factory.mktemp("models")
    clip, bert = clip_folder(folder / "clip"), bert_folder(folder / "bert")
    return {"clip": f"transformers:{clip}", "bert": f"transformers:{bert}"}


@pytest.fixture
def train(pictures, tmp_path, monkeypatch):
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))

    def run(model: dict[str, str], *more: str) -> Path:
        settings = [f"data.path={pictures}", "data.batch_size=8", "model.dim=8", "train.epochs=2"]
        settings += [f"run.root={tmp_path / 'logs'}", "model.fine_tune=true"]
        settings += [f"model.{side}_encoder={name}" for side, name in model.items()]
        return run_training(build_config(settings=[*settings, *more]), progress=False)

    return run


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_checkpoint(path).model


def test_what_learns_begins_with_the_features_of_the_frozen_encoder(pictures, named, tmp_path, monkeypatch):
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    data = open_data(pictures, decode="needed")
    corpus = corpus_of(
        data, ModelConfig(image_encoder=named["clip"], text_encoder=named["bert"], fine_tune=True)
    )
    model = build_model("small", 8, 0, corpus.feature_sizes, corpus.backbones).eval()
    with torch.no_grad():
        seen = model.pictures.backbone(corpus.pictures(ROWS))
        read = model.texts.backbone(*corpus.texts(ROWS, np.zeros_like(ROWS)))
    assert seen.numpy() == pytest.approx(picture_features(data, named["clip"])[ROWS], abs=1e-5)
    captions = [data.captions[row][0] for row in ROWS]
    assert read.numpy() == pytest.approx(np.array(text_features(captions, named["bert"])), abs=1e-5)
    frozen = frozen_corpus(model, corpus, np.arange(len(data)))
    with torch.no_grad():
        whole = model(corpus.pictures(ROWS), *corpus.texts(ROWS, np.zeros_like(ROWS)))
        short = model(frozen.pictures(ROWS), *frozen.texts(ROWS, np.zeros_like(ROWS)))
    for one, other in zip(whole, short, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_frozen_epochs_come_first_and_the_backbones_learn_after_them(train, named):
    frozen = train({"image": named["clip"], "text": named["bert"]})
    assert open_run(frozen).config["train"]["warmup_epochs"] == 2
    learned = train({"image": named["clip"], "text": named["bert"]}, "train.warmup_epochs=1")
    phases = open_run(learned).table("steps").to_pandas().groupby("epoch")["phase"].first().tolist()
    assert phases == ["warmup", "train"]
    before, after = weights(frozen), weights(learned)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert any(name.startswith("pictures.model.vision_model") for name in changed)
    assert any(name.startswith("texts.model.encoder") for name in changed)
    # what pictures do not depend on stays as it was loaded
    assert not any(name.startswith("pictures.model.text_model") for name in changed)


def test_one_side_may_be_small_and_chunks_workers_and_half_precision_go_along(train, named):
    path = train(
        {"image": named["clip"]},
        "train.warmup_epochs=0",
        "loss.accumulate_batches=2",
        "data.workers=1",
        "train.precision=bf16",
    )
    assert open_run(path).status == "finished"
    assert "texts.bag.weight" in weights(path)
    [fold] = assess(path, split="val")
    logged = open_run(path).table("evals").to_pandas().query("step >= 0 and metric == 'R@5'")
    assert [row[2] for row in fold.metrics if row[1] == "R@5"] == pytest.approx(logged["value"].tolist()[-2:])


def test_the_same_settings_give_the_same_losses(train, named):
    whole = train({"text": named["bert"]}, "train.warmup_epochs=0")
    again = train({"text": named["bert"]}, "train.warmup_epochs=0")
    first, second = (open_run(path).table("steps")["loss"].to_pylist() for path in (whole, again))
    assert first == second


def test_backbones_learn_at_a_share_of_the_rate(pictures, named):
    data = open_data(pictures, decode="needed")
    corpus = corpus_of(data, ModelConfig(text_encoder=named["bert"], fine_tune=True))
    model = build_model("small", 8, 0, corpus.feature_sizes, corpus.backbones)
    groups = build_optimizer(model, torch.nn.Module(), OptimizationConfig(backbone_share=0.25)).param_groups
    shares = {id(p): group.get("share", 1.0) for group in groups for p in group["params"]}
    assert {shares[id(p)] for p in model.texts.model.parameters()} == {0.25}
    assert {shares[id(p)] for p in model.texts.head.parameters()} == {1.0}
    assert {shares[id(p)] for p in model.pictures.parameters()} == {1.0}
    assert len(shares) == len(list(model.parameters()))


def test_nothing_to_tune_is_refused():
    with pytest.raises(ValueError, match=r"model.fine_tune=True has nothing to tune; name model.image_enc"):
        ModelConfig(fine_tune=True)
