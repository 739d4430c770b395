"""sentence-transformers with its real models and trainer: text with text, image with text."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from PIL import Image
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer import losses

from tests.support import hugging_face as small
from uwml_core.integrations.pairs import pack_pairs
from uwml_core.integrations.sentence_transformers import UWMLSentenceLoss
from uwml_core.integrations.transformers import UWMLCallback
from uwml_core.losses import UWMLLoss
from uwml_core.runlog.reader import open_run

ANCHORS = [f"{a} {b}" for a in small.WORDS[:4] for b in small.WORDS[5:8]]
PAIRS = {"anchor": ANCHORS, "positive": [f"the {text} on a tree" for text in reversed(ANCHORS)]}
UNWEIGHTED = {"curve": "uniform", "direction_mode": "off"}


@pytest.fixture(scope="module")
def text_model(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformer:
    return SentenceTransformer(str(small.bert_folder(tmp_path_factory.mktemp("bert"))), device="cpu")


@pytest.fixture(scope="module")
def clip_model(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformer:
    return SentenceTransformer(str(small.clip_folder(tmp_path_factory.mktemp("clip"))), device="cpu")


def trainer(
    folder: Path, loss: UWMLSentenceLoss, data: Dataset, **changes: Any
) -> SentenceTransformerTrainer:
    named = {name: changes.pop(name) for name in ("eval_dataset", "callbacks") if name in changes}
    settings = {
        "output_dir": str(folder / "out"),
        "per_device_train_batch_size": 4,
        "num_train_epochs": 1,
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "logging_strategy": "no",
        "save_strategy": "no",
        "learning_rate": 1e-3,
    }
    args = SentenceTransformerTrainingArguments(**{**settings, **changes})
    return SentenceTransformerTrainer(model=loss.model, args=args, train_dataset=data, loss=loss, **named)


def features(model: SentenceTransformer) -> list[dict[str, Any]]:
    return [model.preprocess(texts) for texts in PAIRS.values()]


def their_losses(model: SentenceTransformer) -> list[torch.nn.Module]:
    both = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    new = losses.MultipleNegativesRankingLoss(model, scale=20.0, **both)
    with pytest.warns(DeprecationWarning, match="MultipleNegativesSymmetricRankingLoss is deprecated"):
        old = losses.MultipleNegativesSymmetricRankingLoss(model, scale=20.0)
    return [new, old]


def test_unweighted_it_is_their_symmetric_loss_in_value_and_every_gradient(
    text_model: SentenceTransformer,
) -> None:
    model = copy.deepcopy(text_model).double()
    ours = UWMLSentenceLoss(model, **UNWEIGHTED, temperature=0.05)
    value = ours(features(model))
    value.backward()
    mine = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    assert value.item() > 0.1
    assert max(gradient.abs().max().item() for gradient in mine.values()) > 1e-3
    for theirs in their_losses(model):
        model.zero_grad()
        want = theirs(features(model), None)
        assert value.item() == pytest.approx(want.item(), rel=1e-6)
        want.backward()
        for name, gradient in mine.items():
            other = model.get_parameter(name).grad
            torch.testing.assert_close(gradient, other, rtol=1e-6, atol=1e-9, msg=name)


def test_text_pairs_train_on_the_schedule_of_the_trainer_and_are_logged(
    text_model: SentenceTransformer, tmp_path: Path
) -> None:
    loss = UWMLSentenceLoss(copy.deepcopy(text_model))
    data = Dataset.from_dict(PAIRS)
    with UWMLCallback(loss, tmp_path / "logs") as callback:
        trainer(
            tmp_path,
            loss,
            data,
            eval_dataset=data,
            eval_strategy="epoch",
            num_train_epochs=2,
            callbacks=[callback],
        ).train()
    run = open_run(callback.steps.path)
    steps, pairs = run.frame("steps"), run.frame("pairs")
    assert run.status == "finished"
    assert run.directions == ("q2p", "p2q")
    assert steps["progress"].tolist() == pytest.approx([k / 6 for k in range(6)])
    # the pairs were numbered, and evaluation used up no number
    assert pairs["item_id"][pairs["direction"] == "q2p"].tolist() == list(range(24))
    assert loss.loss.step == 6
    assert run.frame("evals")[["metric", "n"]].values.tolist() == [["loss", 12]] * 2


def test_a_label_column_may_carry_item_ids(text_model: SentenceTransformer, tmp_path: Path) -> None:
    loss = UWMLSentenceLoss(copy.deepcopy(text_model))
    names = pack_pairs(range(50, 62), labels=[k // 2 for k in range(12)], captions=[3] * 12)
    data = Dataset.from_dict({**PAIRS, "label": names.tolist()})
    callback = UWMLCallback(loss, tmp_path / "logs")
    trainer(tmp_path, loss, data, per_device_train_batch_size=12, callbacks=[callback]).train()
    pairs = open_run(callback.steps.path).frame("pairs")
    assert sorted(pairs["item_id"]) == sorted([*range(50, 62)] * 2)
    assert set(pairs["caption"]) == {3}
    # two captions of the same thing are no negatives of each other
    assert loss.loss.last.negatives_per_anchor == 10


def test_images_train_with_texts(clip_model: SentenceTransformer, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    pictures = [Image.fromarray(random.integers(0, 255, (9, 9, 3), dtype=np.uint8)) for _ in range(8)]
    texts = ["abc", "bcd", "cde", "def", "efg", "fgh", "ghi", "hij"]
    model = copy.deepcopy(clip_model)
    loss = UWMLSentenceLoss(model, modalities=("image", "text"), total_steps=2)
    with torch.no_grad():
        value = loss.eval()([model.preprocess(pictures), model.preprocess(texts)], None)
        embedded = [model.encode(batch, convert_to_tensor=True) for batch in (pictures, texts)]
        want = UWMLLoss(total_steps=2).eval()(*embedded)
    assert value.item() == pytest.approx(want.item(), rel=1e-5)
    before = copy.deepcopy(model.state_dict())
    trainer(tmp_path, loss, Dataset.from_dict({"image": pictures, "caption": texts})).train()
    assert loss.loss.directions == ("i2t", "t2i")
    assert loss.loss.step == 2
    moved = [name for name, value in model.state_dict().items() if not torch.equal(value, before[name])]
    assert {name.split(".")[2] for name in moved} >= {"vision_model", "text_model"}


def test_learnable_temperature_is_trained(text_model: SentenceTransformer, tmp_path: Path) -> None:
    loss = UWMLSentenceLoss(copy.deepcopy(text_model), learnable_temperature=True, total_steps=3)
    before = loss.loss.logit_scale.item()
    trainer(tmp_path, loss, Dataset.from_dict(PAIRS)).train()
    assert loss.loss.logit_scale.item() != before


def test_a_column_of_negatives_is_refused(text_model: SentenceTransformer, tmp_path: Path) -> None:
    loss = UWMLSentenceLoss(copy.deepcopy(text_model), total_steps=3)
    data = Dataset.from_dict({**PAIRS, "negative": ANCHORS})
    with pytest.raises(
        ValueError, match=r"sentence_features has 3 columns; expected two, \(anchor, positive\)"
    ):
        trainer(tmp_path, loss, data).train()


def test_model_card_tells_settings_and_source(text_model: SentenceTransformer, tmp_path: Path) -> None:
    loss = UWMLSentenceLoss(copy.deepcopy(text_model), center=0.05, total_steps=3)
    trainer(tmp_path, loss, Dataset.from_dict(PAIRS)).train()
    loss.model.save_pretrained(str(tmp_path / "saved"))
    card = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
    assert '"center": 0.05' in card
    assert "Universal Weighting Metric Learning for Cross-Modal Matching" in card
