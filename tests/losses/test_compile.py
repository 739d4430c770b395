"""The pure function compiles as one graph, backward included, for every branch of the configuration."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config
from torch._dynamo.testing import CompileCounterWithBackend

from uwml_core.losses import UWMLLoss, weighted_loss
from uwml_core.losses.similarity import unit_rows
from uwml_core.weighting import UWMLConfig

BATCH, QUEUE = 6, 3
BASES = ["infonce", "triplet", "sigmoid", "dcl", "hn_nce", "wei2020_max", "wei2020_calibrated"]
STATISTICS = ["hardest", "topk_mean", "quantile", "mean"]
# the other branches, one of them with each base and statistic in turn
OTHERS: list[dict[str, Any]] = [
    {"curve": "hard", "normalization": "sum", "combination": "add"},
    {"curve": "uniform", "normalization": "rss", "false_negative_margin": 0.3},
    {"normalization": "none", "margin_scale": "negative_std"},
    {"hn_alpha": 0.5, "topk": 2},
    {"margin_scale": "negative_std", "combination": "add", "hn_alpha": 0.0},
]


def cases() -> list[tuple[dict[str, Any], bool]]:
    """Every base twice, every statistic: fields of the configuration, and whether there is a queue."""
    found = []
    for place in range(2 * len(BASES)):
        base, other = BASES[place // 2], OTHERS[place % len(OTHERS)]
        if base.startswith("wei2020"):  # weights of their own
            other = {"false_negative_margin": 0.3} if place % 2 else {}
        if base == "triplet":
            other = {**other, "over_negatives": "sum" if place % 2 else "hardest", "triplet_margin": 1.0}
        statistic = STATISTICS[(place + place // 4) % 4]
        found.append(({"base": base, "negative_statistic": statistic, **other}, bool(place % 2)))
    return found


def step(
    image: torch.Tensor,
    text: torch.Tensor,
    same: torch.Tensor,
    steepness: torch.Tensor,
    scale: torch.Tensor,
    *,
    config: UWMLConfig,
    queue: bool,
) -> torch.Tensor:
    """Similarities and loss, as a compiled training step holds them; the queue lies behind the batch."""
    image, text = unit_rows(image), unit_rows(text)
    rows, columns, mask = image @ text.T, text @ image.T, same
    if queue:
        rows = torch.cat((rows, image @ text[:QUEUE].detach().flip(0).T), 1)
        columns = torch.cat((columns, text @ image[:QUEUE].detach().flip(0).T), 1)
        mask = torch.cat((same, same[:, :QUEUE].flip(1)), 1)
    weights = torch.tensor([0.3, 0.7])
    similarity = (rows, columns) if queue else rows
    excluded = (mask, mask) if queue else same
    return weighted_loss(
        similarity, excluded, steepness, weights, config=config, scale=scale, bias=scale - 15.0
    )


def inputs() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    same = torch.eye(BATCH, dtype=torch.bool)
    same[0, 3] = same[3, 0] = True
    image, text = torch.randn(2, BATCH, 4, generator=generator)
    return image.requires_grad_(), text.requires_grad_(), same


def compare(settings: dict[str, Any], *, queue: bool, backend: str) -> None:
    torch._dynamo.reset()
    function = partial(step, config=UWMLConfig(**settings), queue=queue)
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    results = []
    for form in (function, compiled):
        image, text, same = inputs()
        scale = torch.tensor(12.0, requires_grad=True)
        value = form(image, text, same, torch.tensor(7.0), scale)
        gradients = torch.autograd.grad(value, (image, text, scale), allow_unused=True)
        results.append((value.detach(), *gradients))
    for got, want in zip(*results, strict=True):
        assert (got is None) == (want is None)
        if want is not None:
            torch.testing.assert_close(got, want)
    assert results[0][1].abs().sum() > 0


def in_turn() -> list[Any]:
    """All cases, the second of each base marked as slow: the others have every base and statistic."""
    return [
        pytest.param(*case, marks=pytest.mark.slow) if place % 2 else case
        for place, case in enumerate(cases())
    ]


@pytest.mark.parametrize(("settings", "queue"), in_turn(), ids=str)
def test_one_graph_gives_the_eager_loss_and_gradient(settings: dict[str, Any], queue: bool) -> None:
    compare(settings, queue=queue, backend="aot_eager")


def test_every_branch_is_compiled() -> None:
    drawn = [settings for settings, _ in cases()]
    quick = [settings for settings, _ in cases()[::2]]
    assert {settings["base"] for settings in quick} == set(BASES)
    assert {settings["negative_statistic"] for settings in quick} == set(STATISTICS)
    assert {settings["base"] for settings in drawn} == set(BASES)
    assert {settings["negative_statistic"] for settings in drawn} == set(STATISTICS)
    assert {settings.get("over_negatives") for settings in drawn} >= {"hardest", "sum"}
    for other in OTHERS:
        for name, value in other.items():
            assert any(settings.get(name) == value for settings in drawn), (name, value)


@pytest.mark.slow
# of torch's own code, as it loads its compiler
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.parametrize(("settings", "queue"), cases()[:6:5], ids=str)
def test_generated_code_gives_the_eager_loss_and_gradient(
    settings: dict[str, Any], queue: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    with torch._inductor.config.patch(compile_threads=1):
        compare(settings, queue=queue, backend="inductor")


def steps_of(form: Callable[..., Any], loss: UWMLLoss) -> list[Any]:
    """Loss and gradients of a few training steps, and what the optimizer made of the weights."""
    torch.manual_seed(0)
    towers = torch.nn.ModuleList([torch.nn.Linear(5, 4), torch.nn.Linear(5, 4)])
    optimizer = torch.optim.SGD(towers.parameters(), lr=0.1)
    call, found = form(lambda image, text: loss(towers[0](image), towers[1](text).tanh()) * 2.0), []
    for _ in range(6):
        optimizer.zero_grad()
        value = call(*torch.randn(2, BATCH, 5))
        value.backward()
        found += [value.detach(), *(p.grad.clone() for p in towers.parameters())]
        optimizer.step()
    return found


# torch hides this one of its own, but not from a filter that makes it an error
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("settings", [{}, {"base": "triplet", "memory_batches": 1}], ids=str)
def test_a_compiled_training_step_holds_the_module(settings: dict[str, Any]) -> None:
    torch._dynamo.reset()
    losses = [UWMLLoss(total_steps=6, update_every=1, **settings) for _ in range(2)]
    want = steps_of(lambda step: step, losses[0])
    counter = CompileCounterWithBackend("aot_eager")
    got = steps_of(lambda step: torch.compile(step, backend=counter), losses[1])
    torch.testing.assert_close(got, want)
    assert losses[0].get_extra_state()["step"] == losses[1].get_extra_state()["step"] == 6
    # before the loss and behind it, once each
    assert counter.frame_count == 2


def test_a_compiled_module_is_the_module() -> None:
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    plain, loss = UWMLLoss(total_steps=3), UWMLLoss(total_steps=3)
    compiled = torch.compile(loss, backend=counter)
    for seed in range(3):
        image, text = torch.randn(2, BATCH, 4, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(compiled(image, text), plain(image, text))
    assert (loss.step, counter.frame_count) == (3, 0)


def test_a_new_steepness_or_temperature_needs_no_new_graph() -> None:
    torch._dynamo.reset()
    config = UWMLConfig(base="hn_nce", combination="add")
    function = partial(step, config=config, queue=False)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for kappa, scale in ((2.0, 10.0), (3.0, 12.0), (9.0, 40.0)):
            assert torch.isfinite(compiled(*inputs(), torch.tensor(kappa), torch.tensor(scale)))
