"""Lightning's real trainer: schedule, log, checkpoints and statuses."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from uwml_core.integrations.lightning import UWMLCallback
from uwml_core.losses import UWMLLoss
from uwml_core.runlog.reader import open_run

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:You defined a `validation_step` but have no `val_dataloader`"),
]


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    # after an interrupt Lightning ignores all further ones
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


class Towers(lightning.LightningModule):
    def __init__(
        self, *, ids: bool = True, raises: BaseException | None = None, raises_at: int = 7, **settings: Any
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.image, self.text = nn.Linear(6, 4), nn.Linear(5, 4)
        self.loss = UWMLLoss(**settings)
        self._ids, self._raises, self._raises_at = ids, raises, raises_at
        self.losses: list[float] = []

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        if self._raises is not None and self.global_step == self._raises_at:
            raise self._raises
        image, text, items = batch
        named = {"item_ids": items, "captions": torch.zeros_like(items)} if self._ids else {}
        value = self.loss(self.image(image), self.text(text), labels=items // 2, **named)
        self.losses.append(value.item())
        return value

    def validation_step(self, batch: Any, index: int) -> None:
        image, text, items = batch
        self.log("val_loss", self.loss(self.image(image), self.text(text), labels=items), batch_size=4)
        self.log("val/i2t_R@1", 25.0, batch_size=4)
        self.log("train_like", 1.0, batch_size=4)

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def loader(n: int = 40) -> DataLoader[Any]:
    random = torch.Generator().manual_seed(0)
    data = torch.randn(n, 6, generator=random), torch.randn(n, 5, generator=random), torch.arange(n)
    return DataLoader(TensorDataset(*data), batch_size=4)


def trainer(folder: Path, *callbacks: Any, **changes: Any) -> Any:
    settings = {
        "accelerator": "cpu",
        "max_epochs": 2,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "default_root_dir": folder,
    }
    return lightning.Trainer(callbacks=list(callbacks), **{**settings, **changes})


def test_twenty_steps_follow_the_schedule_and_are_logged(tmp_path: Path) -> None:
    module, callback = Towers(), UWMLCallback(tmp_path / "logs")
    trainer(tmp_path, callback).fit(module, loader(), loader(8))
    run = open_run(callback.steps.path)
    steps, pairs, evals = run.frame("steps"), run.frame("pairs"), run.frame("evals")
    assert (run.status, run.total_steps) == ("finished", 20)
    assert steps["step"].tolist() == list(range(20))
    assert steps["epoch"].tolist() == [0] * 10 + [1] * 10
    assert steps["progress"].tolist() == pytest.approx([k / 20 for k in range(20)])
    assert steps["loss"].tolist() == pytest.approx(module.losses, rel=1e-6)
    assert steps["learning_rate"].tolist() == pytest.approx([0.1 / (1 + k) for k in range(20)])
    assert (steps["gradient_norm"] > 0).all()
    assert pairs["item_id"][pairs["direction"] == "i2t"].tolist() == [*range(40), *range(40)]
    assert set(pairs["caption"]) == {0}
    evals = evals.sort_values(["step", "metric"])
    assert evals[["step", "epoch", "metric", "n"]].values.tolist() == [
        [9, 0, "R@1", 8],
        [9, 0, "loss", 8],
        [19, 1, "R@1", 8],
        [19, 1, "loss", 8],
    ]
    assert evals["direction"].iloc[0] == "i2t"
    assert module.loss.step == 20


def test_gradient_norm_is_that_before_clipping(tmp_path: Path) -> None:
    callback = UWMLCallback(tmp_path / "logs")
    trainer(tmp_path, callback, max_steps=1, gradient_clip_val=1e-3).fit(Towers(), loader())
    module = Towers()
    image, text, items = next(iter(loader()))
    module.loss(module.image(image), module.text(text), labels=items // 2, progress=0.0).backward()
    want = nn.utils.get_total_norm([p.grad for p in module.parameters() if p.grad is not None])
    logged = open_run(callback.steps.path).frame("steps")["gradient_norm"]
    assert logged.tolist() == pytest.approx([want.item()], rel=1e-5)


def test_accumulated_batches_are_one_step_and_show_the_last(tmp_path: Path) -> None:
    module, callback = Towers(), UWMLCallback(tmp_path / "logs")
    trainer(tmp_path, callback, max_epochs=1, accumulate_grad_batches=4).fit(module, loader())
    run = open_run(callback.steps.path)
    steps, pairs = run.frame("steps"), run.frame("pairs")
    # ten batches: two steps of four, and one of the two that are left
    assert steps["step"].tolist() == [0, 1, 2]
    assert steps["loss"].tolist() == pytest.approx([module.losses[k] for k in (3, 7, 9)], rel=1e-6)
    items = pairs["item_id"][pairs["direction"] == "i2t"].tolist()
    assert items == [*range(12, 16), *range(28, 32), *range(36, 40)]
    assert module.loss.step == 10


@pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty")
def test_resumed_training_goes_on_exactly_and_continues_its_run(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"update_every": 1, "memory_batches": 2}
    whole, whole_log = Towers(**settings), UWMLCallback(tmp_path / "logs", run_id="whole")
    trainer(tmp_path, whole_log).fit(whole, loader())
    saving = ModelCheckpoint(tmp_path / "saved")
    part_log = UWMLCallback(tmp_path / "logs", run_id="part")
    with pytest.raises(RuntimeError, match="killed"):
        trainer(tmp_path, part_log, saving, enable_checkpointing=True).fit(
            Towers(raises=RuntimeError("killed"), raises_at=15, **settings), loader()
        )
    resumed, log = Towers(**settings), UWMLCallback(tmp_path / "logs")
    again = trainer(tmp_path, log, ModelCheckpoint(tmp_path / "saved"), enable_checkpointing=True)
    again.fit(resumed, loader(), ckpt_path=saving.best_model_path)
    assert log.steps.run_id == "part"
    assert resumed.losses == whole.losses[10:]
    ours, want = (open_run(tmp_path / "logs" / name).frame("steps") for name in ("part", "whole"))
    for column in ("step", "loss", "progress", "direction_weight_i2t", "learning_rate", "gradient_norm"):
        assert ours[column].tolist() == want[column].tolist(), column
    after, before = resumed.loss.get_extra_state(), whole.loss.get_extra_state()
    assert after["controller"] == before["controller"]


def test_without_ids_the_label_stands_for_the_item(tmp_path: Path) -> None:
    callback = UWMLCallback(tmp_path / "logs")
    trainer(tmp_path, callback, max_steps=2).fit(Towers(ids=False), loader())
    pairs = open_run(callback.steps.path).frame("pairs")
    assert pairs["item_id"][pairs["direction"] == "i2t"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_second_fit_is_a_run_of_its_own(tmp_path: Path) -> None:
    callback = UWMLCallback(tmp_path / "logs")
    for _ in range(2):
        trainer(tmp_path, callback, max_steps=1).fit(Towers(), loader())
    assert len(list((tmp_path / "logs").glob("*/run.json"))) == 2


def test_a_callback_without_a_log_only_sets_the_schedule(tmp_path: Path) -> None:
    module = Towers()
    trainer(tmp_path, UWMLCallback()).fit(module, loader())
    assert module.loss.last.progress == pytest.approx(19 / 20)
    assert list(tmp_path.iterdir()) == []
    # and lets go of the loss
    with pytest.warns(UserWarning, match="neither progress nor total_steps is known"):
        module.loss(torch.eye(3), torch.eye(3))


def test_total_steps_of_the_loss_win_over_the_trainer(tmp_path: Path) -> None:
    module = Towers(total_steps=200)
    trainer(tmp_path, UWMLCallback()).fit(module, loader())
    assert module.loss.last.progress == pytest.approx(19 / 200)


@pytest.mark.parametrize(
    ("error", "raised", "status"),
    [(KeyboardInterrupt(), SystemExit, "stopped"), (RuntimeError("no luck"), RuntimeError, "failed")],
)
def test_interrupt_stops_and_error_fails_the_run(
    error: BaseException, raised: type[BaseException], status: str, tmp_path: Path
) -> None:
    callback = UWMLCallback(tmp_path / "logs")
    with pytest.raises(raised):
        trainer(tmp_path, callback).fit(Towers(raises=error), loader())
    run = open_run(callback.steps.path)
    assert run.status == status
    assert run.frame("steps")["step"].tolist() == list(range(7))


def test_an_attribute_without_the_loss_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="loss='image' names a Linear of Towers"):
        trainer(tmp_path, UWMLCallback(loss="image")).fit(Towers(), loader())
