"""Comparators against what their authors print: by hand, or as their released code computes it."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from uwml_core.losses import UWMLLoss
from uwml_core.weighting import LOSS_PRESETS, loss_preset


@pytest.mark.parametrize("labels", [None, [0, 1, 2, 3, 4, 5]])
def test_sigmoid_is_siglip(labels: list[int] | None) -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 6, 4, dtype=torch.float64)
    loss = UWMLLoss(base="sigmoid", curve="uniform", direction_mode="off")
    value = loss(image, text, labels=labels)
    logits = 10.0 * F.normalize(image) @ F.normalize(text).T - 10.0
    signs = 2 * torch.eye(6, dtype=torch.float64) - 1
    want = -F.logsigmoid(signs * logits).sum() / 6
    torch.testing.assert_close(value, want, rtol=1e-6, atol=0.0)  # t = 10 is a float32 parameter
    assert loss.last.temperature == pytest.approx(0.1)


def test_sigmoid_learns_scale_and_bias_unless_they_are_given() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 6, 4)
    loss = UWMLLoss(base="sigmoid", total_steps=5)
    assert {name: p.item() for name, p in loss.named_parameters()} == {
        "logit_scale": pytest.approx(math.log(10.0)),
        "logit_bias": -10.0,
    }
    loss(image, text).backward()
    assert loss.logit_scale.grad.item() != 0.0
    assert loss.logit_bias.grad.item() != 0.0
    loss.zero_grad()
    scale, bias = torch.tensor(20.0, requires_grad=True), torch.tensor(-5.0, requires_grad=True)
    loss(image, text, scale, bias).backward()
    assert scale.grad.item() != 0.0
    assert bias.grad.item() != 0.0
    # in the graph all the same: a wrapper for several processes waits for every parameter
    assert (loss.logit_scale.grad.item(), loss.logit_bias.grad.item()) == (0.0, 0.0)
    assert loss.last.temperature == pytest.approx(0.05)


def test_sigmoid_masks_equal_labels_but_not_the_positives() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 4, 3, dtype=torch.float64)
    loss = UWMLLoss(base="sigmoid", curve="uniform", direction_mode="off")
    value = loss(image, text, 10.0, -10.0, labels=[0, 1, 0, 2])
    logits = 10.0 * F.normalize(image) @ F.normalize(text).T - 10.0
    terms = -F.logsigmoid((2 * torch.eye(4, dtype=torch.float64) - 1) * logits)
    terms[0, 2] = terms[2, 0] = 0.0
    torch.testing.assert_close(value, terms.sum() / 4)


@pytest.mark.parametrize("over", ["hardest", "sum"])
def test_triplet_is_vse_with_means_in_place_of_sums(over: str) -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 7, 4, dtype=torch.float64)
    loss = UWMLLoss(base="triplet", over_negatives=over, curve="uniform", direction_mode="off")
    value = loss(image, text)
    scores = F.normalize(image) @ F.normalize(text).T
    positive = scores.diagonal()
    rows, columns = (
        (0.2 + s - p).clamp(min=0).fill_diagonal_(0.0)
        for s, p in ((scores, positive[:, None]), (scores, positive[None, :]))
    )
    if over == "hardest":
        want = rows.max(1).values.sum() + columns.max(0).values.sum()
    else:
        want = rows.sum() + columns.sum()
    torch.testing.assert_close(value, want / (2 * 7))


def test_weights_of_pairs_show_in_the_anchors() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 9, 4, dtype=torch.float64)
    for settings in ({"base": "sigmoid"}, {"base": "triplet", "over_negatives": "sum"}):
        weighted, plain = (UWMLLoss(**settings, curve=curve) for curve in ("bell", "uniform"))
        for loss in (weighted, plain):
            loss(image, text, progress=1.0)
        torch.testing.assert_close(plain.last.weight, torch.ones_like(plain.last.weight))
        torch.testing.assert_close(
            weighted.last.weight * plain.last.pair_loss, weighted.last.pair_loss, equal_nan=True
        )
        assert plain.last.ess.tolist() == pytest.approx([72.0, 72.0])
        assert (weighted.last.ess < 72.0).all()


def scores_of(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
    return F.normalize(image) @ F.normalize(text).T


def test_dcl_leaves_the_positive_out_of_the_denominator() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 6, 4, dtype=torch.float64)
    value = UWMLLoss(loss_preset("dcl"), temperature=0.1)(image, text)
    exponentials = (scores_of(image, text) / 0.1).exp()
    positive = exponentials.diagonal()
    others = exponentials.clone().fill_diagonal_(0.0)
    want = -(positive / others.sum(1)).log().mean() - (positive / others.sum(0)).log().mean()
    torch.testing.assert_close(value, want / 2)


def test_dcl_may_be_negative_and_its_positive_never_rests() -> None:
    loss = UWMLLoss(loss_preset("dcl"))
    image = torch.eye(3, dtype=torch.float64)
    assert loss(image, image.clone()).item() == pytest.approx(math.log(2) - 1 / 0.07)
    torch.testing.assert_close(loss.last.gradient_share, torch.full((2, 3), 1 / 3, dtype=torch.float64))


def test_hn_nce_weighs_negatives_by_their_similarity() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 6, 4, dtype=torch.float64)
    value = UWMLLoss(loss_preset("hn_nce"), hn_alpha=0.9, hn_beta=0.5, temperature=0.2)(image, text)
    logits = scores_of(image, text) / 0.2
    total = 0.0
    for rows in (logits, logits.T):
        tilted = (0.5 * rows).exp().fill_diagonal_(0.0)
        weights = 5 * tilted / tilted.sum(1, keepdim=True)
        positive = rows.diagonal().exp()
        total = total - (positive / (0.9 * positive + (weights * rows.exp()).sum(1))).log().mean()
    torch.testing.assert_close(value, total / 2)


def test_hn_nce_without_its_two_changes_is_infonce_and_dcl() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 6, 4, dtype=torch.float64)
    for name, alpha in (("infonce", 1.0), ("dcl", 0.0)):
        want = UWMLLoss(loss_preset(name))(image, text)
        torch.testing.assert_close(
            UWMLLoss(loss_preset("hn_nce"), hn_alpha=alpha, hn_beta=0.0)(image, text), want
        )


def test_every_preset_gives_a_loss_and_a_gradient() -> None:
    torch.manual_seed(0)
    text = torch.randn(12, 6)
    for name in LOSS_PRESETS:
        image = torch.randn(12, 6, requires_grad=True)
        loss = UWMLLoss(loss_preset(name), total_steps=5)
        value = loss(image, text, labels=[0, 0, *range(10)])
        value.backward()
        assert torch.isfinite(value), name
        assert image.grad.abs().sum() > 0, name
        assert float(loss.last.loss) == pytest.approx(value.item(), rel=1e-5), name
