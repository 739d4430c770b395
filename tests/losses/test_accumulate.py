"""Several calls per optimizer step: what they are weighed by, and when the state advances."""

from __future__ import annotations

import io

import pytest
import torch

from uwml_core.losses import UWMLLoss

CALLS = 3


def batch(seed: int, size: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(size, 4, generator=generator, dtype=torch.float64)
    return image, image + torch.randn(size, 4, generator=generator, dtype=torch.float64)


def accumulating(**settings) -> UWMLLoss:
    return UWMLLoss(
        **{"accumulate_batches": CALLS, "total_steps": 8, "update_every": 2, "smoothing": 0.0, **settings}
    )


def in_parts(loss: UWMLLoss, features: tuple[torch.Tensor, torch.Tensor], **arguments) -> list[torch.Tensor]:
    """A call per part of the batch, that part's rows in the graph: the sum of the gradients."""
    total = [torch.zeros_like(x) for x in features]
    size = len(features[0]) // CALLS
    for call in range(CALLS):
        rows = slice(call * size, (call + 1) * size)
        parts = [x[rows].clone().requires_grad_() for x in features]
        whole = [
            torch.cat((x[: rows.start], p, x[rows.stop :])) for x, p in zip(features, parts, strict=True)
        ]
        loss(*whole, **arguments).backward()
        for gradient, part in zip(total, parts, strict=True):
            gradient[rows] += part.grad
    return total


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"memory_batches": 1},
        {"combination": "add", "window": 1},
        {"base": "sigmoid", "memory_batches": 2},
    ],
    ids=str,
)
def test_calls_of_a_step_add_up_to_one_call_with_the_whole_batch(settings: dict) -> None:
    loss, once = accumulating(**settings), accumulating(**{**settings, "accumulate_batches": 1})
    for seed in range(6):
        features = batch(seed)
        whole = [x.clone().requires_grad_() for x in features]
        value = once(*whole, item_ids=range(6))
        value.backward()
        for got, want in zip(in_parts(loss, features, item_ids=range(6)), whole, strict=True):
            torch.testing.assert_close(got, want.grad, rtol=1e-12, atol=1e-14)
        assert loss.last.loss == once.last.loss
        assert torch.equal(loss.last.label, once.last.label)
        assert torch.equal(loss.last.gap_window, once.last.gap_window)
    assert once.last.direction_weight[0] != 0.5
    for key, value in once.get_extra_state().items():
        if key != "memory":
            assert loss.get_extra_state()[key] == value


def test_all_calls_of_a_step_have_its_direction_weights_and_stage() -> None:
    loss = accumulating(update_every=1)
    seen = []
    for seed in range(3):
        for _ in range(CALLS):
            loss(*batch(seed))
            seen.append((*loss.last.direction_weight.tolist(), loss.last.progress, loss.step))
    for step in range(3):
        first, *others = seen[CALLS * step : CALLS * (step + 1)]
        assert [row[:3] for row in others] == [first[:3]] * (CALLS - 1)
        assert [first[3], *(row[3] for row in others)] == [step, step, step + 1]
    assert len({row[0] for row in seen}) == 3


def test_memory_and_labels_move_with_the_last_call() -> None:
    loss = accumulating(memory_batches=1)
    negatives, labels = [], []
    for _ in range(CALLS + 1):
        loss(*batch(0))
        negatives.append(loss.last.negatives_per_anchor)
        labels.append(loss.last.label[0, 0].item())
    assert negatives == [5, 5, 5, 11]
    assert labels == [0, 0, 0, 6]


def test_a_whole_step_is_one_call_and_drops_a_begun_one() -> None:
    loss = accumulating()
    loss(*batch(0), whole_step=True)
    assert loss.step == 1
    loss(*batch(1))
    loss(*batch(2), whole_step=True)
    assert loss.step == 2
    for _ in range(CALLS):
        loss(*batch(3))
    assert loss.step == 3


def test_eval_between_the_calls_changes_nothing() -> None:
    loss, other = accumulating(), accumulating()
    for seed in range(2):
        for _ in range(CALLS):
            loss(*batch(seed))
            other(*batch(seed))
            other.eval()
            other(*batch(9), whole_step=True)
            other.train()
    assert loss.get_extra_state() == other.get_extra_state()


def test_resume_in_the_middle_of_a_step_is_bit_exact() -> None:
    whole, half = accumulating(update_every=1), accumulating(update_every=1)
    for call in range(4):
        whole(*batch(call // CALLS))
        half(*batch(call // CALLS))
    stream = io.BytesIO()
    torch.save(half.state_dict(), stream)
    stream.seek(0)
    resumed = accumulating(update_every=1)
    resumed.load_state_dict(torch.load(stream, weights_only=True))
    for call in range(4, 9):
        assert torch.equal(whole(*batch(call // CALLS)), resumed(*batch(call // CALLS)))
    assert whole.get_extra_state() == resumed.get_extra_state()
    assert whole.step == 3


def test_state_from_before_calls_were_counted_still_loads() -> None:
    state = accumulating().get_extra_state()
    del state["call"]
    loss = accumulating()
    loss.set_extra_state(state)
    loss(*batch(0))
    assert loss.step == 0
