"""What training at real sizes needs: half precision, compiled encoders, workers that make batches ahead."""

from __future__ import annotations

import signal

import numpy as np
import pytest
import torch
from PIL import Image

from uwml_core.data import DECODE, load_pairs, open_data
from uwml_core.losses import UWMLLoss
from uwml_core.runlog.reader import open_run
from uwml_core.training import TrainingStopped, build_config, run_training
from uwml_core.training.batch_norm import share_statistics
from uwml_core.training.batches import BatchSource, Corpus
from uwml_core.training.checkpoint import load_checkpoint
from uwml_core.training.chunks import backward_in_chunks
from uwml_core.training.distributed import Processes
from uwml_core.training.encoders import build_model
from uwml_core.training.loop import Trainer
from uwml_core.training.precision import Precision
from uwml_core.training.prefetch import PrefetchedBatches

BROKEN = r"captions.csv: picture of '4.png' cannot be used .cannot be decoded .*; uwml inspect-data names"


def losses(path):
    return open_run(path).table("steps", columns=["step", "loss"]).sort_by("step")["loss"].to_pylist()


def train(settings, *more):
    return run_training(build_config(settings=[*settings, "train.epochs=1", *more]), progress=False)


class TestPrecision:
    def inputs(self):
        generator = torch.Generator().manual_seed(1)
        pictures = torch.randint(0, 255, (16, 3, 32, 32), dtype=torch.uint8, generator=generator)
        return pictures, torch.arange(64) % 50, torch.arange(0, 64, 4)

    def test_half_precision_computes_both_encoders_in_it_and_hands_out_float32(self):
        model = build_model("small", 16, 0)
        exact = model(*self.inputs())
        seen = []
        for name in ("pictures", "texts"):
            getattr(model, name).project.register_forward_hook(lambda *call: seen.append(call[2].dtype))
        model.computes_in = torch.bfloat16
        halves = model(*self.inputs())
        assert seen == [torch.bfloat16] * 2
        for one, other in zip(exact, halves, strict=True):
            assert other.dtype == torch.float32
            assert 0 < (one - other).abs().max() < 0.05 * one.abs().max()

    def test_chunks_in_half_precision_give_nearly_the_gradients_of_the_whole_batch(self):
        pictures, *texts = self.inputs()
        gradients = []
        for count in (1, 2):
            model = build_model("small", 16, 0)
            model.computes_in = torch.bfloat16
            loss = UWMLLoss(total_steps=10)
            if count == 1:
                loss(*model(pictures, *texts)).backward()
            else:
                share_statistics(model)
                parts = [
                    (pictures[:8], texts[0][:32], texts[1][:8]),
                    (pictures[8:], texts[0][32:], texts[1][:8]),
                ]
                backward_in_chunks(loss, model, model, parts, backward=Precision("bf16").backward)
            gradients.append([parameter.grad for parameter in model.parameters()])
        for one, other in zip(*gradients, strict=True):
            assert (one - other).norm() < 0.1 * one.norm() + 1e-4

    def test_a_run_in_bf16_learns_what_one_in_float32_does_and_stays_finite(self, settings):
        exact, half = (losses(train(settings, f"train.precision={name}")) for name in ("float32", "bf16"))
        assert exact != half
        assert half == pytest.approx(exact, rel=0.05)

    def test_fp16_without_a_gpu_is_refused_before_any_data_is_read(self, settings):
        wrong = [*settings, "train.precision=fp16", "data.path=nowhere.parquet"]
        with pytest.raises(
            ValueError, match=r"train.precision='fp16' needs a GPU, but train.device is cpu; cho"
        ):
            run_training(build_config(settings=wrong), progress=False)

    def test_a_gpu_that_is_not_there_is_refused(self, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        with pytest.raises(
            ValueError, match=r"train.device='cuda' needs 1 GPU.s. on this machine, torch finds 0"
        ):
            Processes("cuda")

    @pytest.fixture
    def scaling(self):
        precision = Precision()
        precision._scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
        return precision

    def step(self, precision, factor):
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        precision.backward((weight * factor).sum())
        norm, sound = precision.update(optimizer, [weight], float("inf"))
        return weight.tolist(), norm.item(), sound

    def test_scaled_gradients_are_unscaled_before_they_are_clipped(self, scaling):
        weight, norm, sound = self.step(scaling, 2.0)
        assert (weight, norm, sound) == ([-1.0] * 3, pytest.approx(12**0.5), True)
        assert scaling.state_dict()["scale"] == 8.0

    def test_an_overflow_leaves_the_weights_until_the_scale_is_not_to_blame(self, scaling):
        seen = [self.step(scaling, float("inf")) for _ in range(3)]
        assert [sound for _, _, sound in seen] == [True, True, False]
        assert [weight for weight, _, _ in seen] == [[1.0] * 3] * 3

    def test_the_scale_goes_on_from_a_checkpoint(self, scaling):
        self.step(scaling, 2.0)
        again = Precision()
        again._scaler = torch.amp.GradScaler("cpu")
        again.load_state_dict(scaling.state_dict())
        assert again.state_dict() == scaling.state_dict()
        # a run in float32 has nothing to keep
        assert Precision().state_dict() == {}


class TestCompiled:
    @pytest.fixture
    def calls(self, monkeypatch):
        """Compile without a C++ compiler; counts the models that were."""
        seen, compile = [], torch.compile
        monkeypatch.setattr(
            torch, "compile", lambda model: seen.append(model) or compile(model, backend="aot_eager")
        )
        yield seen
        torch._dynamo.reset()

    @pytest.mark.slow
    # dynamo looks for a gradient wherever a graph begins, and hides what torch says to that
    @pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
    @pytest.mark.parametrize("chunks", [1, 2])
    def test_a_compiled_run_gives_nearly_the_losses_of_a_plain_one(self, settings, calls, chunks):
        more = [f"loss.accumulate_batches={chunks}", "train.warmup_epochs=0"]
        plain, compiled = train(settings, *more), train(settings, "train.compile=true", *more)
        assert len(calls) == 1
        assert losses(compiled) == pytest.approx(losses(plain), rel=1e-3)
        assert load_checkpoint(compiled).model.keys() == load_checkpoint(plain).model.keys()

    def test_anything_but_true_or_false_is_refused(self):
        with pytest.raises(ValueError, match=r"train.compile=1 is not usable; expected true or false"):
            build_config(settings=["train.compile=1"])


def stop_at(monkeypatch, step):
    """Ask the run to stop while a step is under way, once; its batch may be there long before."""
    backward, sent = Trainer._backward, []

    def stopping(self, batch):
        if self.step == step and not sent:
            sent.append(step)
            signal.raise_signal(signal.SIGINT)
        backward(self, batch)

    monkeypatch.setattr(Trainer, "_backward", stopping)


class TestBatchesAhead:
    def test_pictures_decoded_when_needed_are_those_decoded_ahead(self, small_pairs):
        ahead, needed = (open_data(small_pairs, decode=decode) for decode in DECODE)
        rows = np.array([250, 3, 3, 17])
        assert len(needed.pictures) == 0
        assert torch.equal(ahead.inputs(rows), needed.inputs(rows))
        assert ahead.fingerprint == needed.fingerprint
        assert list(ahead.thumbnails()) == list(needed.thumbnails())

    def test_clips_too(self):
        ahead, needed = (open_data("animated_emoji_pairs", decode=decode) for decode in DECODE)
        assert torch.equal(ahead.inputs(np.array([5, 2])), needed.inputs(np.array([5, 2])))

    @pytest.mark.parametrize("workers", [1, 2])
    def test_workers_change_nothing_that_is_computed(self, settings, workers):
        alone = train(settings, "train.warmup_epochs=0")
        ahead = train(settings, "train.warmup_epochs=0", f"data.workers={workers}", "data.decode=needed")
        assert losses(ahead) == losses(alone)

    def test_a_run_with_workers_resumes_bit_for_bit_and_without_them(self, settings, monkeypatch):
        whole = train(settings)
        stop_at(monkeypatch, 3)
        with pytest.raises(TrainingStopped) as stopped:
            train(settings, "data.workers=2")
        path = stopped.value.path
        assert len(losses(path)) == 4
        train(settings, f"train.resume={path}", "data.workers=1", "data.decode=needed")
        assert losses(path) == losses(whole)

    def test_steps_out_of_order_are_those_of_the_source(self, small_pairs):
        data = load_pairs(small_pairs)
        source = BatchSource(Corpus(data), data.rows("train"), batch_size=32, seed=4)
        ahead = PrefetchedBatches(source, 1, 10)
        before = torch.get_rng_state()
        for step in (0, 1, 5, 6, 2, 0):
            made, wanted = ahead.at(step), source.at(step)
            assert np.array_equal(made.item_ids, wanted.item_ids)
            assert torch.equal(made.pictures, wanted.pictures)
        assert torch.equal(torch.get_rng_state(), before)

    @pytest.fixture
    def folder(self, tmp_path):
        """Pictures with a caption each, one of them cut short behind its header, one missing."""
        folder = tmp_path / "pictures"
        folder.mkdir()
        noise = np.random.default_rng(0)
        lines = ["image,caption,split"]
        for k in range(24):
            pixels = noise.integers(0, 255, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{k}.png")
            lines.append(f"{k}.png,caption {k},{'train' if k % 3 else 'test'}")
        (folder / "captions.csv").write_text("\n".join(lines))
        (folder / "9.png").unlink()
        return folder

    @pytest.mark.parametrize("workers", [0, 1])
    def test_a_picture_that_turns_out_broken_ends_the_run_in_one_sentence(
        self, folder, tmp_path, monkeypatch, workers
    ):
        whole = (folder / "4.png").read_bytes()
        (folder / "4.png").write_bytes(whole[: len(whole) // 2])
        wrong = [f"data.path={folder}", "data.decode=needed", f"data.workers={workers}", "data.batch_size=8"]
        wrong += [f"run.root={tmp_path / 'logs'}", "train.epochs=2", "data.eval_split=test"]
        # it would meet the picture among the probes
        monkeypatch.setattr("uwml_core.training.observer.Observer.observe", lambda *_, **__: {})
        with pytest.warns(UserWarning, match="no usable"), pytest.raises(ValueError, match=BROKEN):
            run_training(build_config(settings=wrong), progress=False)

    def test_what_is_missing_is_counted_without_decoding_anything(self, folder, monkeypatch):
        monkeypatch.setattr("uwml_core.data.pictures.decode", lambda data: pytest.fail("decoded"))
        data = open_data(folder, decode="needed")
        assert len(data) == 23
        assert data.left_out is not None
        assert "1 of 24 items have no usable picture (first: 9.png is missing)" in data.left_out

    def test_without_val_the_test_split_is_evaluated_and_that_is_said(self, folder, tmp_path):
        config = [
            f"data.path={folder}",
            "data.batch_size=8",
            "train.epochs=1",
            f"run.root={tmp_path / 'logs'}",
        ]
        said = "there is no split 'val': 'test' is evaluated after each epoch"
        with pytest.warns(UserWarning, match=said), pytest.warns(UserWarning, match="no usable picture"):
            run = open_run(run_training(build_config(settings=config), progress=False))
        assert set(run.table("evals")["split"].to_pylist()) == {"test"}
        assert set(run.table("snapshots")["split"].to_pylist()) == {"train", "test"}

    def test_the_training_split_may_be_evaluated_for_want_of_another(self, folder, tmp_path):
        config = [
            f"data.path={folder}",
            "data.batch_size=8",
            "train.epochs=1",
            f"run.root={tmp_path / 'logs'}",
        ]
        with pytest.warns(UserWarning, match="no usable picture"):
            path = run_training(build_config(settings=[*config, "data.eval_split=train"]), progress=False)
        run = open_run(path)
        assert set(run.table("evals")["split"].to_pylist()) == {"train"}
        ids = run.table("neighbors").to_pandas().query("step == -1 and direction == 'i2t' and rank == 1")
        assert ids["item_id"].is_unique

    def test_a_split_that_is_not_there_is_named_with_those_that_are(self, settings):
        with pytest.raises(ValueError, match=r"split 'dev' has 0 different item.s.; .* splits found: train"):
            train(settings, "data.eval_split=dev")
