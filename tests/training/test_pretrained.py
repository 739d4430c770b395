"""Frozen encoders of other libraries: the real classes with random weights, saved in folders."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from tests.support.vision_operators import declare_missing_operators

declare_missing_operators()

from tests.support.hugging_face import bert_folder, clip_folder  # noqa: E402
from uwml_core.data import PairDataset, open_data  # noqa: E402
from uwml_core.data.pictures import decode  # noqa: E402
from uwml_core.runlog.reader import open_run  # noqa: E402
from uwml_core.training import build_config, run_training  # noqa: E402
from uwml_core.training.assessment import assess  # noqa: E402
from uwml_core.training.config import ModelConfig  # noqa: E402
from uwml_core.training.pretrained.features import picture_features, text_features  # noqa: E402

TEXTS = ["red cup", "a green tree", "the blue square on a cat"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def few(tmp_path: Path) -> PairDataset:
    """Eight pictures of different colours."""
    folder = tmp_path / "few"
    folder.mkdir()
    for k in range(8):
        Image.new("RGB", (20, 20), (30 * k, 200 - 20 * k, 90)).save(folder / f"{k}.png")
    (folder / "captions.csv").write_text(
        "image,caption\n" + "".join(f"{k}.png,colour {k}\n" for k in range(8))
    )
    return open_data(folder)


def timm_folder(folder: Path) -> Path:
    import timm

    torch.manual_seed(0)
    model = timm.create_model("resnet10t", pretrained=False, num_classes=3)
    timm.models.save_for_hf(model, str(folder), safe_serialization=True)
    return folder


def test_a_timm_folder_gives_what_its_model_gives(few, tmp_path):
    import timm

    name = f"timm:local-dir:{timm_folder(tmp_path / 'model')}"
    found = picture_features(few, name)
    model = timm.create_model(f"local-dir:{tmp_path / 'model'}", pretrained=True, num_classes=0).eval()
    settings = timm.data.resolve_model_data_config(model)
    pixels = timm.data.create_transform(**settings, is_training=False)(decode(few.encoded[7][0]))
    with torch.inference_mode():
        expected = model(pixels[None])[0].numpy()
    assert found.shape == (8, 512)
    assert found[7] == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_transformers_pools_over_words_and_not_over_padding(tmp_path):
    folder = bert_folder(tmp_path / "bert")
    together = text_features(TEXTS, f"transformers:{folder}")
    alone = [text_features([text], f"transformers:{folder}")[0] for text in TEXTS]
    assert np.array(together) == pytest.approx(np.array(alone), abs=1e-5)


def test_both_sides_of_a_clip_folder_have_one_size(few, tmp_path):
    folder = clip_folder(tmp_path / "clip")
    pictures = picture_features(few, f"transformers:{folder}")
    texts = text_features(["abc", "de"], f"transformers:{folder}")
    assert (pictures.shape[1], texts.shape[1]) == (6, 6)
    assert np.isfinite(pictures).all()
    assert np.isfinite(texts).all()


def test_features_are_computed_once(tmp_path, cache, monkeypatch):
    folder = bert_folder(tmp_path / "bert")
    first = np.array(text_features(TEXTS, f"transformers:{folder}"))
    [kept] = cache.glob("features/*.npy")
    monkeypatch.setattr("uwml_core.training.pretrained.texts.load", lambda *_: pytest.fail("computed again"))
    assert np.array_equal(text_features(TEXTS, f"transformers:{folder}"), first)
    assert [path.name for path in cache.glob("features/*")] == [kept.name]


def test_a_failure_while_computing_leaves_nothing_behind(tmp_path, cache, monkeypatch):
    monkeypatch.setattr("uwml_core.training.pretrained.features.np.save", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        text_features(TEXTS, f"transformers:{bert_folder(tmp_path / 'bert')}")
    assert list(cache.glob("features/*")) == []


@pytest.mark.parametrize(
    ("key", "name", "message"),
    [
        (
            "image_encoder",
            "resnet18",
            "model.image_encoder='resnet18' is unknown; expected one of timm:NAME, torch",
        ),
        ("image_encoder", "timm:", "model.image_encoder='timm:' is not understood; expected timm:NAME"),
        (
            "text_encoder",
            "timm:x",
            "model.text_encoder='timm:x' is unknown; expected one of sentence-transformers",
        ),
        ("text_encoder", "minilm:x", "model.text_encoder='minilm:x' is not understood; expected minilm"),
    ],
)
def test_an_unknown_name_is_refused_before_any_data_is_read(key, name, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ModelConfig(**{key: name})


def test_weights_that_cannot_be_had_end_in_one_sentence(tmp_path):
    with pytest.raises(
        ValueError, match=r"encoder 'transformers:/.* cannot be loaded .* name a local folder"
    ):
        text_features(TEXTS, f"transformers:{tmp_path / 'none'}")


@pytest.mark.slow
def test_a_run_learns_from_the_packages_that_carry_their_weights(small_pairs, tmp_path):
    settings = [f"data.path={small_pairs}", "model.image_encoder=efficientnet-lite0", "data.batch_size=32"]
    settings += [
        "model.text_encoder=minilm",
        "model.dim=32",
        "train.epochs=2",
        f"run.root={tmp_path / 'logs'}",
    ]
    path = run_training(build_config(settings=[*settings, "loss.accumulate_batches=2"]), progress=False)
    run = open_run(path)
    assert run.status == "finished"
    assert run.items()["thumbnail"].notna().all()
    assert assess(path, split="val")[0].items == 60


def test_minilm_knows_what_words_mean():
    first, near, far = (
        F.normalize(torch.from_numpy(np.array(row)), dim=0)
        for row in text_features(["a small dog", "a puppy", "the stock market"], "minilm")
    )
    assert first @ near > 0.5 > 0.2 > first @ far
