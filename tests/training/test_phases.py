"""The two-phase start: frozen backbones first, and weights of an earlier run."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from uwml_core.data import load_pairs
from uwml_core.runlog.reader import open_run
from uwml_core.training import TrainingStopped, build_config, run_training
from uwml_core.training.batches import BatchSource, Corpus
from uwml_core.training.checkpoint import load_checkpoint
from uwml_core.training.encoders import SmallCNN, TwoTower, build_model
from uwml_core.training.frozen import frozen_corpus


def losses(path: Path) -> list[float]:
    return open_run(path).table("steps").sort_by("step")["loss"].to_pylist()


def train(settings: list[str], *more: str) -> Path:
    return run_training(build_config(settings=[*settings, "model.dim=16", *more]), progress=False)


def test_a_frozen_model_changes_its_last_maps_alone():
    model = TwoTower(8)
    model.freeze(True)
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    pictures, texts = model(
        torch.randint(0, 255, (4, 3, 32, 32), dtype=torch.uint8), torch.arange(8), torch.arange(0, 8, 2)
    )
    (pictures * texts).sum().backward()
    optimizer.step()
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {
        f"{side}.project.{part}" for side in ("pictures", "texts") for part in ("weight", "bias")
    }
    model.freeze(False)
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(module.training for module in model.modules())


def test_the_phase_is_in_the_log_and_the_backbones_learn_after_it(settings):
    run = train(settings, "train.warmup_epochs=2")
    steps = open_run(run).table("steps").to_pandas()
    assert steps.groupby("epoch")["phase"].unique().map(list).tolist() == [["warmup"], ["warmup"], ["train"]]
    events = open_run(run).table("events").to_pandas()
    assert events[events["kind"] == "phase"]["step"].tolist()[-1] == 14
    start, end = build_model("small", 16, 0).state_dict(), load_checkpoint(run).model
    assert not torch.equal(start["texts.bag.weight"], end["texts.bag.weight"])


def test_all_epochs_frozen_leave_the_backbones_as_they_were(settings):
    end = load_checkpoint(train(settings, "train.warmup_epochs=3", "loss.accumulate_batches=2")).model
    start = build_model("small", 16, 0).state_dict()
    kept = {name for name in start if torch.equal(start[name], end[name])}
    assert kept == {name for name in start if "project" not in name}


def test_an_earlier_runs_weights_are_the_start_and_bring_two_frozen_epochs(settings):
    first = train(settings)
    second = train(settings, f"train.init_from={first}")
    run = open_run(second)
    assert run.config["train"]["warmup_epochs"] == 2
    last, begin = (
        open_run(path).table("evals").to_pandas().query("metric == 'rsum'")["value"].tolist()
        for path in (first, second)
    )
    assert begin[0] == last[-1]


def test_weights_of_other_encoders_are_refused(settings):
    first = train(settings)
    other = build_config(settings=[*settings, "model.dim=8", f"train.init_from={first}"])
    with pytest.raises(ValueError, match=r"has other encoders .*'dim': 16.* than this run .*'dim': 8"):
        run_training(other, progress=False)


def test_more_frozen_epochs_than_epochs_are_refused():
    with pytest.raises(ValueError, match=r"train.warmup_epochs=4 is more than train.epochs=3"):
        build_config(settings=["train.epochs=3", "train.warmup_epochs=4"])


def watched(monkeypatch):
    """Rows that go through the picture backbone while something is trained on them, call by call."""
    seen, backbone = [], SmallCNN.backbone

    def noted(self, pictures):
        seen.append((len(pictures), self.features.training))
        return backbone(self, pictures)

    monkeypatch.setattr(SmallCNN, "backbone", noted)
    return seen


def test_frozen_backbones_see_each_picture_once(settings, monkeypatch):
    seen = watched(monkeypatch)
    monkeypatch.setattr("uwml_core.training.observer.Observer.observe", lambda *_, **__: {})
    train(settings, "train.warmup_epochs=2")
    frozen, learning = (sum(rows for rows, training in seen if training is phase) for phase in (False, True))
    # 240 training rows once for two epochs, then an epoch of 7 batches
    assert (frozen, learning) == (240, 7 * 32)


@pytest.mark.parametrize("clips", [False, True])
def test_frozen_features_give_the_embeddings_that_the_whole_encoders_give(clips, small_pairs):
    data = load_pairs("animated_emoji_pairs" if clips else small_pairs)
    rows = data.rows("val")[:40]
    corpus, model = Corpus(data), build_model("small", 16, 0)
    model.freeze(True)
    frozen = frozen_corpus(model, corpus, rows)
    captions = data.caption_counts[rows] - 1
    order = np.argsort(-rows)[::3]
    for one, other in zip(
        model(corpus.pictures(rows[order]), *corpus.texts(rows[order], captions[order])),
        model(frozen.pictures(rows[order]), *frozen.texts(rows[order], captions[order])),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-5)


def test_a_run_stopped_within_the_warmup_resumes_bit_for_bit(settings, monkeypatch):
    whole = train(settings, "train.warmup_epochs=2")
    at, sent = BatchSource.at, []

    def stopping(self, step):
        if step == 9 and not sent:
            sent.append(step)
            signal.raise_signal(signal.SIGINT)
        return at(self, step)

    monkeypatch.setattr(BatchSource, "at", stopping)
    with pytest.raises(TrainingStopped) as stopped:
        train(settings, "train.warmup_epochs=2")
    path = stopped.value.path
    train(settings, "train.warmup_epochs=2", f"train.resume={path}")
    assert losses(path) == losses(whole)
