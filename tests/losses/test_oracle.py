"""The module against the nested loops of ``oracle``: values, diagnostics and gradients."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.losses import oracle
from tests.losses.oracle_gradients import central_differences, gradient_masses, zones
from tests.losses.random_settings import Setting, distribution, random_setting, train
from tests.support.near import assert_gradient, assert_near
from uwml_core.losses import UWMLLoss

COUNT = 600
# how many of them have what must be covered
AT_LEAST = {
    **dict.fromkeys(("base infonce", "base triplet", "base sigmoid"), 80),
    **dict.fromkeys(("base dcl", "base hn_nce", "base wei2020_max", "base wei2020_calibrated"), 40),
    **dict.fromkeys([f"statistic {name}" for name in ("hardest", "topk_mean", "quantile", "mean")], 80),
    **dict.fromkeys([f"normalization {name}" for name in ("l2", "sum", "rss", "none")], 80),
    **dict.fromkeys([f"curve {name}" for name in ("bell", "hard", "uniform")], 80),
    **dict.fromkeys([f"logits {name}" for name in ("temperature", "learned", "number", "tensor")], 60),
    **dict.fromkeys(["queue both", "queue text", "margin scale negative_std", "two pairs", "add"], 100),
    **dict.fromkeys(["duplicate labels", "no labels", "adapted direction weight", "counted progress"], 100),
    **dict.fromkeys(["tie of two negatives", "false negatives left out", "weight at the floor"], 80),
    **dict.fromkeys(["fixed direction weight", "anchor without negatives", "clamped weight"], 70),
    **dict.fromkeys(["add with adapted weight"], 60),
    **dict.fromkeys(["kappa 0", "kappa 200", "no hard floor", "triplet sum", "scheduled temperature"], 40),
    **dict.fromkeys(["direction without negatives", "unknown progress", "other polynomials"], 10),
    "earlier batch refused": 1,
}
NEAR = {"relative": 1e-9, "absolute": 1e-11}

setting_of = functools.cache(random_setting)


def module(setting: Setting) -> UWMLLoss:
    loss = UWMLLoss(setting.config).double()
    if setting.logits == "learned":
        with torch.no_grad():
            loss.logit_scale.fill_(math.log(setting.scale))
            if loss.logit_bias is not None:
                loss.logit_bias.fill_(setting.bias)
    return loss


def logits_of(setting: Setting) -> dict[str, Any]:
    """What the call is given; tensors ask for a gradient."""
    given = {"logit_scale": setting.scale, "logit_bias": setting.bias}
    if setting.logits == "tensor":
        return {
            name: torch.tensor(value, dtype=torch.float64, requires_grad=True)
            for name, value in given.items()
        }
    return given if setting.logits == "number" else {}


def run(setting: Setting) -> tuple[UWMLLoss, torch.Tensor, tuple[torch.Tensor, torch.Tensor], dict[str, Any]]:
    """All batches through the module; of the last its loss, features and given logits."""
    loss = module(setting)
    for batch, at in zip(setting.batches, setting.steps, strict=True):
        features = [
            torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (batch.image, batch.text)
        ]
        given = logits_of(setting)
        call = {"labels": batch.labels, "item_ids": batch.ids, "progress": batch.progress, **given}
        if at is None:
            with pytest.raises(ValueError, match="leaves no anchor of this batch a negative"):
                loss(*features, **call)
        else:
            value = loss(*features, **call)
    return loss, value, features, given


pytestmark = pytest.mark.filterwarnings("ignore:neither progress nor total_steps is known")


@pytest.mark.parametrize("seed", range(COUNT))
def test_value_weights_diagnostics_and_gradients_are_those_of_the_nested_loops(seed: int) -> None:
    setting = setting_of(seed)
    at = setting.steps[-1]

    loss, value, features, given = run(setting)
    value.backward()

    assert_near(value, at.loss, "loss", **NEAR)
    compare_step(loss.last, at, setting)
    for d, side in enumerate(at.sides):
        compare_direction(loss.last, d, side, at, setting)
    compare_gradients(loss, features, given, at, setting)


def compare_step(last: Any, at: Any, setting: Setting) -> None:
    config, sides = setting.config, at.sides
    assert_near(last.loss, at.loss, "reported loss", **NEAR)
    assert_near(last.direction_weight, list(at.weights), "direction weights", **NEAR)
    assert_near(last.gap_window, oracle.window_means(at.gaps, config), "gap window", **NEAR)
    assert_near(last.steepness, at.stage.kappa, "steepness", **NEAR)
    assert_near(last.stage_factor, at.stage.phi, "stage factor", **NEAR)
    assert last.progress == at.t
    if config["base"] in ("infonce", "dcl", "hn_nce", "sigmoid"):
        assert_near(last.temperature, 1 / at.p["scale"], "temperature", **NEAR)
    else:
        assert last.temperature is None
    assert (last.margin_scale is None) == (config["margin_scale"] == "none")
    negatives = [len(N) for side in sides for N in side.negatives]
    assert_near(last.negatives_per_anchor, oracle.mean(negatives), "negatives per anchor", **NEAR)
    false = [[d, i, j] for d, side in enumerate(sides) for i, js in enumerate(side.false) for j in js]
    assert last.masked_false_negatives == len(false)
    if config["false_negative_margin"] is None:
        assert last.false_negatives is None
    else:
        assert last.false_negatives.tolist() == false
    assert list(last.further_item_ids) == [item for batch in at.queue for item in batch.ids]


def compare_direction(last: Any, d: int, side: Any, at: Any, setting: Setting) -> None:
    config = setting.config
    count = len(side.rows)
    for field, want in (
        ("margin", side.margin),
        ("negative_similarity", side.statistic),
        ("positive_similarity", [row[i] for i, row in enumerate(side.rows)]),
        ("pair_loss", side.anchor_loss),
        ("pair_weight", side.pair_weight),
        ("weight", anchor_weights(side, at)),
        ("gradient_share", shares(gradient_masses(side, at.p))),
    ):
        assert_near(getattr(last, field)[d], want, field, **NEAR)
    for field, want in (
        ("direction_loss", side.loss),
        ("gap", side.gap),
        ("ess", oracle.effective_sample_size(side.relative)),
        ("no_negative_count", count - side.n),
    ):
        assert_near(getattr(last, field)[d], want, field, **NEAR)
    if config["margin_scale"] == "negative_std":
        assert_near(last.margin_scale[d], side.scale, "margin scale", **NEAR)
    if config["base"] in oracle.OWN_WEIGHTS and setting.config["negative_polynomial"][0] == 0.03:
        for field, zone in (("dead_share", "dead"), ("wrong_sign_share", "wrong")):
            want = zones(side, at.p).count(zone) / side.n if side.n else None
            assert_near(getattr(last, field)[d], want, field, **NEAR)
    compare_choices(last, d, side, at, setting)
    compare_counts(last, d, side, config)


def anchor_weights(side: Any, at: Any) -> list[float | None]:
    """Weights as logged: where they belong to pairs, the weighted loss over that of equal weights."""
    if not oracle.weighs_pairs(at.p):
        return side.relative
    equal = oracle.SimpleNamespace(**vars(side) | {"relative": [1.0] * len(side.pairs)})
    plain, _ = oracle.losses(side.rows, equal, at.affine, at.p)
    weights = []
    for N, weighted, of_equal in zip(side.negatives, side.anchor_loss, plain, strict=True):
        weights.append(0.0 if not N else weighted / of_equal if of_equal else None)
    return weights


def shares(masses: list[float]) -> list[float | None]:
    total = sum(masses)
    return [mass / total if total else None for mass in masses]


def compare_choices(last: Any, d: int, side: Any, at: Any, setting: Setting) -> None:
    """The named negative is a hardest one; which of equally hard ones is free."""
    labels = last.label[d].tolist()
    if setting.last.labels is not None:
        assert labels == setting.last.labels
    known = [*labels, *(label for batch in at.queue for label in batch.labels)]
    for i, hardest in enumerate(side.hardest):
        index, label = int(last.negative_index[d, i]), int(last.negative_label[d, i])
        if hardest is None:
            assert (index, label) == (-1, -1)
            continue
        assert index in side.negatives[i]
        assert_near(side.rows[i][index], side.rows[i][hardest], "hardest", relative=0.0, absolute=1e-12)
        if not isinstance(known[index], tuple):  # a label of its own, which the module numbers
            assert label == known[index]


def compare_counts(last: Any, d: int, side: Any, config: dict[str, Any]) -> None:
    """Shares of what is on one side of an edge; a number at the edge but for rounding counts either way."""
    weights = [r for r in side.before_clamp if r > 0]
    gaps = [
        row[i] - row[k]
        for i, (row, k) in enumerate(zip(side.rows, side.hardest, strict=True))
        if k is not None
    ]
    for field, numbers, edge in (
        ("clamped_share", weights, config["max_weight"]),
        ("accuracy", gaps, 0.0),
    ):
        got = float(getattr(last, field)[d])
        if not numbers:
            assert math.isnan(got), field
            continue
        least, most = (oracle.mean([x >= edge + slack for x in numbers]) for slack in (1e-12, -1e-12))
        assert least - 1e-12 <= got <= most + 1e-12, field


def compare_gradients(loss: UWMLLoss, features: Any, given: Any, at: Any, setting: Setting) -> None:
    if setting.config["base"] == "triplet":
        # of equally hard negatives exactly one gets the gradient
        for d, side in enumerate(at.sides):
            side.chosen = [None if k < 0 else k for k in loss.last.negative_index[d].tolist()]
    batch = setting.last
    image, text, scale, bias = central_differences(batch.image, batch.text, at.labels, at)
    assert_gradient(features[0].grad, image, "gradient of the image features")
    assert_gradient(features[1].grad, text, "gradient of the text features")
    if setting.logits == "learned":  # the logarithm of the scale is
        assert_gradient(loss.logit_scale.grad, scale * at.p["scale"], "gradient of the learned scale")
    if setting.logits == "tensor":
        assert_gradient(given["logit_scale"].grad, scale, "gradient of the given scale")
    if setting.config["base"] == "sigmoid" and setting.logits != "number":
        parameter = given["logit_bias"] if given else loss.logit_bias
        assert_gradient(parameter.grad, bias, "gradient of the bias")


def test_the_settings_cover_what_they_must() -> None:
    settings = [setting_of(seed) for seed in range(COUNT)]
    found = distribution(settings)
    print(*(f"{found[name]:4d} {name}" for name in sorted(found)), sep="\n")
    assert {name: found[name] for name, least in AT_LEAST.items() if found[name] < least} == {}
    # none is left out; few had to be moved
    assert len(settings) == COUNT
    assert found["moved off a kink"] < 0.07 * COUNT


def test_most_gradients_are_not_zero() -> None:
    settings = [setting_of(seed) for seed in range(0, COUNT, 4)]
    largest = []
    for setting in settings:
        at = setting.steps[-1]
        image, *_ = central_differences(setting.last.image, setting.last.text, at.labels, at)
        largest.append(float(np.abs(image).max()))
    assert sum(value > 1e-3 for value in largest) > 0.8 * len(settings)


def test_nan_passes_no_comparison() -> None:
    nan, wanted = math.nan, [1.0, None]
    assert_near([1.0, nan], wanted, "x", **NEAR)
    for got, want in (
        ([nan, nan], wanted),
        ([1.0, 2.0], wanted),
        ([1.0, nan], [1.0, nan]),
        ([1.0, 2.0], [1.0, nan]),
        ([1.0], wanted),
        (nan, nan),
        (math.inf, math.inf),
        (1.0 + 2e-9, 1.0),
    ):
        with pytest.raises(AssertionError, match=r"^x: "):
            assert_near(got, want, "x", **NEAR)
    for got, want in (([nan, 1.0], [0.5, 1.0]), ([0.5, 1.0], [nan, 1.0]), ([nan, nan], [nan, nan])):
        with pytest.raises(AssertionError, match=r"^x: "):
            assert_gradient(torch.tensor(got), np.array(want), "x")


def test_the_comparison_sees_a_wrong_gradient() -> None:
    want = np.array([1.0, 0.25])
    assert_gradient(torch.tensor([1.0, 0.25 + 9e-7], dtype=torch.float64), want, "x")
    with pytest.raises(AssertionError, match=r"^x: "):
        assert_gradient(torch.tensor([1.0, 0.25 + 2e-6], dtype=torch.float64), want, "x")


CHANGES = {
    "steepness_start": lambda kappa: kappa + 0.01,
    "center": lambda center: center + 0.001,
    "hard_floor": lambda floor: floor + 0.001,
    "max_weight": lambda clamp: clamp + 0.001,
    "smoothing": lambda smoothing: smoothing + 0.001,
    "temperature": lambda tau: 1.0001 * tau,
    "triplet_margin": lambda margin: margin + 1e-6,
    "quantile": lambda level: 0.999 * level,
    "hn_beta": lambda beta: beta + 1e-4,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_slightly_other_parameter_is_another_loss(name: str) -> None:
    """The comparison could not be passed with a parameter that is a little off."""
    seen = 0
    for seed in range(150):
        setting = setting_of(seed)
        other = Setting(
            setting.config | {name: CHANGES[name](setting.config[name])},
            setting.batches,
            setting.logits,
            setting.scale,
            setting.bias,
        )
        at, moved = setting.steps[-1], train(other)[-1]
        seen += abs(at.loss - moved.loss) > 1e-9 * abs(at.loss) + 1e-11
    assert seen >= 3


def test_the_oracle_disagrees_when_the_diagonal_alone_is_masked() -> None:
    setting = setting_of(next(s for s in range(COUNT) if "base infonce" in distribution([setting_of(s)])))
    batch, p = setting.last, dict(setting.config) | {"false_negative_margin": None}
    numbers = list(range(len(batch.image)))
    shared = [0, 1] + [0] * (len(numbers) - 2)
    right = oracle.step(batch.image, batch.text, shared, p).loss
    assert right != pytest.approx(oracle.step(batch.image, batch.text, numbers, p).loss)


def test_gradient_share_is_the_l1_share_of_the_similarity_gradient() -> None:
    from uwml_core.losses.candidates import both_directions
    from uwml_core.losses.functional import base_terms
    from uwml_core.losses.weigh import Weighing, anchor_weights, direction_losses

    torch.manual_seed(0)
    for base in ("infonce", "triplet"):
        loss = UWMLLoss(base=base, total_steps=10, triplet_margin=0.5)
        image, text = torch.randn(2, 7, 4, dtype=torch.float64)
        labels = torch.tensor([0, 1, 2, 0, 3, 3, 4])
        loss(image, text, labels=labels)
        similarity = torch.nn.functional.normalize(image) @ torch.nn.functional.normalize(text).T
        similarity.requires_grad_()
        sides = both_directions(similarity, labels[:, None] == labels, loss.config)
        terms = base_terms(sides, loss.config, 1 / 0.07)
        weight = anchor_weights(terms, Weighing(loss.config, loss.last.steepness)).weight
        for d, value in enumerate(direction_losses(terms.pair_loss, weight, "l2")):
            gradient = torch.autograd.grad(value, similarity, retain_graph=True)[0].abs().sum(1 - d)
            torch.testing.assert_close(loss.last.gradient_share[d], gradient / gradient.sum())
