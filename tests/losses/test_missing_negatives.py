"""Anchors without negatives: possible wherever a mask is more than equal labels, so tested on the pieces."""

from __future__ import annotations

import math

import pytest
import torch

from uwml_core.losses.candidates import both_directions
from uwml_core.losses.functional import base_terms, weighted_loss
from uwml_core.losses.fused import fused_infonce_terms
from uwml_core.losses.logits import Logits
from uwml_core.losses.report import StepTensors, read_step, step_diagnostics
from uwml_core.losses.schedule import stage_at
from uwml_core.losses.similarity import unit_rows
from uwml_core.losses.weigh import Weighing, anchor_weights, direction_losses, weigh
from uwml_core.weighting import UWMLConfig

BATCH = 5


def mask() -> torch.Tensor:
    same = torch.eye(BATCH, dtype=torch.bool)
    same[2, :] = True  # row anchor 2 has no negative; every column keeps some
    return same


def features() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(BATCH, 4, dtype=torch.float64, generator=generator).requires_grad_() for _ in range(2)
    ]


def sides(image, text, excluded):
    return both_directions(unit_rows(image) @ unit_rows(text).T, excluded, UWMLConfig())


@pytest.mark.parametrize("scale", [10.0, 90.0])
def test_fused_and_plain_agree_and_give_such_an_anchor_nothing(scale: float) -> None:
    image, text = features()
    config, gradients = UWMLConfig(), []
    for terms in (
        fused_infonce_terms(image, text, mask(), scale)[0],
        base_terms(sides(image, text, mask()), config, scale),
    ):
        weights = anchor_weights(terms, Weighing(config, 4.0))
        assert terms.negative_index[0, 2] == -1
        assert terms.pair_loss[0, 2] == 0
        assert terms.gradient_mass[0, 2] == 0
        assert torch.isnan(weights.margin[0, 2])
        assert torch.isnan(weights.margin).sum() == 1
        assert weights.weight[0, 2] == 0
        assert weights.pair_weight[0, 2] == 0
        loss = direction_losses(terms.pair_loss, weights.weight, "l2").sum()
        gradients.append(torch.autograd.grad(loss, (image, text)))
    for a, b in zip(*gradients, strict=True):
        assert torch.isfinite(a).all()
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("base", ["infonce", "triplet"])
@pytest.mark.parametrize("detach", [True, False])
def test_gradient_stays_finite_also_through_the_weights(base: str, detach: bool) -> None:
    image, text = features()
    loss = weighted_loss(
        unit_rows(image) @ unit_rows(text).T,
        mask(),
        8.0,
        torch.tensor([0.5, 0.5]),
        config=UWMLConfig(base=base, triplet_margin=1.0),
        scale=10.0,
        detach_weights=detach,
    )
    loss.backward()
    assert torch.isfinite(image.grad).all()
    assert image.grad.abs().sum() > 0


def test_means_and_shares_run_over_the_anchors_that_have_one() -> None:
    image, text = (x.detach() for x in features())
    config = UWMLConfig(curve="uniform", max_weight=1.0)
    terms, norms = fused_infonce_terms(image, text, mask(), 10.0)
    step = StepTensors(
        terms, weigh(terms, Weighing(config, 4.0)), norms, torch.arange(BATCH), True, Logits(10.0, 0.0)
    )
    reading = read_step(step)
    last = step_diagnostics(
        step,
        reading,
        stage_at(0.5, config),
        config,
        direction_weight=(0.5, 0.5),
        gap_window=(math.nan, math.nan),
    )
    kept = [0, 1, 3, 4]
    assert reading.sound
    assert last.no_negative_count.tolist() == [1.0, 0.0]
    assert last.clamped_share.tolist() == [0.0, 0.0]  # all at the clamp of 1, none cut by it
    assert last.ess.tolist() == pytest.approx([4.0, 5.0])
    assert float(last.gap[0]) == pytest.approx(last.margin[0, kept].mean().item())
    assert float(last.direction_loss[0]) == pytest.approx(last.pair_loss[0, kept].mean().item())
    assert float(last.accuracy[0]) == (last.margin[0, kept] > 0).double().mean().item()
    assert last.negative_index[0, 2] == -1
    assert last.negative_label[0, 2] == -1
    assert torch.isnan(last.negative_similarity[0, 2])
    assert last.gradient_share[0, 2] == 0


def test_no_negative_at_all_is_not_sound() -> None:
    image, text = (x.detach() for x in features())
    everything = torch.ones(BATCH, BATCH, dtype=torch.bool)
    for terms in (
        fused_infonce_terms(image, text, everything, 10.0)[0],
        base_terms(sides(image, text, everything), UWMLConfig(base="triplet"), 10.0),
    ):
        weighted = weigh(terms, Weighing(UWMLConfig(), 4.0))
        assert weighted.losses.tolist() == [0.0, 0.0]
        norms = torch.ones(2, BATCH)
        step = StepTensors(terms, weighted, norms, torch.zeros(BATCH), False, Logits(10.0, 0.0))
        assert not read_step(step).sound
