"""The polynomial loss against cases computed by hand, and against the loop of the authors' released code."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from uwml_core.losses import UWMLLoss


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


def loss_of(similarity: list[list[float]], **settings) -> tuple[float, UWMLLoss]:
    loss = UWMLLoss(**{"base": "wei2020_max", **settings})
    image, text = features_of(similarity)
    value = loss(image, text)
    value.backward()
    assert torch.isfinite(image.grad).all()
    return value.item(), loss


def test_wei2020_anchors_without_an_informative_negative_add_nothing() -> None:
    # Row 0: 0.5 + 0.2 > 0.6. Row 1: 0.1 + 0.2 < 0.8. Column 0: 0.1 + 0.2 < 0.6. Column 1: 0.5 + 0.2 < 0.8.
    # 0.2 * 0.36 - 0.7 * 0.6 + 0.5 = 0.152;  0.9 * 0.25 - 0.4 * 0.5 + 0.03 = 0.055
    value, loss = loss_of([[0.6, 0.5], [0.1, 0.8]])
    assert loss.last.pair_loss.tolist() == [pytest.approx([0.207, 0.0]), [0.0, 0.0]]
    assert loss.last.direction_loss.tolist() == pytest.approx([0.1035, 0.0])
    assert value == pytest.approx(0.1035)  # by the batch, not by the anchors that count


def test_wei2020_without_any_active_anchor_is_zero_and_keeps_the_graph() -> None:
    value, loss = loss_of([[0.9, 0.1], [0.1, 0.9]])
    assert value == 0.0
    assert loss.last.gradient_share.isnan().all()
    assert loss.last.dead_share.tolist() == [0.0, 0.0]


def test_wei2020_of_identical_pairs_is_zero_and_keeps_the_graph() -> None:
    # neither positives, all at 1, nor negatives, 0 + 0.2 < 1, are left
    image = torch.eye(3, dtype=torch.float64, requires_grad=True)
    value = UWMLLoss(base="wei2020_max")(image, torch.eye(3, dtype=torch.float64))
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(image.grad, torch.zeros(3, 3, dtype=torch.float64))


# S = [[0.6, s], [0.8, c]] with c the second positive and s = sqrt(1 - c^2) < 0.01.
# Row 0 and column 1: s + 0.2 is below 0.6 and below c, nothing.
# Column 0: 0.152 as above, and 0.9 * 0.64 - 0.4 * 0.8 + 0.03 = 0.286: 0.438.
# Row 1: 0.8 + 0.2 > c, so it counts if c < 1 - 1e-5: with c = 1 - x, 0.2 c^2 - 0.7 c + 0.5 = 0.3 x + 0.2 x^2,
# which is 6.00008e-6 at x = 2e-5, and again 0.286.
@pytest.mark.parametrize(
    ("below_one", "row", "want"),
    [(2e-5, 0.28600600008, 0.36200300004), (5e-6, 0.0, 0.219), (0.0, 0.0, 0.219)],
)
def test_wei2020_leaves_a_perfect_positive_out(below_one: float, row: float, want: float) -> None:
    c = 1 - below_one
    image = torch.eye(2, dtype=torch.float64)
    text = torch.tensor([[0.6, 0.8], [math.sqrt(1 - c * c), c]], dtype=torch.float64)
    loss = UWMLLoss(base="wei2020_max")
    assert loss(image, text).item() == pytest.approx(want, rel=1e-9)
    assert loss.last.pair_loss.tolist() == [pytest.approx([0.0, row]), pytest.approx([0.438, 0.0])]


def test_wei2020_clamps_each_part_at_zero() -> None:
    # 0.2 * 0.09 - 0.7 * 0.3 + 0.5 = 0.308;  0.9 * 0.04 - 0.4 * 0.2 + 0.03 = -0.014, taken for 0
    value, loss = loss_of([[0.3, 0.2], [0.2, 0.3]])
    assert value == pytest.approx(4 * 0.308 / 2)
    assert loss.last.dead_share.tolist() == [1.0, 1.0]
    assert loss.last.wrong_sign_share.tolist() == [0.0, 0.0]
    # at other coefficients the first part falls below 0, too: 0.1 - 0.3 = -0.2;  0.2
    value, _ = loss_of([[0.3, 0.2], [0.2, 0.3]], positive_polynomial=(0.1, -1), negative_polynomial=(0, 1))
    assert value == pytest.approx(4 * 0.2 / 2)


def test_wei2020_below_the_dead_zone_by_hand() -> None:
    # 0.2 * 0.04 - 0.7 * 0.2 + 0.5 = 0.368;  0.9 * 0.0025 - 0.4 * 0.05 + 0.03 = 0.01225
    value, loss = loss_of([[0.2, 0.05], [0.05, 0.2]])
    assert value == pytest.approx(4 * 0.38025 / 2)
    assert loss.last.wrong_sign_share.tolist() == [1.0, 1.0]
    # 0 and 0.5;  0.9 * 0.01 + 0.4 * 0.1 + 0.03 = 0.079
    value, loss = loss_of([[0.0, -0.1], [-0.1, 0.0]])
    assert value == pytest.approx(4 * 0.579 / 2)
    assert loss.last.wrong_sign_share.tolist() == [1.0, 1.0]


def test_wei2020_shares_of_both_directions_by_hand() -> None:
    # positives: 0.3 gives 0.308, 0.1 gives 0.002 - 0.07 + 0.5 = 0.432, 0.5 gives 0.05 - 0.35 + 0.5 = 0.2
    # rows:     0.2 is dead: 0;  0.05 is pulled closer: 0.01225;  0.6: 0.324 - 0.24 + 0.03 = 0.114
    # columns:  0.6: 0.114;  0.2 is dead: 0;  0 + 0.2 < 0.5: the anchor adds nothing
    value, loss = loss_of([[0.3, 0.2, 0.0], [0.05, 0.1, -0.2], [0.6, 0.0, 0.5]])
    last = loss.last
    assert last.pair_loss[0].tolist() == pytest.approx([0.308, 0.44425, 0.314])
    assert last.pair_loss[1].tolist() == pytest.approx([0.422, 0.432, 0.0])
    assert last.direction_loss.tolist() == pytest.approx([1.06625 / 3, 0.854 / 3])
    assert value == pytest.approx(1.92025 / 3)
    assert last.dead_share.tolist() == pytest.approx([1 / 3, 1 / 3])
    assert last.wrong_sign_share.tolist() == pytest.approx([1 / 3, 0.0])


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


def test_wei2020_of_constant_polynomials_keeps_the_graph() -> None:
    value, _ = loss_of([[0.6, 0.5], [0.5, 0.6]], positive_polynomial=(0.3,), negative_polynomial=(0.1,))
    assert value == pytest.approx(4 * 0.4 / 2)


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


def test_calibrated_loss_by_hand() -> None:
    # med s- = 0.22 of (0.2, 0.24, 0.24, 0.2), med s+ = 0.32: S' = 0.6 + 2 (S - 0.22), which is
    # [[0.76, 0.56], [0.64, 0.84]]
    # s+ 0.76: 0.11552 - 0.532 + 0.5 = 0.08352;  s+ 0.84: 0.14112 - 0.588 + 0.5 = 0.05312
    # s- 0.56: 0.28224 - 0.224 + 0.03 = 0.08824;  s- 0.64: 0.36864 - 0.256 + 0.03 = 0.14264
    similarity = [[0.3, 0.2], [0.24, 0.34]]
    value, loss = loss_of(similarity, base="wei2020_calibrated", triplet_margin=0.3)
    assert loss.last.pair_loss[0].tolist() == pytest.approx([0.08352 + 0.08824, 0.05312 + 0.14264])
    assert loss.last.pair_loss[1].tolist() == pytest.approx([0.08352 + 0.14264, 0.05312 + 0.08824])
    assert value == pytest.approx(0.73504 / 2)
    # medians nearer than 0.05 are taken to be that far apart: S' = 0.6 + 4 (S - 0.2), positives at 0.68
    # 0.09248 - 0.476 + 0.5 = 0.11648;  0.114 as above
    value, _ = loss_of([[0.22, 0.2], [0.2, 0.22]], base="wei2020_calibrated", triplet_margin=0.3)
    assert value == pytest.approx(4 * 0.23048 / 2)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_pair_at_both_medians_is_on_the_edge_and_adds_nothing(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    for negative, gap in torch.rand(200, 2, dtype=torch.float64, generator=generator).mul(0.4).tolist():
        positive = negative + 0.05 + gap
        image, text = features_of([[positive, negative], [negative, positive]])
        loss = UWMLLoss(base="wei2020_calibrated")
        assert loss(image.to(dtype), text.to(dtype)).item() == 0.0
        # above the edge by more than rounding it counts
        wider = UWMLLoss(base="wei2020_calibrated", triplet_margin=0.2 + 2e-5)
        assert wider(image.to(dtype), text.to(dtype)).item() == pytest.approx(
            4 * (0.068 + 0.114) / 2, rel=1e-3
        )


def test_calibrated_loss_does_not_see_shift_and_scale_of_the_similarities() -> None:
    torch.manual_seed(0)
    scores = 0.3 * torch.rand(8, 8, dtype=torch.float64) / 2 + 0.15 * torch.eye(8)
    values = []
    for factor, offset in ((1.0, 0.0), (0.7, 0.1)):
        loss = UWMLLoss(base="wei2020_calibrated")
        values.append(loss(*features_of((factor * scores + offset).tolist())).item())
    assert values[0] == pytest.approx(values[1])
