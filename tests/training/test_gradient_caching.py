"""A batch encoded in chunks gives what the whole batch gives, batch normalization included."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from uwml_core.losses import UWMLLoss
from uwml_core.runlog.reader import open_run
from uwml_core.training import build_config, run_training
from uwml_core.training.batch_norm import SharedBatchNorm2d, share_statistics
from uwml_core.training.chunks import backward_in_chunks
from uwml_core.training.distributed import Processes
from uwml_core.training.encoders import build_model

PAIRS = ["positive_similarity", "negative_similarity", "margin", "pair_loss", "weight", "gradient_share"]


class Towers(nn.Module):
    """Two layers of batch normalization, the second with a weight of 0, and a tower without any."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures = nn.Sequential(
            nn.Conv2d(3, 6, 3, bias=False),
            nn.BatchNorm2d(6),
            nn.ReLU(inplace=True),
            nn.Sequential(nn.Conv2d(6, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True)),
            nn.Flatten(),
            nn.Linear(4 * 16, 5),
        )
        self.texts = nn.Linear(7, 5)
        with torch.no_grad():
            self.pictures[3][1].weight[0] = 0.0

    def forward(self, pictures: torch.Tensor, texts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.pictures(pictures), self.texts(texts)


def towers() -> Towers:
    torch.manual_seed(3)
    return Towers().double()


def inputs(rows: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    pictures = 5 + torch.randn(rows, 3, 8, 8, dtype=torch.float64, generator=generator)
    return pictures, torch.randn(rows, 7, dtype=torch.float64, generator=generator)


def chunks(count: int) -> list[tuple[torch.Tensor, ...]]:
    return list(zip(*(part.chunk(count) for part in inputs()), strict=True))


def assert_same(first: nn.Module, second: nn.Module, tolerance: float) -> None:
    """Gradients of all parameters and all buffers."""
    for (name, one), other in zip(first.named_parameters(), second.parameters(), strict=True):
        assert (one.grad - other.grad).norm() <= tolerance * one.grad.norm(), name
    for (name, one), other in zip(first.named_buffers(), second.buffers(), strict=True):
        assert torch.allclose(one, other, rtol=tolerance, atol=tolerance), name


@pytest.mark.parametrize("count", [2, 4, 12])
def test_chunks_give_the_gradients_and_running_statistics_of_torchs_batch_norm_on_the_whole_batch(count):
    whole, parts = towers(), towers()
    share_statistics(parts)
    for _ in range(2):
        for model in (whole, parts):
            model.zero_grad()
        value = UWMLLoss(total_steps=10)(*whole(*inputs()))
        value.backward()
        loss = UWMLLoss(total_steps=10)
        backward_in_chunks(loss, parts, parts, chunks(count))
        assert (loss.step, loss.last.loss) == (1, pytest.approx(value.item(), rel=1e-12))
    assert_same(whole, parts, 1e-11)


def test_chunks_that_are_each_normalised_by_themselves_do_not():
    whole, parts = towers(), towers()
    UWMLLoss(total_steps=10)(*whole(*inputs())).backward()
    backward_in_chunks(UWMLLoss(total_steps=10), parts, parts, chunks(4))
    first, second = (model.pictures[0].weight.grad for model in (whole, parts))
    assert (first - second).norm() > 1e-2 * first.norm()


def test_shared_statistics_of_one_process_are_torchs_batch_norm():
    one, other = towers(), towers()
    share_statistics(other)
    assert sum(isinstance(module, SharedBatchNorm2d) for module in other.modules()) == 2
    assert one.state_dict().keys() == other.state_dict().keys()
    for model in (one, other):
        a, b = model(*inputs())
        F.cosine_similarity(a, b).sum().backward()
    assert_same(one, other, 1e-11)
    for model in (one, other):
        model.eval()
    assert torch.allclose(one(*inputs())[0], other(*inputs())[0], rtol=1e-11)


def test_sharing_keeps_parameters_and_buffers_as_they_are():
    model = build_model("small", 8, 0)
    before = [id(value) for value in (*model.parameters(), *model.buffers())]
    share_statistics(model)
    assert [id(value) for value in (*model.parameters(), *model.buffers())] == before


def test_statistics_are_forgotten_after_a_step_that_fails():
    model = towers()
    share_statistics(model)

    def refuse(*embeddings: torch.Tensor) -> torch.Tensor:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        backward_in_chunks(refuse, model, model, chunks(2))
    assert all(layer.moments is None for layer in model.modules() if isinstance(layer, SharedBatchNorm2d))


def logged(path):
    run = open_run(path)
    pairs = run.table("pairs").to_pandas().sort_values(["step", "direction", "item_id"])
    return run.table("steps").to_pandas().sort_values("step"), pairs


@pytest.mark.slow
def test_a_run_in_chunks_logs_what_a_run_without_does(settings, monkeypatch):
    # a small step: Adam's first ones are signs of gradients, which rounding turns over where they are tiny
    settings = [*settings, "train.epochs=1", "train.learning_rate=1e-5", "loss.learnable_temperature=true"]
    # the same arithmetic in batch normalization: torch's own adds up in another order
    monkeypatch.setattr(Processes, "wrapped", lambda self, model: (share_statistics(model), model)[1])
    whole, chunked = (
        logged(run_training(build_config(settings=[*settings, *more]), progress=False))
        for more in ([], ["loss.accumulate_batches=4"])
    )
    for column in whole[0].columns.drop(["time", "elapsed_s", "step_time_ms", "telemetry_time_ms"]):
        first, second = (steps[column].tolist() for steps, _ in (whole, chunked))
        assert second == (first if column == "phase" else pytest.approx(first, rel=1e-5, nan_ok=True)), column
    for column in ("step", "epoch", "direction", "item_id", "caption", "negative_item_id"):
        assert whole[1][column].tolist() == chunked[1][column].tolist(), column
    for column in PAIRS:
        assert chunked[1][column].tolist() == pytest.approx(whole[1][column].tolist(), rel=1e-3, abs=1e-5), (
            column
        )


def test_a_batch_that_does_not_divide_into_chunks_is_refused_and_nothing_is_written(settings, tmp_path):
    message = "data.batch_size=32 is no multiple of processes=1 x loss.accumulate_batches=5; choose"
    with pytest.raises(ValueError, match=re.escape(message)):
        run_training(build_config(settings=[*settings, "loss.accumulate_batches=5"]), progress=False)
    assert not (tmp_path / "logs").exists()
