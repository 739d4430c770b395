"""Gradient caching gives the gradients of the whole batch; averaging over chunks does not."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from torch import nn

from uwml_core.losses import UWMLLoss, cached_backward

BATCH, CHUNKS, DIM = 12, 3, 6
LABELS = [0, 1, 2, 3, 0, 4, 5, 6, 7, 1, 8, 9]


class Towers(nn.Module):
    """Two encoders with dropout; a learnable scale only where it is asked for."""

    def __init__(self, *, dropout: float = 0.3, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        torch.manual_seed(1)

        def tower() -> nn.Sequential:
            layers = nn.Linear(DIM, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 5)
            return nn.Sequential(*layers)

        self.image, self.text = tower(), tower()
        self.to(dtype)

    def forward(self, pair: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return self.image(pair[0]), self.text(pair[1])


def batch(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(BATCH, DIM, generator=generator).to(dtype)
    return image, image + 0.5 * torch.randn(BATCH, DIM, generator=generator).to(dtype)


def chunked(pair: tuple[torch.Tensor, torch.Tensor], chunks: int = CHUNKS) -> list[tuple[torch.Tensor, ...]]:
    return list(zip(*(x.chunk(chunks) for x in pair), strict=True))


def gradients(*modules: nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for module in modules for p in module.parameters()]


def in_one_pass(loss, towers, chunks, **arguments) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The whole batch with its graph, encoded in chunks only so that dropout draws the same numbers."""
    torch.manual_seed(7)
    image, text = (torch.cat(x) for x in zip(*map(towers, chunks), strict=True))
    value = loss(image, text, **arguments)
    value.backward()
    return value.detach(), gradients(towers, loss)


def cached(loss, towers, chunks, **arguments) -> tuple[torch.Tensor, list[torch.Tensor]]:
    torch.manual_seed(7)
    value = cached_backward(loss, towers, chunks, **arguments)
    return value, gradients(towers, loss)


def largest_difference(got: list[torch.Tensor], want: list[torch.Tensor]) -> float:
    """Relative to the largest entry of each tensor, the worst of them."""
    assert sum(bool(w.any()) for w in want) >= 8
    # a tensor's maximum, which a NaN is; and where nothing is wanted, nothing may be got
    differences = [
        (g - w).abs().max() / w.abs().max().clamp(min=1e-30) for g, w in zip(got, want, strict=True)
    ]
    return float(torch.stack(differences).max())


def test_the_comparison_sees_nan_and_what_should_be_zero() -> None:
    want = [torch.ones(2)] * 8 + [torch.zeros(2)]
    assert largest_difference(want, want) == 0.0
    assert not largest_difference([*want[:7], torch.tensor([1.0, torch.nan]), want[8]], want) < 1e-5
    assert largest_difference([*want[:8], torch.full((2,), 1e-6)], want) > 1.0


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"learnable_temperature": True},
        {"base": "sigmoid"},
        {"base": "triplet", "over_negatives": "sum"},
        {"memory_batches": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("chunks", [1, 3, 4])
def test_gradients_of_the_whole_batch_dropout_included(settings: dict, chunks: int) -> None:
    parts = chunked(batch(), chunks)
    results = []
    for run in (in_one_pass, cached):
        loss, towers = UWMLLoss(**settings, accumulate_batches=chunks, total_steps=9), Towers()
        if settings.get("memory_batches"):
            loss(
                torch.randn(4, 5, generator=torch.Generator().manual_seed(3)),
                torch.eye(4, 5),
                whole_step=True,
            )
        results.append(run(loss, towers, parts, labels=LABELS))
    (want_value, want), (value, got) = results
    torch.testing.assert_close(value, want_value)
    assert largest_difference(got, want) < 1e-5


def test_dropout_is_on_in_these_tests() -> None:
    parts, loss = chunked(batch()), UWMLLoss(total_steps=9)
    with_dropout = cached(loss, Towers(), parts)[1]
    without = cached(loss, Towers(dropout=0.0), parts)[1]
    assert largest_difference(with_dropout, without) > 0.1


def test_plain_accumulation_gives_other_gradients() -> None:
    parts, towers = chunked(batch()), Towers()
    torch.manual_seed(7)
    for chunk, labels in zip(parts, torch.tensor(LABELS).chunk(CHUNKS), strict=True):
        (UWMLLoss(total_steps=9)(*towers(chunk), labels=labels) / CHUNKS).backward()
    want = in_one_pass(UWMLLoss(total_steps=9), Towers(), parts, labels=LABELS)[1]
    assert largest_difference(gradients(towers), want) > 0.1


def test_the_random_stream_goes_on_as_after_one_pass() -> None:
    parts, after = chunked(batch()), []
    for run in (in_one_pass, cached):
        run(UWMLLoss(total_steps=9), Towers(), parts)
        after.append(torch.rand(3))
    assert torch.equal(*after)


def test_a_call_is_one_optimizer_step_whatever_the_loss_accumulates() -> None:
    loss = UWMLLoss(accumulate_batches=CHUNKS, total_steps=9)
    for _ in range(2):
        cached(loss, Towers(), chunked(batch()))
    assert loss.step == 2


def test_autocast_holds_in_both_passes() -> None:
    parts, results = chunked(batch()), []
    for run in (in_one_pass, cached):
        towers = Towers()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            results.append(run(UWMLLoss(total_steps=9), towers, parts)[1])
    assert largest_difference(results[1], results[0]) < 1e-2
    assert all(g.any() for g in results[1])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Towers()(parts[0])[0].dtype == torch.bfloat16


def test_a_scale_that_the_model_gives_gets_its_gradient_once() -> None:
    results, parts = [], chunked(batch())
    for run in (in_one_pass, cached):
        towers, scale = Towers(), nn.Parameter(torch.tensor(2.0))

        def encode(chunk, towers=towers, scale=scale):
            return (*towers(chunk), scale.exp())

        loss = UWMLLoss(total_steps=9)
        torch.manual_seed(7)
        if run is cached:
            cached_backward(loss, encode, parts)
        else:
            image, text, scales = zip(*map(encode, parts), strict=True)
            loss(torch.cat(image), torch.cat(text), scales[-1]).backward()
        results.append([scale.grad, *gradients(towers)])
    assert largest_difference(results[1], results[0]) < 1e-5
    assert results[1][0] != 0


def test_a_frozen_tower_gets_no_gradient_and_the_other_its_own() -> None:
    parts, results = chunked(batch()), []
    for frozen in (True, False):
        towers = Towers(dropout=0.0)
        towers.text.requires_grad_(not frozen)
        cached_backward(UWMLLoss(total_steps=9), towers, parts)
        results.append(gradients(towers.image))
        assert all((p.grad is None) == frozen for p in towers.text.parameters())
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def test_the_backward_pass_of_the_loss_can_be_scaled() -> None:
    parts = chunked(batch())
    want = cached(UWMLLoss(total_steps=9), Towers(), parts)[1]
    got = cached(UWMLLoss(total_steps=9), Towers(), parts, backward=lambda value: (64 * value).backward())[1]
    assert largest_difference([g / 64 for g in got], want) < 1e-5


@pytest.mark.parametrize("own", [False, True], ids=["given", "of the encoder"])
def test_gradients_are_averaged_over_processes_in_the_last_chunk_alone(own: bool) -> None:
    inside, seen, towers = [False], [], Towers()

    @contextmanager
    def no_sync():
        inside[0] = True
        yield
        inside[0] = False

    def encode(chunk):
        if torch.is_grad_enabled():
            seen.append(inside[0])
        return towers(chunk)

    if own:
        encode.no_sync = no_sync
    cached_backward(UWMLLoss(total_steps=9), encode, chunked(batch()), no_sync=None if own else no_sync)
    assert seen == [True] * (CHUNKS - 1) + [False]


def test_another_loss_is_called_as_it_is() -> None:
    class Product(nn.Module):
        def forward(self, image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
            return (image @ text.T).square().mean()

    want, got = (run(Product(), Towers(), chunked(batch()))[1] for run in (in_one_pass, cached))
    assert largest_difference(got, want) < 1e-5


def test_no_chunks_are_refused() -> None:
    with pytest.raises(ValueError, match="chunks is empty; expected the batch in at least one part"):
        cached_backward(UWMLLoss(total_steps=9), Towers(), [])
