"""Text features, encoders, schedule, probes, checkpoints."""

from __future__ import annotations

import os
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from uwml_core.training.checkpoint import Checkpoint, load_checkpoint
from uwml_core.training.encoders import build_model
from uwml_core.training.probes import probe_rows
from uwml_core.training.schedule import learning_rate_at
from uwml_core.training.text import BUCKETS, TextTable, hashed_features


def test_features_are_the_words_and_their_marked_ngrams():
    parts = ["w:ab", "<ab", "ab>", "<ab>", "w::d", "<:d", ":d>", "<:d>"]
    # a sign and the letter after it are two tokens
    parts = ["w:ab", "<ab", "ab>", "<ab>", "w::", "<:>", "w:d", "<d>"]
    assert hashed_features("Ab  :d") == [zlib.crc32(part.encode()) % BUCKETS for part in parts]


def test_a_phrase_without_spaces_gives_its_signs_and_their_pairs():
    parts = [
        "红",
        "心",
        "色",
        "红心",
        "心色",
        "w:，",
        "<，>",
        "w:ok",
        "<ok",
        "ok>",
        "<ok>",
        "ハ",
        "ー",
        "ハー",
    ]
    assert hashed_features("红心色，OKハー") == [zlib.crc32(part.encode()) % BUCKETS for part in parts]
    # Hangul is written in words
    assert hashed_features("사랑") == [
        zlib.crc32(part.encode()) % BUCKETS for part in ("w:사랑", "<사랑", "사랑>", "<사랑>")
    ]


@pytest.mark.parametrize("text", ["", "   ", "\ud800", "红心 ❤️", "a" * 10_000])
def test_any_text_has_features(text):
    features = hashed_features(text)
    assert features
    assert all(0 <= bucket < BUCKETS for bucket in features)


def test_a_table_gives_the_features_of_any_selection():
    texts = ["red heart", "a", "", "smiling cat with heart-eyes"]
    buckets, offsets = TextTable(texts).take(np.array([3, 1, 1, 0]))
    ends = [*offsets.tolist()[1:], len(buckets)]
    taken = [buckets[a:b].tolist() for a, b in zip(offsets.tolist(), ends, strict=True)]
    assert taken == [hashed_features(texts[k]) for k in (3, 1, 1, 0)]


def test_a_text_embedding_does_not_depend_on_its_neighbours():
    model = build_model("small", 16, 0)
    table = TextTable(["red heart", "dog", "cat"])
    together = model.texts(*table.take(np.array([0, 1, 2])))
    alone = model.texts(*table.take(np.array([1])))
    assert torch.allclose(together[1], alone[0], atol=1e-6)


def test_a_clip_of_one_picture_repeated_is_embedded_as_the_picture():
    model = build_model("small", 16, 0).eval()
    pictures = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
    clips = pictures[:, None].expand(-1, 4, -1, -1, -1)
    assert model.pictures(pictures).shape == (3, 16)
    assert torch.allclose(model.pictures(clips), model.pictures(pictures), atol=1e-5)


def test_initial_weights_depend_on_the_seed_only_and_leave_the_callers_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (build_model("small", 8, seed).state_dict() for seed in (1, 1, 2))
    assert (torch.get_rng_state() == before).all()
    assert all((first[name] == again[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)


@pytest.mark.parametrize("total", [1, 2, 3, 39, 520])
def test_the_learning_rate_rises_then_falls_and_is_never_zero(total):
    rates = [learning_rate_at(step, total, 2.0) for step in range(total)]
    peak = int(np.argmax(rates))
    assert max(rates) == 2.0
    assert min(rates) > 0
    assert peak <= max(0, round(total / 20))
    assert (np.diff(rates[: peak + 1]) > 0).all()
    assert (np.diff(rates[peak + 1 :]) < 0).all()


def grouped(groups: list[str]) -> SimpleNamespace:
    return SimpleNamespace(groups=groups)


def test_probes_take_every_group_in_proportion_and_stay_the_same():
    groups = ["a"] * 700 + ["b"] * 200 + ["c"] * 100
    data, rows = grouped(groups), np.arange(1000)
    probes = probe_rows(data, rows, 100)
    counts = {group: sum(groups[k] == group for k in probes) for group in "abc"}
    assert counts == {"a": 70, "b": 20, "c": 10}
    assert (np.diff(probes) > 0).all()
    assert (probes == probe_rows(data, rows, 100)).all()
    # not just the first rows of each group
    assert probes[:70].max() > 600


def test_fewer_rows_than_probes_are_all_probes():
    rows = np.array([3, 5, 9])
    assert probe_rows(grouped(["x"] * 10), rows, 1000).tolist() == [3, 5, 9]


def checkpoint(step: int = 3) -> Checkpoint:
    return Checkpoint(
        step=step,
        config={"train": {"epochs": 1}},
        fingerprint="ab",
        model={"w": torch.ones(2)},
        optimizer={},
        loss={},
    )


def test_a_checkpoint_comes_back_and_leaves_no_other_file(tmp_path):
    checkpoint(3).save(tmp_path)
    checkpoint(4).save(tmp_path)
    loaded = load_checkpoint(tmp_path)
    assert (loaded.step, loaded.config, loaded.fingerprint) == (4, {"train": {"epochs": 1}}, "ab")
    assert loaded.model["w"].tolist() == [1, 1]
    assert os.listdir(tmp_path / "checkpoint") == ["last.pt"]


def test_a_checkpoint_that_cannot_be_written_keeps_the_earlier_one(tmp_path, monkeypatch):
    checkpoint(3).save(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot be written.*No space left"):
        checkpoint(4).save(tmp_path)
    assert load_checkpoint(tmp_path).step == 3
    assert os.listdir(tmp_path / "checkpoint") == ["last.pt"]


def test_a_missing_torn_or_foreign_checkpoint_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is no folder"):
        load_checkpoint(tmp_path / "none")
    with pytest.raises(ValueError, match=r"has no checkpoint/last\.pt to continue from"):
        load_checkpoint(tmp_path)
    path = checkpoint().save(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be read"):
        load_checkpoint(tmp_path)
    torch.save({"step": 1}, path)
    with pytest.raises(ValueError, match="of another version"):
        load_checkpoint(tmp_path)
    torch.save({"code": print}, path)
    with pytest.raises(ValueError, match="cannot be read"):
        load_checkpoint(tmp_path)
