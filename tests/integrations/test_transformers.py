"""The Hugging Face Trainer with real dual encoders: what it trains on, what it logs, how it resumes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import (
    BertConfig,
    CLIPVisionConfig,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    VisionTextDualEncoderConfig,
    VisionTextDualEncoderModel,
)

from tests.support import hugging_face as small
from uwml_core.integrations.pairs import pack_pairs
from uwml_core.integrations.transformers import (
    PairCollator,
    UWMLCallback,
    UWMLTrainerMixin,
    compute_loss_func,
    dual_encoder_loss,
)
from uwml_core.losses import UWMLLoss
from uwml_core.runlog.reader import open_run

UNWEIGHTED = {"curve": "uniform", "direction_mode": "off"}


class WeightedTrainer(UWMLTrainerMixin, Trainer):
    pass


class StrictEncoder(nn.Module):
    """A dual encoder whose forward takes its inputs and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.image, self.text = nn.Linear(3, 4), nn.Embedding(32, 4)

    def forward(self, pixel_values: torch.Tensor, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            "image_embeds": self.image(pixel_values.mean((2, 3))),
            "text_embeds": self.text(input_ids).mean(1),
        }


class Gradients(TrainerCallback):
    """Keeps the gradients of each optimizer step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, torch.Tensor]] = []

    def on_pre_optimizer_step(
        self, args: Any, state: Any, control: Any, model: Any = None, **kw: Any
    ) -> None:
        self.steps.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})


class Interruption(TrainerCallback):
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        if state.global_step == 2:
            raise self._error


def arguments(folder: Path, **changes: Any) -> TrainingArguments:
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
        "seed": 3,
    }
    return TrainingArguments(**{**settings, **changes})


def weighted(folder: Path, loss: UWMLLoss, rows: Any, model: nn.Module | None = None, **changes: Any) -> Any:
    callbacks = changes.pop("callbacks", [])
    return WeightedTrainer(
        small.clip() if model is None else model,
        arguments(folder, **changes),
        train_dataset=rows,
        data_collator=PairCollator(),
        uwml_loss=loss,
        callbacks=callbacks,
    )


def test_unweighted_it_is_the_loss_of_clip_in_value_and_every_gradient(tmp_path: Path) -> None:
    batch = PairCollator()(small.clip_rows(6))
    labels = batch.pop("labels")
    ours, theirs = small.clip().double(), small.clip().double()
    batch["pixel_values"] = batch["pixel_values"].double()
    value = dual_encoder_loss(UWMLLoss(**UNWEIGHTED), ours(**batch), labels, model=ours)
    want = theirs(**batch, return_loss=True).loss
    assert value.item() == pytest.approx(want.item(), rel=1e-6)
    value.backward()
    want.backward()
    assert ours.logit_scale.grad is not None
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-6, atol=1e-9, msg=name)


def with_mixin(folder: Path, rows: Any, collate: Any, loss: UWMLLoss, seen: Gradients) -> Any:
    trainer = weighted(
        folder, loss, rows, learning_rate=0.0, gradient_accumulation_steps=2, max_grad_norm=0.0
    )
    trainer.data_collator = collate
    trainer.add_callback(seen)
    return trainer


def with_function(folder: Path, rows: Any, collate: Any, loss: UWMLLoss, seen: Gradients) -> Any:
    model = small.clip()
    args = arguments(
        folder,
        learning_rate=0.0,
        gradient_accumulation_steps=2,
        max_grad_norm=0.0,
        remove_unused_columns=False,
    )
    return Trainer(
        model,
        args,
        train_dataset=rows,
        data_collator=collate,
        compute_loss_func=compute_loss_func(loss, model),
        callbacks=[seen],
    )


@pytest.mark.parametrize("make", [with_mixin, with_function])
def test_accumulated_gradient_is_the_mean_over_the_batches_of_the_step(
    make: Callable[..., Any], tmp_path: Path
) -> None:
    batches: list[dict[str, torch.Tensor]] = []
    pairs = PairCollator()

    def collate(rows: Any) -> dict[str, torch.Tensor]:
        batches.append(pairs(rows))
        return dict(batches[-1])

    collate.columns = pairs.columns  # type: ignore[attr-defined]
    seen, rows = Gradients(), small.clip_rows(20, labels=7)
    make(tmp_path, rows, collate, UWMLLoss(**UNWEIGHTED), seen).train()
    # five batches of four: two steps of two, then one of one
    assert [len(batch["labels"]) for batch in batches] == [4] * 5
    for step, chosen in enumerate([batches[0:2], batches[2:4], batches[4:5]]):
        model, loss = small.clip(), UWMLLoss(**UNWEIGHTED)
        values = []
        for batch in chosen:
            inputs = {name: value for name, value in batch.items() if name != "labels"}
            values.append(dual_encoder_loss(loss, model(**inputs), batch["labels"], model=model))
        torch.stack(values).mean().backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(
                seen.steps[step][name], parameter.grad, rtol=1e-4, atol=1e-7, msg=f"{step} {name}"
            )


@pytest.mark.parametrize("kind", ["rows", "dataset"])
def test_labels_and_ids_reach_loss_and_log_but_not_the_model(kind: str, tmp_path: Path) -> None:
    rows: Any = small.clip_rows(12, labels=5)
    if kind == "dataset":
        rows = Dataset.from_list(rows).with_format("torch")
    loss = UWMLLoss(base="triplet")
    callback = UWMLCallback(loss, tmp_path / "logs")
    weighted(tmp_path, loss, rows, StrictEncoder(), callbacks=[callback]).train()
    pairs = open_run(callback.steps.path).frame("pairs")
    assert sorted(pairs["item_id"][pairs["direction"] == "i2t"]) == list(range(100, 112))
    assert set(loss.last.label[0].tolist()) <= set(range(5))
    assert pairs["caption"].isna().all()


def test_plain_trainer_with_the_function_trains_evaluates_and_logs(tmp_path: Path) -> None:
    loss, rows = UWMLLoss(), [{**row, "caption": 2} for row in small.clip_rows(12)]
    args = arguments(
        tmp_path,
        remove_unused_columns=False,
        label_names=["labels"],
        eval_strategy="epoch",
        num_train_epochs=2,
    )
    with UWMLCallback(loss, tmp_path / "logs") as callback:
        Trainer(
            StrictEncoder(),
            args,
            train_dataset=rows,
            eval_dataset=rows[:8],
            data_collator=PairCollator(),
            compute_loss_func=compute_loss_func(loss),
            callbacks=[callback],
        ).train()
    run = open_run(callback.steps.path)
    steps, evals = run.frame("steps"), run.frame("evals")
    assert run.status == "finished"
    assert steps["progress"].tolist() == pytest.approx([k / 6 for k in range(6)])
    assert steps["learning_rate"].tolist() == pytest.approx([1e-3 * (6 - k) / 6 for k in range(6)])
    assert steps["epoch"].tolist() == [0, 0, 0, 1, 1, 1]
    assert evals[["step", "epoch", "metric", "n"]].values.tolist() == [[2, 0, "loss", 8], [5, 1, "loss", 8]]
    assert evals["value"].notna().all()
    assert set(run.frame("pairs")["caption"]) == {2}
    # evaluation moved neither the schedule nor the controller
    assert loss.step == 6


def test_evaluation_of_the_mixin_uses_the_same_loss_and_advances_nothing(tmp_path: Path) -> None:
    loss, rows = UWMLLoss(), small.clip_rows(8)
    trainer = weighted(tmp_path, loss, rows)
    trainer.eval_dataset = rows
    value = trainer.evaluate()["eval_loss"]
    batch = PairCollator()(rows)
    labels = batch.pop("labels")
    model = small.clip().eval()
    want = dual_encoder_loss(UWMLLoss().eval(), model(**batch), labels, model=model, progress=0.0)
    assert value == pytest.approx(want.item(), rel=1e-5)
    assert loss.step == 0


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), "stopped"), (RuntimeError("no luck"), "failed")]
)
def test_interrupt_stops_and_error_fails_the_run(error: BaseException, status: str, tmp_path: Path) -> None:
    loss = UWMLLoss()
    callback = UWMLCallback(loss, tmp_path / "logs")
    trainer = weighted(tmp_path, loss, small.clip_rows(16), callbacks=[callback, Interruption(error)])
    with pytest.raises(type(error)):
        trainer.train()
    run = open_run(callback.steps.path)
    assert run.status == status
    assert run.frame("steps")["step"].tolist() == [0, 1]
    assert ("no luck" in " ".join(run.frame("events")["message"])) == (status == "failed")


def test_resumed_training_continues_loss_and_run_as_if_unbroken(tmp_path: Path) -> None:
    rows = small.clip_rows(16, labels=9)
    settings: dict[str, Any] = {"num_train_epochs": 2, "save_strategy": "steps", "save_steps": 3}

    def trainer(
        folder: Path, run_id: str | None, *more: TrainerCallback
    ) -> tuple[Any, UWMLLoss, UWMLCallback]:
        loss = UWMLLoss(update_every=1, memory_batches=2)
        callback = UWMLCallback(loss, tmp_path / "logs", run_id=run_id)
        return weighted(folder, loss, rows, callbacks=[callback, *more], **settings), loss, callback

    class Death(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
            if state.global_step == 5:
                raise RuntimeError("killed")

    whole, whole_loss, _ = trainer(tmp_path / "whole", "whole")
    whole.train()
    with pytest.raises(RuntimeError, match="killed"):
        trainer(tmp_path / "part", "part", Death())[0].train()
    resumed, loss, callback = trainer(tmp_path / "part", None)
    resumed.train(resume_from_checkpoint=str(tmp_path / "part" / "out" / "checkpoint-3"))
    assert callback.steps.run_id == "part"
    ours, want = (open_run(tmp_path / "logs" / name).frame("steps") for name in ("part", "whole"))
    for column in ("step", "loss", "progress", "direction_weight_i2t", "learning_rate"):
        assert ours[column].tolist() == want[column].tolist(), column
    assert loss.get_extra_state()["controller"] == whole_loss.get_extra_state()["controller"]


def test_a_checkpoint_without_the_loss_says_so(tmp_path: Path) -> None:
    loss, rows = UWMLLoss(), small.clip_rows(8)
    settings: dict[str, Any] = {"save_strategy": "steps", "save_steps": 1}
    weighted(tmp_path, loss, rows, **settings).train()
    again = weighted(tmp_path, loss, rows, callbacks=[UWMLCallback(loss)], **settings)
    with pytest.warns(UserWarning, match=r"uwml_loss_0\.pt does not exist"):
        again.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-1"))


def test_learnable_temperature_of_the_loss_is_trained(tmp_path: Path) -> None:
    loss = UWMLLoss(learnable_temperature=True)
    before = copy.deepcopy(loss.logit_scale)
    trainer = weighted(tmp_path, loss, small.clip_rows(12), StrictEncoder())
    trainer.train()
    assert not torch.equal(loss.logit_scale, before)
    assert loss.logit_scale.grad is None


def test_model_scale_can_be_left_out(tmp_path: Path) -> None:
    loss = UWMLLoss(temperature=0.5)
    trainer = WeightedTrainer(
        small.clip(), arguments(tmp_path), data_collator=PairCollator(), uwml_loss=loss, model_scale=False
    )
    trainer.train_dataset = small.clip_rows(8)
    trainer.train()
    assert loss.last.temperature == 0.5


def test_two_separate_towers_train(tmp_path: Path) -> None:
    torch.manual_seed(0)
    size: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision = CLIPVisionConfig(**size, intermediate_size=16, image_size=8, patch_size=4)
    text = BertConfig(**size, intermediate_size=16, vocab_size=32, max_position_embeddings=8)
    config = VisionTextDualEncoderConfig.from_vision_text_configs(vision, text, projection_dim=6)
    loss = UWMLLoss()
    weighted(tmp_path, loss, small.clip_rows(12), VisionTextDualEncoderModel(config)).train()
    assert loss.step == 3


def test_impossible_uses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="row 0 has no 'item_id', only label; expected it in each row"):
        PairCollator()([{"label": 1}])
    with pytest.raises(ValueError, match="loss learns its own temperature"):
        compute_loss_func(UWMLLoss(learnable_temperature=True))
    with pytest.raises(ValueError, match="labels is None"):
        compute_loss_func(UWMLLoss())({}, None)
    with pytest.raises(ValueError, match="num_items_in_batch has 2 values"):
        compute_loss_func(UWMLLoss())({}, pack_pairs([1, 2]), torch.tensor([[6], [6]]))
    of_audio = UWMLLoss(modalities=("audio", "text"))
    with pytest.raises(ValueError, match="outputs has no audio_embeds, only text_embeds"):
        dual_encoder_loss(of_audio, {"text_embeds": torch.eye(2)}, None)
    with pytest.raises(ValueError, match="compute_loss_func has no effect beside"):
        WeightedTrainer(small.clip(), arguments(tmp_path), compute_loss_func=print)
    with pytest.raises(ValueError, match="Linear with 0 UWMLLoss in it"):
        UWMLCallback(nn.Linear(2, 2))


def test_packed_pairs_are_checked() -> None:
    with pytest.raises(ValueError, match="2 item_ids, 1 labels and 2 captions"):
        pack_pairs([1, 2], labels=[1])
    with pytest.raises(ValueError, match="-100"):
        pack_pairs([1, 2], labels=[1, -100])
