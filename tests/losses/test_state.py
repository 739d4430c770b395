"""Schedule, controller, label counter: what advances when, and what a checkpoint brings back."""

from __future__ import annotations

import copy
import io
import linecache
import warnings

import pytest
import torch

from uwml_core.losses import UWMLLoss
from uwml_core.weighting import DirectionController


def batch(seed: int, size: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(size, 4, generator=generator)
    return image, image + torch.randn(size, 4, generator=generator)


def test_first_step_is_at_progress_zero_and_the_last_below_one() -> None:
    loss = UWMLLoss(total_steps=4)
    seen = []
    for seed in range(6):
        loss(*batch(seed))
        seen.append(loss.last.progress)
    assert seen == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    assert loss.step == 6


def test_steepness_and_factor_follow_the_cosine() -> None:
    loss = UWMLLoss(total_steps=2, steepness_start=2.0, steepness_end=12.0)
    seen = []
    for seed in range(2):
        loss(*batch(seed))
        seen.append((loss.last.steepness, loss.last.stage_factor))
    assert seen == [(2.0, 2 / 12), (pytest.approx(7.0), pytest.approx(7 / 12))]


def test_given_progress_counts_for_that_call_only() -> None:
    loss = UWMLLoss(total_steps=10)
    loss(*batch(0), progress=0.9)
    assert loss.last.progress == 0.9
    loss(*batch(1))
    assert loss.last.progress == 0.1


def test_unknown_progress_means_the_end_values_and_one_warning() -> None:
    loss = UWMLLoss(temperature=0.1, temperature_end=0.05)
    with pytest.warns(UserWarning, match="neither progress nor total_steps is known") as caught:
        loss(*batch(0))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(*batch(1))
    assert loss.last.progress is None
    assert (loss.last.steepness, loss.last.stage_factor) == (20.0, 1.0)
    assert loss.last.temperature == 0.05


def test_the_warning_points_at_the_line_that_called_however_deep() -> None:
    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.loss = UWMLLoss()

        def forward(self, *features: torch.Tensor) -> torch.Tensor:
            return self.loss(*features)  # this one

    outer = Outer()
    outer.loss.register_forward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="neither progress nor total_steps is known") as caught:
        outer(*batch(0))
    assert "# this one" in linecache.getline(caught[0].filename, caught[0].lineno)


@pytest.mark.parametrize(
    "overrides",
    [{"curve": "uniform"}, {"steepness_start": 5.0, "steepness_end": 5.0}, {"total_steps": 5}],
    ids=str,
)
def test_no_warning_where_nothing_depends_on_progress(overrides: dict) -> None:
    UWMLLoss(**overrides)(*batch(0))


def test_temperature_runs_linearly_to_its_end() -> None:
    loss = UWMLLoss(temperature=0.1, temperature_end=0.05, total_steps=10)
    loss(*batch(0), progress=0.5)
    assert loss.last.temperature == pytest.approx(0.075)


def test_eval_advances_nothing_and_uses_the_weights_in_force() -> None:
    loss = UWMLLoss(total_steps=10, update_every=1, smoothing=0.0, sensitivity=0.5)
    for seed in range(3):
        loss(*batch(seed))
    before, weights = copy.deepcopy(loss.state_dict()), loss.last.direction_weight
    assert weights[0] != 0.5
    loss.eval()
    first = loss(*batch(7))
    assert torch.equal(first, loss(*batch(7)))
    assert loss.last.progress == 0.3
    assert torch.equal(loss.last.direction_weight, weights)
    assert loss.state_dict() == before


def test_direction_weights_are_the_controllers_on_the_logged_gaps() -> None:
    loss = UWMLLoss(total_steps=40, window=5, update_every=3, smoothing=0.5)
    controller = DirectionController(window=5, update_every=3, smoothing=0.5)
    for seed in range(20):
        loss(*batch(seed))
        first, second = loss.last.gap.tolist()
        weights = controller.update({"i2t": first, "t2i": second})
        assert loss.last.direction_weight.tolist() == [weights["i2t"], weights["t2i"]]
        assert loss.last.gap_window.tolist() == list(controller.window_means())
        total = weights["i2t"] * loss.last.direction_loss[0] + weights["t2i"] * loss.last.direction_loss[1]
        assert loss.last.loss == float(total)


@pytest.mark.parametrize("learnable", [False, True])
def test_resume_from_a_weights_only_checkpoint_is_bit_exact(learnable: bool) -> None:
    def fresh() -> UWMLLoss:
        return UWMLLoss(total_steps=30, window=4, update_every=2, learnable_temperature=learnable)

    whole, half = fresh(), fresh()
    for seed in range(8):
        whole(*batch(seed))
        half(*batch(seed))
    stream = io.BytesIO()
    torch.save(half.state_dict(), stream)
    stream.seek(0)
    resumed = fresh()
    resumed.load_state_dict(torch.load(stream, weights_only=True))
    for seed in range(8, 16):
        assert torch.equal(whole(*batch(seed)), resumed(*batch(seed)))
        assert torch.equal(whole.last.label, resumed.last.label)
        assert torch.equal(whole.last.direction_weight, resumed.last.direction_weight)
    assert whole.get_extra_state() == resumed.get_extra_state()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            {},
            "state of the loss is a dict without step, next_label, controller; expected what get_extra_state",
        ),
        ({"step": 3, "next_label": 0}, "is a dict without controller"),
        (None, "is a NoneType without step"),
    ],
)
def test_what_is_no_state_is_refused(state: object, message: str) -> None:
    loss = UWMLLoss(total_steps=10)
    before = loss.get_extra_state()
    with pytest.raises(ValueError, match=message):
        loss.set_extra_state(state)
    assert loss.get_extra_state() == before


def test_running_labels_never_repeat() -> None:
    loss = UWMLLoss(total_steps=10)
    seen: list[int] = []
    for seed, size in enumerate((4, 7, 3)):
        loss(*batch(seed, size))
        assert torch.equal(loss.last.label[0], loss.last.label[1])
        seen += loss.last.label[0].tolist()
    assert seen == list(range(14))


def test_modes_fixed_and_off() -> None:
    fixed = UWMLLoss(total_steps=10, direction_mode="fixed", direction_fixed=0.8)
    off = UWMLLoss(total_steps=10, direction_mode="off", direction_fixed=0.8)
    for seed in range(12):
        fixed(*batch(seed))
        off(*batch(seed))
    assert fixed.last.direction_weight.tolist() == pytest.approx([0.8, 0.2])
    assert off.last.direction_weight.tolist() == [0.5, 0.5]


def test_a_weaker_direction_gets_more_weight() -> None:
    loss = UWMLLoss(total_steps=100, update_every=1)
    # All pictures lie in a narrow cone, so that texts tell pictures apart less well than the reverse.
    torch.manual_seed(0)
    image = torch.randn(16, 8) * 0.5 + torch.tensor([4.0] + [0.0] * 7)
    text = torch.randn(16, 8)
    for _ in range(50):
        loss(image, text)
    gap, weight = loss.last.gap, loss.last.direction_weight
    assert weight.argmax() == gap.argmin()
    assert weight.max() > 0.6
    assert float(weight.sum()) == pytest.approx(1.0)


def test_learnable_temperature_is_kept_at_most_a_hundred_and_can_come_back() -> None:
    loss = UWMLLoss(learnable_temperature=True, temperature=0.005, total_steps=10)
    optimizer = torch.optim.SGD(loss.parameters(), lr=0.5)
    image, text = torch.eye(3), torch.eye(3).roll(1, 0)  # every positive is wrong: the scale must fall
    scales = []
    for _ in range(4):
        optimizer.zero_grad()
        loss(image, text).backward()
        scales.append(1 / loss.last.temperature)
        optimizer.step()
    assert scales[0] == pytest.approx(100.0, rel=1e-5)
    assert max(scales) <= 100.0
    assert scales[3] < 99.0
