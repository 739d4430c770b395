"""Comparators against what their authors print: by hand, or as their released code computes it."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from uwml_core.losses import UWMLLoss
from uwml_core.weighting import LOSS_PRESETS, loss_preset


def features_of(similarity: list[list[float]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Two unit matrices whose product is a given matrix with entries small enough for it."""
    wanted = torch.tensor(similarity, dtype=torch.float64)
    count = len(wanted)
    text = torch.eye(count, dtype=torch.float64)
    room = 1.0 - (wanted**2).sum(1)
    # a coordinate of its own fills each row up to length 1 without touching any product
    image = torch.cat((wanted, torch.diag(room.clamp(min=0.0).sqrt())), 1)
    text = torch.cat((text, torch.zeros(count, count, dtype=torch.float64)), 1)
    torch.testing.assert_close(F.normalize(image) @ F.normalize(text).T, wanted)
    return image.requires_grad_(), text.requires_grad_()


def attraction(s: float) -> float:
    return 0.2 * s * s - 0.7 * s + 0.5


def repulsion(s: float) -> float:
    return 0.9 * s * s - 0.4 * s + 0.03


def loss_of(similarity: list[list[float]], **settings) -> tuple[float, UWMLLoss]:
    loss = UWMLLoss(base="wei2020_max", **settings)
    image, text = features_of(similarity)
    value = loss(image, text)
    value.backward()
    assert torch.isfinite(image.grad).all()
    return value.item(), loss


def test_wei2020_anchors_without_an_informative_negative_add_nothing() -> None:
    # Row 0.6 against 0.5 counts, 0.8 against 0.1 does not; of the columns neither does.
    value, loss = loss_of([[0.6, 0.5], [0.1, 0.8]])
    assert value == pytest.approx((attraction(0.6) + repulsion(0.5)) / 2)
    assert loss.last.pair_loss.count_nonzero() == 1
    assert loss.last.direction_loss.tolist() == pytest.approx([value, 0.0])


def test_wei2020_without_any_active_anchor_is_zero_and_keeps_the_graph() -> None:
    value, loss = loss_of([[0.9, 0.1], [0.1, 0.9]])
    assert value == 0.0
    assert loss.last.gradient_share.isnan().all()
    assert loss.last.dead_share.tolist() == [0.0, 0.0]


def test_wei2020_leaves_a_perfect_positive_out() -> None:
    # Text 1 equals picture 1; its hardest negative is close enough, yet it adds nothing.
    image = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    text = torch.tensor([[0.1, 0.995], [0.0, 1.0]], dtype=torch.float64)
    loss = UWMLLoss(base="wei2020_max")
    value = loss(image, text).item()
    assert loss.last.positive_similarity[0, 1] == 1.0
    assert loss.last.pair_loss[:, 1].tolist() == [0.0, 0.0]
    one, other = F.normalize(text)[0].tolist()
    # row 0: 0.1 against 0; column 0: 0.1 against 0.995
    want = attraction(one) + max(0.0, repulsion(0.0)) + attraction(one) + repulsion(other)
    assert value == pytest.approx(want / 2)


def test_wei2020_clamps_each_part_at_zero() -> None:
    # s- = 0.2 lies between the roots of the negative polynomial
    value, loss = loss_of([[0.3, 0.2], [0.2, 0.3]])
    assert value == pytest.approx(2 * attraction(0.3))
    assert loss.last.dead_share.tolist() == [1.0, 1.0]
    assert loss.last.wrong_sign_share.tolist() == [0.0, 0.0]


def test_wei2020_has_no_gradient_on_a_dead_negative_and_the_wrong_one_below_it() -> None:
    for negative, slope in ((0.2, 0.0), (0.05, 1.8 * 0.05 - 0.4), (0.5, 1.8 * 0.5 - 0.4)):
        text = torch.eye(4, dtype=torch.float64)[:2]
        image = torch.zeros(2, 4, dtype=torch.float64)
        image[0, 0], image[0, 1] = 0.2, negative
        image[0, 2] = math.sqrt(1 - 0.04 - negative**2)
        image[1, 3], image[1, 1] = math.sqrt(1 - 0.81), 0.9
        image, text = image.requires_grad_(), text.requires_grad_()
        loss = UWMLLoss(base="wei2020_max")
        loss(image, text).backward()
        # only row 0 is active towards text 1, whose tangential gradient is slope * image / batch
        assert text.grad[1, 0].item() == pytest.approx(slope * 0.2 / 2, abs=1e-12)
        assert loss.last.wrong_sign_share[0].item() == (0.5 if slope < 0 else 0.0)
        assert loss.last.dead_share[0].item() == (0.5 if slope == 0 else 0.0)


def test_wei2020_zones_end_at_the_roots() -> None:
    for negative, dead, wrong in ((0.0954, 0, 1), (0.0956, 1, 0), (0.3488, 1, 0), (0.3490, 0, 0)):
        _, loss = loss_of([[0.25, negative], [negative, 0.25]])
        assert loss.last.dead_share.tolist() == [dead, dead]
        assert loss.last.wrong_sign_share.tolist() == [wrong, wrong]
        assert loss.last_logs["dead_share_i2t"] == dead


def test_wei2020_coefficients_and_margin_are_parameters() -> None:
    value, _ = loss_of(
        [[0.6, 0.5], [0.1, 0.8]], positive_polynomial=(1.0,), negative_polynomial=(0, 2.0), triplet_margin=0.4
    )
    # now column 1, 0.8 against 0.5, counts, too
    assert value == pytest.approx((1 + 2 * 0.5 + 1 + 2 * 0.5) / 2)


def released(scores: torch.Tensor) -> torch.Tensor:
    """The algorithm of the released code: a loop over anchors, first rows, then columns."""
    total, count = scores.new_zeros(()), len(scores)
    for matrix in (scores, scores.T):
        for i in range(count):
            positive = matrix[i, i]
            others = torch.cat((matrix[i, :i], matrix[i, i + 1 :]))
            informative = others[others + 0.2 > positive]
            if positive >= 1 - 1e-5 or not len(informative):
                continue
            negative = informative.max()
            total = total + (0.2 * positive**2 - 0.7 * positive + 0.5).clamp(min=0)
            total = total + (0.9 * negative**2 - 0.4 * negative + 0.03).clamp(min=0)
    return total / count


@pytest.mark.parametrize("dim", [3, 8, 64])
def test_wei2020_max_is_the_released_algorithm(dim: int) -> None:
    torch.manual_seed(dim)
    image = torch.randn(24, dim, dtype=torch.float64, requires_grad=True)
    text = (image.detach() + 2 * torch.randn(24, dim, dtype=torch.float64)).requires_grad_()
    value = UWMLLoss(base="wei2020_max")(image, text)
    want = released(F.normalize(image) @ F.normalize(text).T)
    torch.testing.assert_close(value, want)
    for ours, theirs in zip(
        torch.autograd.grad(value, (image, text)), torch.autograd.grad(want, (image, text)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_calibration_puts_the_medians_where_the_constants_act() -> None:
    # CLIP-like cosines: positives at 0.3, negatives below 0.25
    torch.manual_seed(0)
    scores = 0.2 + 0.02 * torch.rand(16, 16, dtype=torch.float64)
    scores.fill_diagonal_(0.3)
    plain, calibrated = (UWMLLoss(base=f"wei2020_{kind}") for kind in ("max", "calibrated"))
    image, text = features_of((0.9 * scores).tolist())
    plain(image, text)
    calibrated(image, text)
    assert plain.last.dead_share.tolist() == [1.0, 1.0]
    assert calibrated.last.dead_share.tolist() == [0.0, 0.0]
    assert calibrated.last.wrong_sign_share.tolist() == [0.0, 0.0]
    torch.testing.assert_close(calibrated.last.margin, plain.last.margin)


def test_calibrated_loss_does_not_see_shift_and_scale_of_the_similarities() -> None:
    torch.manual_seed(0)
    scores = 0.3 * torch.rand(8, 8, dtype=torch.float64) / 2 + 0.15 * torch.eye(8)
    values = []
    for factor, offset in ((1.0, 0.0), (0.7, 0.1)):
        loss = UWMLLoss(base="wei2020_calibrated")
        values.append(loss(*features_of((factor * scores + offset).tolist())).item())
    assert values[0] == pytest.approx(values[1])


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
