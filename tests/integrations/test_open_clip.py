"""The loss in open_clip's place: its models, its losses, its training loop and script are the real ones."""

from __future__ import annotations

import math
import subprocess
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch

from tests.support import open_clip as small
from tests.support.processes import run_in_processes
from uwml_core.integrations.open_clip import CoCaUWMLLoss, LoggedBatches, create_loss
from uwml_core.losses import UWMLLoss
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger

# after the support module, without which torchvision may not load
open_clip = import_module("open_clip")
ROOT = Path(__file__).resolve().parents[2]
UNWEIGHTED = {"curve": "uniform", "direction_mode": "off"}


def gradients_of(model: torch.nn.Module, value: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    value.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, want in theirs.items():
        torch.testing.assert_close(ours[name], want, rtol=1e-6, atol=1e-9, msg=name)


@pytest.mark.parametrize("words", [[], ["--siglip"]], ids=["clip", "siglip"])
def test_unweighted_it_is_their_loss_in_value_and_every_gradient(words: list[str]) -> None:
    args = small.arguments(*words)
    model = small.clip(**({"init_logit_scale": math.log(10), "init_logit_bias": -10} if words else {}))
    output = model(*next(iter(small.Loader(1, 12))))
    theirs = open_clip.create_loss(args)(**output, output_dict=True)
    ours = create_loss(args, **UNWEIGHTED)(**output, output_dict=True)
    assert list(ours) == list(theirs) == ["contrastive_loss"]
    torch.testing.assert_close(ours["contrastive_loss"], theirs["contrastive_loss"], rtol=1e-9, atol=1e-9)
    output = model(*next(iter(small.Loader(1, 12))))
    want = gradients_of(model, theirs["contrastive_loss"])
    assert want["logit_scale"].abs() > 1e-3
    assert ("logit_bias" in want) == bool(words)
    assert_same(gradients_of(model, create_loss(args, **UNWEIGHTED)(**output)), want)


@pytest.mark.parametrize("accumulated", [1, 4])
@pytest.mark.parametrize("words", [[], ["--siglip"]], ids=["clip", "siglip"])
def test_unweighted_their_epoch_ends_at_the_same_weights(words: list[str], accumulated: int) -> None:
    args = small.arguments("--accum-freq", str(accumulated), *words)
    model = small.clip(**({"init_logit_bias": -10} if words else {}))
    loader = small.Loader(8, 4)
    theirs = small.train(model, open_clip.create_loss(args), loader, args)
    loss = create_loss(args, **UNWEIGHTED)
    ours = small.train(model, loss, loader, args)
    assert loss.step == 8 // accumulated
    assert not torch.equal(theirs.visual.proj, model.visual.proj)
    assert_same(ours.state_dict(), theirs.state_dict())


def test_accumulated_batches_are_one_large_batch() -> None:
    settings = {**small.WEIGHTED, "memory_batches": 1}
    model = small.clip()
    whole, parts = small.arguments("--accum-freq", "1"), small.arguments("--accum-freq", "4")
    losses = create_loss(whole, **settings), create_loss(parts, **settings)
    # the scale stays as it is: their loop adds up its gradient over the calls, four times that of the batch
    model.logit_scale.requires_grad_(False)
    want = small.train(model, losses[0], small.Loader(2, 16), whole)
    got = small.train(model, losses[1], small.Loader(8, 4), parts)
    assert losses[0].step == losses[1].step == 2
    assert losses[0].last.direction_weight[0] != 0.5
    torch.testing.assert_close(losses[1].last.direction_weight, losses[0].last.direction_weight)
    torch.testing.assert_close(losses[1].last.weight, losses[0].last.weight)
    assert_same(got.state_dict(), want.state_dict())


@pytest.mark.parametrize("make", [open_clip.create_loss, create_loss], ids=["theirs", "ours"])
def test_their_loop_adds_up_the_gradient_of_the_scale_over_the_calls(make) -> None:
    model = small.clip()
    moved = []
    for accumulated, loader in ((1, small.Loader(1, 16)), (4, small.Loader(4, 4))):
        args = small.arguments("--accum-freq", str(accumulated), "--train-num-samples", "16")
        trained = small.train(model, make(args), loader, args)
        moved.append((trained.logit_scale - model.logit_scale).item())
    assert abs(moved[0]) > 1e-6
    assert moved[1] == pytest.approx(4 * moved[0], rel=1e-6)


def test_the_scale_learns_and_is_clamped_as_theirs() -> None:
    args = small.arguments("--train-num-samples", "8", "--epochs", "1")
    model = small.clip()
    with torch.no_grad():
        model.logit_scale.fill_(math.log(100) + 3.0)
    trained = small.train(model, create_loss(args), small.Loader(1, 8), args)
    assert trained.logit_scale.item() <= math.log(100)
    learned = small.train(small.clip(), create_loss(args), small.Loader(1, 8), args)
    assert learned.logit_scale.item() != small.clip().logit_scale.item()


def test_arguments_set_steps_accumulation_and_base() -> None:
    words = ("--train-num-samples", "1000", "--batch-size", "16", "--epochs", "3", "--accum-freq", "2")
    loss = create_loss(small.arguments(*words, "--siglip"), center=0.05)
    assert isinstance(loss, UWMLLoss)
    assert loss.config.total_steps == 1000 // 32 * 3
    assert (loss.config.accumulate_batches, loss.config.base, loss.config.center) == (2, "sigmoid", 0.05)
    assert create_loss(small.arguments()).config.total_steps is None
    assert create_loss(small.arguments(*words), total_steps=7).config.total_steps == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"distill": True}, "args.distill=True cannot be combined with the weighted loss"),
        ({"horovod": True}, "args.horovod=True is not supported; expected torch.distributed"),
        ({"world_size": 2}, "args.world_size=2 but torch.distributed is not initialized"),
    ],
)
def test_what_cannot_be_weighted_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_loss(small.arguments(**changes))


def test_coca_keeps_its_captioning_loss() -> None:
    args = small.arguments("--coca-caption-loss-weight", "3", "--coca-contrastive-loss-weight", "0.5")
    args.model = "coca_small"
    model = small.coca()
    theirs, ours = open_clip.create_loss(args), create_loss(args, **UNWEIGHTED)
    assert isinstance(ours, CoCaUWMLLoss)
    batch = next(iter(small.Loader(1, 6)))
    want, got = theirs(**model(*batch), output_dict=True), ours(**model(*batch), output_dict=True)
    assert got.keys() == want.keys()
    assert_same({name: v.detach() for name, v in got.items()}, {name: v.detach() for name, v in want.items()})
    assert_same(gradients_of(model, sum(got.values())), gradients_of(model, sum(want.values())))
    assert ours.last.loss == pytest.approx(2 * got["contrastive_loss"].item())
    plain = ours(**model(*batch))
    assert [value.item() for value in plain] == pytest.approx([value.item() for value in got.values()])


def test_coca_trains_in_their_loop() -> None:
    args = small.arguments("--accum-freq", "2")
    args.model = "coca_small"
    model, loader = small.coca(), small.Loader(4, 4)
    loss = create_loss(args, **UNWEIGHTED)
    theirs = small.train(model, open_clip.create_loss(args), loader, args)
    assert_same(small.train(model, loss, loader, args).state_dict(), theirs.state_dict())
    assert loss.contrastive.step == 2


@pytest.mark.parametrize("accumulated", [1, 2])
def test_batches_with_ids_are_logged_once_per_step(tmp_path, accumulated: int) -> None:
    args = small.arguments("--accum-freq", str(accumulated))
    loss = create_loss(args, total_steps=10, memory_batches=1)
    with RunLogger(tmp_path, "run", config={"loss": loss.config.to_dict()}) as log:
        # with two batches a step the fifth batch fills none, and the loop drops it
        loader = LoggedBatches(small.Loader(5, 4, with_ids=True), loss, log)
        small.train(small.clip(), loss, loader, args, epochs=2)
    run = open_run(tmp_path / "run")
    per_epoch = 5 // accumulated
    steps = run.table("steps").to_pandas()
    assert steps["step"].tolist() == list(range(2 * per_epoch))
    assert steps["epoch"].tolist() == [0] * per_epoch + [1] * per_epoch
    assert steps["batch_size"].tolist() == [4 * accumulated] * (2 * per_epoch)
    pairs = run.table("pairs").to_pandas()
    seen = pairs[(pairs["direction"] == "i2t") & (pairs["epoch"] == 1)]["item_id"]
    assert seen.tolist() == list(range(100, 100 + 4 * accumulated * per_epoch))
    assert pairs["negative_item_id"].notna().all()


@pytest.mark.slow
def test_two_processes_end_at_the_weights_of_one(tmp_path) -> None:
    accumulated = ("1", "2")
    ranks = run_in_processes(partial(small.weights_of_one_of_two, *accumulated), 2, tmp_path)
    for place, number in enumerate(accumulated):
        args = small.arguments("--accum-freq", number)
        loss = create_loss(args, **small.WEIGHTED)
        want = small.train(small.clip(), loss, small.Loader(4, 16), args).state_dict()
        assert loss.last.direction_weight[0] != 0.5
        for found in ranks:
            assert_same(found[place], want)


@pytest.mark.slow
# what the script's readers of archives are made of
def test_their_script_trains_and_resumes_with_it(tmp_path, python: str) -> None:
    checkpoint = tmp_path / "first" / "checkpoints" / "epoch_3.pt"
    attempts = ["--epochs 4 --name first", f"--epochs 4 --name resumed --resume {checkpoint}"]
    # in a process of its own, as it takes over the logging of the whole process
    command = [python, "-m", "tests.support.open_clip", str(tmp_path), *attempts]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    first, resumed = ([float(word) for word in line.split()] for line in done.stdout.splitlines())
    assert first == pytest.approx([12, 12, 11 / 12])
    assert resumed == pytest.approx([12, 12, 11 / 12])
