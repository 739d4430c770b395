"""The module's call: what it equals, what it accepts, what it reports."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from uwml_core.losses import StepDiagnostics, UWMLLoss, weighted_loss
from uwml_core.losses.candidates import both_directions
from uwml_core.losses.functional import base_terms
from uwml_core.losses.similarity import unit_rows
from uwml_core.losses.weigh import Weighing, anchor_weights
from uwml_core.runlog.schema import PAIRS, STEPS
from uwml_core.weighting import UWMLConfig


def hand_written_infonce(image, text, scale):
    logits = F.normalize(image, dim=1) @ F.normalize(text, dim=1).T * scale
    target = torch.arange(len(logits))
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def train(objective, learnable: bool, steps: int = 25) -> list[float]:
    torch.manual_seed(0)
    towers = nn.ModuleList([nn.Linear(12, 8), nn.Linear(10, 8)])
    scale = nn.Parameter(torch.tensor(1 / 0.07).log())
    optimizer = torch.optim.SGD([*towers.parameters(), *([scale] if learnable else [])], lr=0.3)
    losses = []
    for _ in range(steps):
        hidden = torch.randn(32, 10)
        source = torch.cat((hidden, torch.randn(32, 2)), 1), hidden + 0.3 * torch.randn(32, 10)
        image, text = towers[0](source[0]), towers[1](source[1])
        loss = objective(image, text, scale.exp() if learnable else 1 / 0.07)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("normalization", ["l2", "sum", "none"])
@pytest.mark.parametrize("learnable", [False, True])
def test_uniform_curve_without_direction_trains_like_hand_written_infonce(
    normalization: str, learnable: bool
) -> None:
    loss = UWMLLoss(curve="uniform", direction_mode="off", normalization=normalization)
    ours = train(loss, learnable)
    want = train(hand_written_infonce, learnable)
    assert want[-1] < want[0] - 0.5
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(want), rtol=2e-5, atol=2e-5)


VARIANTS = [
    {},
    {"base": "triplet"},
    {"negative_statistic": "topk_mean", "topk": 3},
    {"negative_statistic": "quantile", "quantile": 0.8},
    {"negative_statistic": "mean", "margin_scale": "negative_std"},
    {"combination": "add"},
    {"false_negative_margin": 0.1},
    {"base": "triplet", "over_negatives": "sum"},
    {"base": "sigmoid"},
    {"base": "dcl"},
    {"base": "hn_nce", "hn_alpha": 0.5},
    {"base": "wei2020_max", "direction_mode": "off"},
    {"base": "wei2020_calibrated", "direction_mode": "off"},
]


def test_module_is_the_pure_function_of_its_schedule() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 8, 5, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 3, 3, 2, 6, 7])
    for settings in VARIANTS:
        loss = UWMLLoss(**{"direction_mode": "fixed", "direction_fixed": 0.3, **settings})
        got = loss(image, text, 1 / 0.07, -3.0, labels=labels, progress=0.4)
        want = weighted_loss(
            unit_rows(image) @ unit_rows(text).T,
            labels[:, None] == labels,
            loss.last.steepness,
            torch.tensor([0.3, 0.7], dtype=torch.float64),
            config=loss.config,
            scale=1 / 0.07,
            bias=-3.0,
        )
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_no_gradient_flows_through_a_weight_unless_asked() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(6, 4), torch.randn(6, 4)
    gradients = []
    for detach in (True, False):
        source = image.clone().requires_grad_()
        loss = UWMLLoss(total_steps=10, detach_weights=detach)
        loss(source, text, progress=0.8).backward()
        gradients.append(source.grad)
        assert not loss.last.weight.requires_grad
    assert not torch.allclose(*gradients, rtol=1e-3)


def test_call_signature_is_the_documented_one() -> None:
    parameters = inspect.signature(UWMLLoss.forward).parameters
    assert list(parameters) == [
        "self",
        "image_features",
        "text_features",
        "logit_scale",
        "logit_bias",
        "output_dict",
        "labels",
        "item_ids",
        "progress",
        "whole_step",
        "ignored",
    ]
    assert parameters["labels"].kind is inspect.Parameter.KEYWORD_ONLY
    assert list(inspect.signature(UWMLLoss).parameters) == [
        "config",
        "validate",
        "detach_weights",
        "distributed",
        "overrides",
    ]


def test_output_dict_and_foreign_arguments() -> None:
    image, text = torch.eye(3), torch.eye(3)
    loss = UWMLLoss(curve="uniform")
    plain = loss(image, text)
    wrapped = loss(image, text, output_dict=True, dist_image_features=None)
    assert list(wrapped) == ["contrastive_loss"]
    assert torch.equal(wrapped["contrastive_loss"], plain)


def test_given_scale_replaces_the_temperature_and_stays_in_the_graph() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(5, 4), torch.randn(5, 4)
    scale, bias = torch.tensor(20.0, requires_grad=True), torch.tensor([-10.0], requires_grad=True)
    loss = UWMLLoss(curve="uniform", direction_mode="off")
    value = loss(image, text, scale, bias)
    value.backward()
    assert loss.last.temperature == pytest.approx(1 / 20)
    assert value.item() == pytest.approx(hand_written_infonce(image, text, 20.0).item(), rel=1e-5)
    reference = torch.tensor(20.0, requires_grad=True)
    hand_written_infonce(image, text, reference).backward()
    assert scale.grad.item() == pytest.approx(reference.grad.item(), rel=1e-4)
    assert bias.grad.tolist() == [0.0]  # a constant cancels in a softmax


def test_scale_and_bias_keep_a_gradient_where_the_hinge_ignores_them() -> None:
    scale = torch.tensor(20.0, requires_grad=True)
    UWMLLoss(base="triplet")(torch.eye(3), torch.eye(3), scale, progress=0.0).backward()
    assert scale.grad.item() == 0.0


def test_configuration_comes_as_object_mapping_or_overrides() -> None:
    config = UWMLConfig(center=0.0, temperature=0.1)
    assert UWMLLoss(config).config == config
    assert UWMLLoss(config.to_dict()).config == config
    assert UWMLLoss(config, temperature=0.2).config == dataclasses.replace(config, temperature=0.2)
    assert UWMLLoss(modalities=("video", "text")).directions == ("v2t", "t2v")


def test_statistics_and_scale_leave_gap_and_named_negative_alone() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 9, 4, dtype=torch.float64)
    plain = UWMLLoss(total_steps=5)
    plain(image, text)
    for name in ("topk_mean", "quantile", "mean"):
        other = UWMLLoss(total_steps=5, negative_statistic=name, quantile=0.5, margin_scale="negative_std")
        other(image, text)
        torch.testing.assert_close(other.last.gap, plain.last.gap)
        assert torch.equal(other.last.negative_index, plain.last.negative_index)
        assert (other.last.margin > plain.last.margin).all()
        assert other.last_logs["margin_scale_t2i"] == float(other.last.margin_scale[1])


def test_margin_scale_ignores_the_unit_of_the_margins() -> None:
    # the same batch, every similarity halved towards its mean: one center means the same in both
    similarity = torch.rand(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    config = UWMLConfig(margin_scale="negative_std", center=1.0)
    weights = [
        anchor_weights(
            base_terms(both_directions(s, torch.eye(6).bool(), config), config, 10.0), Weighing(config, 3.0)
        )
        for s in (similarity, 0.25 + 0.5 * similarity)
    ]
    torch.testing.assert_close(weights[0].weight, weights[1].weight)
    torch.testing.assert_close(weights[0].margin, 2 * weights[1].margin)


def test_anchors_with_fewer_than_two_negatives_do_not_set_the_scale() -> None:
    similarity = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.float64)
    config = UWMLConfig(margin_scale="negative_std")
    terms = base_terms(both_directions(similarity, torch.eye(2).bool(), config), config, 10.0)
    assert terms.margin_scale.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("settings", [{"curve": "uniform"}, {"base": "wei2020_max"}, {"base": "sigmoid"}])
def test_a_clamp_that_all_weights_are_at_cut_none(settings: dict) -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 9, 4)
    equal = UWMLLoss(**{"curve": "uniform", "max_weight": 1.0, **settings})
    equal(image, text)
    assert equal.last.clamped_share.tolist() == [0.0, 0.0]
    hard = UWMLLoss(curve="hard", max_weight=1.0, total_steps=5)
    hard(image, text)
    want = ((hard.last.pair_weight > hard.last.pair_weight.mean(1, keepdim=True)).double()).mean(1)
    assert hard.last.clamped_share.tolist() == want.tolist()
    assert want.min() > 0


def test_false_negatives_are_named() -> None:
    image = torch.eye(4)
    text = torch.eye(4)
    text[1] = torch.tensor([0.9, 0.4, 0.0, 0.0])  # picture 1's own caption suits picture 0 better
    loss = UWMLLoss(false_negative_margin=0.2, total_steps=5)
    loss(image, text)
    last = loss.last
    # as a text, row 1 prefers picture 0; picture 0 prefers its own caption
    assert last.false_negatives.tolist() == [[1, 1, 0]]
    assert (last.masked_false_negatives, last.negatives_per_anchor) == (1, (12 + 11) / 8)
    assert last.negative_index[1, 1] != 0


def test_swapping_the_modalities_swaps_the_directions() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 7, 4, dtype=torch.float64)
    one, other = UWMLLoss(total_steps=5), UWMLLoss(total_steps=5)
    torch.testing.assert_close(one(image, text), other(text, image))
    torch.testing.assert_close(one.last.margin, other.last.margin.flip(0))


def test_diagnostics_are_detached_and_shaped_as_documented() -> None:
    torch.manual_seed(0)
    image = torch.randn(6, 4, requires_grad=True)
    loss = UWMLLoss(total_steps=5)
    assert loss.last is None
    assert loss.last_logs == {}
    loss(image, torch.randn(6, 4), labels=[0, 1, 2, 3, 4, 4])
    last = loss.last
    assert isinstance(last, StepDiagnostics)
    with pytest.raises(dataclasses.FrozenInstanceError):
        last.loss = 0.0
    for column in PAIRS.columns:
        value = getattr(last, column.name, None)
        if isinstance(value, torch.Tensor):
            assert value.shape == (2, 6), column.name
            assert value.dtype == torch.float32
            assert not value.requires_grad
    for name in ("label", "negative_index", "negative_label"):
        assert getattr(last, name).dtype == torch.int64
    for name in (*STEPS.per_direction(), "direction_loss"):
        value = getattr(last, name) if name != "loss" else last.direction_loss
        assert value is None or (value.shape == (2,) and value.dtype == torch.float64), name
    torch.testing.assert_close(last.gradient_share.sum(1), torch.ones(2))


def test_last_logs_carry_the_column_names_of_the_steps_table() -> None:
    loss = UWMLLoss(total_steps=5)
    loss(torch.eye(3), torch.eye(3))
    logs = loss.last_logs
    assert set(logs) <= set(STEPS.schema(loss.directions).names)
    assert all(type(value) is float for value in logs.values())
    assert logs["gap_i2t"] == 1.0
    assert logs["negatives_per_anchor"] == 2.0
    assert "margin_scale_i2t" not in logs
    triplet = UWMLLoss(base="triplet", total_steps=5)
    triplet(torch.eye(3), torch.eye(3))
    assert triplet.last.temperature is None
    assert "temperature" not in triplet.last_logs


def test_hardest_share_of_the_negative_gradient_follows_from_the_logged_fields() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(2, 9, 5, dtype=torch.float64)
    loss = UWMLLoss(total_steps=5)
    loss(image, text)
    last = loss.last
    similarity = F.normalize(image) @ F.normalize(text).T
    p = (similarity / 0.07).softmax(1)
    hardest = (p - torch.diag(p.diagonal())).amax(1)
    r = last.weight[0]
    want = (r * hardest).sum() / (r * (1 - p.diagonal())).sum()
    loss_i, margin = last.pair_loss[0], last.margin[0]
    got = (r * (-loss_i - margin / 0.07).exp()).sum() / (r * -torch.expm1(-loss_i)).sum()
    torch.testing.assert_close(got, want)
