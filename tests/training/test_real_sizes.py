"""What training at real sizes needs: half precision, compiled encoders, workers that make batches ahead."""

from __future__ import annotations

import pytest
import torch

from uwml_core.losses import UWMLLoss
from uwml_core.runlog.reader import open_run
from uwml_core.training import build_config, run_training
from uwml_core.training.batch_norm import share_statistics
from uwml_core.training.checkpoint import load_checkpoint
from uwml_core.training.chunks import backward_in_chunks
from uwml_core.training.distributed import Processes
from uwml_core.training.encoders import build_model
from uwml_core.training.precision import Precision


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
