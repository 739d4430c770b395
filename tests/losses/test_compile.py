"""The pure function compiles as one graph, backward included, for every branch of the configuration."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from uwml_core.losses import weighted_loss
from uwml_core.losses.similarity import unit_rows
from uwml_core.weighting import UWMLConfig

BATCH, QUEUE = 6, 3
CONFIGS = [
    {},
    {"curve": "hard", "normalization": "sum", "combination": "add"},
    {"curve": "uniform", "normalization": "rss", "negative_statistic": "topk_mean", "topk": 2},
    {"negative_statistic": "quantile", "normalization": "none", "margin_scale": "negative_std"},
    {"negative_statistic": "mean", "false_negative_margin": 0.1},
    {"base": "triplet", "triplet_margin": 1.0},
    {"base": "triplet", "over_negatives": "sum", "margin_scale": "negative_std", "combination": "add"},
    {"base": "sigmoid"},
    {"base": "dcl"},
    {"base": "hn_nce", "hn_alpha": 0.5},
    {"base": "wei2020_max"},
    {"base": "wei2020_calibrated"},
]


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


@pytest.mark.parametrize("queue", [False, True], ids=["batch", "queue"])
@pytest.mark.parametrize("settings", CONFIGS, ids=str)
def test_one_graph_gives_the_eager_loss_and_gradient(settings: dict, queue: bool) -> None:
    torch._dynamo.reset()
    function = partial(step, config=UWMLConfig(**settings), queue=queue)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    results = []
    for form in (function, compiled):
        image, text, same = inputs()
        scale = torch.tensor(12.0, requires_grad=True)
        value = form(image, text, same, torch.tensor(7.0), scale)
        gradients = torch.autograd.grad(value, (image, text, scale), allow_unused=True)
        results.append((value.detach(), *gradients[:2]))
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want)
    assert results[0][1].abs().sum() > 0


def test_a_new_steepness_or_temperature_needs_no_new_graph() -> None:
    torch._dynamo.reset()
    config = UWMLConfig(base="hn_nce", combination="add")
    function = partial(step, config=config, queue=False)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for kappa, scale in ((2.0, 10.0), (3.0, 12.0), (9.0, 40.0)):
            assert torch.isfinite(compiled(*inputs(), torch.tensor(kappa), torch.tensor(scale)))
