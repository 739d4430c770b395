"""What holds for every batch and every configuration: symmetries, scale, bounds, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.support.near import assert_near
from uwml_core.losses import UWMLLoss
from uwml_core.weighting import UWMLConfig, effective_sample_size

NEAR = {"relative": 1e-9, "absolute": 1e-11}
OWN_WEIGHTS = ("wei2020_max", "wei2020_calibrated")


def fitting(chosen: dict[str, Any]) -> dict[str, Any]:
    """The choice without what its base loss excludes."""
    if chosen["base"] != "triplet":
        chosen = chosen | {"over_negatives": "hardest"}
    if chosen["base"] in OWN_WEIGHTS:
        own = {"curve": "uniform", "direction_mode": "off", "margin_scale": "none", "combination": "multiply"}
        chosen = chosen | own
    return chosen


configurations = st.fixed_dictionaries(
    {
        "base": st.sampled_from(["infonce", "triplet", "sigmoid", "dcl", "hn_nce", *OWN_WEIGHTS]),
        "over_negatives": st.sampled_from(["hardest", "sum"]),
        "negative_statistic": st.sampled_from(["hardest", "topk_mean", "quantile", "mean"]),
        "margin_scale": st.sampled_from(["none", "negative_std"]),
        "false_negative_margin": st.sampled_from([None, 0.1]),
        "curve": st.sampled_from(["bell", "uniform", "hard"]),
        "center": st.floats(-0.5, 0.5),
        "steepness_start": st.floats(0, 50),
        "hard_floor": st.sampled_from([0.0, 0.3, 0.9]),
        "max_weight": st.sampled_from([1.0, 1.3, 2.0]),
        "normalization": st.sampled_from(["l2", "sum", "rss", "none"]),
        "combination": st.sampled_from(["multiply", "add"]),
        "direction_mode": st.sampled_from(["adaptive", "fixed", "off"]),
        "direction_fixed": st.sampled_from([0.25, 0.5, 1.0]),
        "triplet_margin": st.sampled_from([0.3, 1.0]),
        "memory_batches": st.sampled_from([0, 1]),
        "update_every": st.just(1),
        "smoothing": st.just(0.2),
        "temperature": st.sampled_from([0.02, 0.07, 0.5]),
    }
).map(fitting)
seeds = st.integers(0, 2**31)
few = examples(max_examples=40)


class Training:
    """A few batches with labels, the same for every loss that is trained on them."""

    def __init__(self, seed: int, steps: int = 3) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.batches = []
        for _ in range(steps):
            size = int(torch.randint(3, 9, (1,), generator=generator))
            image, noise = torch.randn(2, size, 4, generator=generator, dtype=torch.float64)
            labels = torch.randint(size, (size,), generator=generator)
            labels[:2] = torch.tensor([0, 1])
            self.batches.append((image, image + 0.8 * noise, labels))

    def run(self, config: dict[str, Any], change=lambda *batch: batch) -> Any:
        """The loss, its diagnostics and its gradients of the last of the batches, each changed before."""
        loss = UWMLLoss(config)
        try:
            for batch in self.batches:
                image, text, labels = change(*batch)
                image, text = image.clone().requires_grad_(), text.clone().requires_grad_()
                value = loss(image, text, labels=labels, progress=0.0)
        except ValueError as error:
            assume("leaves no anchor of this batch a negative" not in str(error))
            raise
        value.backward()
        return value.detach(), loss.last, image.grad, text.grad


@given(configurations, seeds)
@few
def test_order_of_the_batch_does_not_matter(config: dict, seed: int) -> None:
    def order(size: int) -> torch.Tensor:
        return torch.randperm(size, generator=torch.Generator().manual_seed(seed))

    training = Training(seed)
    value, last, *gradients = training.run(config)
    moved_value, moved, *moved_gradients = training.run(
        config, lambda *batch: [x[order(len(x))] for x in batch]
    )
    assert_near(moved_value, value, "loss", **NEAR)
    places = order(len(gradients[0]))
    for field in ("weight", "pair_weight", "margin", "pair_loss", "gradient_share", "label"):
        got, want = getattr(moved, field), getattr(last, field)[:, places]
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-11, equal_nan=True)
    for got, want in zip(moved_gradients, gradients, strict=True):
        torch.testing.assert_close(got, want[places], rtol=1e-8, atol=1e-10)


@given(configurations, seeds)
@few
def test_swapping_the_modalities_swaps_the_directions(config: dict, seed: int) -> None:
    training = Training(seed)
    value, last, image, text = training.run(config)
    other = {**config, "direction_fixed": 1 - config["direction_fixed"], "modalities": ("text", "image")}
    swapped_value, swapped, *gradients = training.run(
        other, lambda image, text, labels: (text, image, labels)
    )
    assert_near(swapped_value, value, "loss", **NEAR)
    assert swapped.directions == last.directions[::-1]
    for field in ("weight", "margin", "pair_loss", "direction_weight", "direction_loss", "gap", "ess"):
        got, want = getattr(swapped, field), getattr(last, field).flip(0)
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-11, equal_nan=True)
    for got, want in zip(gradients, (text, image), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-10)


@given(configurations, seeds, st.sampled_from([1e-6, 1.0, 1e6]))
@few
def test_length_of_a_row_does_not_matter(config: dict, seed: int, size: float) -> None:
    def factors(image: torch.Tensor) -> torch.Tensor:
        numbers = torch.rand(2, len(image), 1, generator=torch.Generator().manual_seed(seed))
        return (size * (0.1 + numbers)).double()

    training = Training(seed)
    value, last, *gradients = training.run(config)
    scaled_value, scaled, *scaled_gradients = training.run(
        config, lambda image, text, labels: (*(factors(image) * torch.stack((image, text))), labels)
    )
    assert_near(scaled_value, value, "loss", **NEAR)
    torch.testing.assert_close(scaled.weight, last.weight, rtol=1e-9, atol=1e-11, equal_nan=True)
    for got, want, factor in zip(scaled_gradients, gradients, factors(gradients[0]), strict=True):
        torch.testing.assert_close(factor * got, want, rtol=1e-8, atol=1e-10)


@given(configurations, seeds, st.integers(2, 4))
@few
def test_a_batch_of_copies_has_the_loss_of_the_batch(config: dict, seed: int, times: int) -> None:
    """Copies share their labels, so each anchor has the same negatives, only each of them several times."""
    config = config | {"memory_batches": 0, "over_negatives": "hardest"}
    config |= {"negative_statistic": "mean"} if config["negative_statistic"] != "hardest" else {}
    if config["base"] not in OWN_WEIGHTS:  # a softmax and a sum also count the negatives
        config["base"] = "triplet"
    training = Training(seed)
    value, last, *gradients = training.run(config)
    many_value, many, *many_gradients = training.run(
        config, lambda *batch: [torch.cat([x] * times) for x in batch]
    )
    own = config["base"] in OWN_WEIGHTS
    growth = times**0.5 if config["normalization"] == "rss" and not own else 1.0
    assert_near(many_value, growth * value, "loss", **NEAR)
    torch.testing.assert_close(many.weight, last.weight.repeat(1, times), rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(many.ess, times * last.ess)
    for got, want in zip(many_gradients, gradients, strict=True):
        torch.testing.assert_close(
            got.reshape(times, *want.shape).sum(0), growth * want, rtol=1e-8, atol=1e-10
        )


@given(configurations, seeds)
@few
def test_weights_and_effective_sample_size_keep_their_bounds(config: dict, seed: int) -> None:
    _, last, *_ = Training(seed).run(config)
    loss_config = UWMLConfig(**config)
    alone = last.negative_index < 0
    floor = (last.pair_weight >= 1e-6) & (last.pair_weight <= 1 + 1e-15)
    assert (floor | alone).all()
    assert (last.pair_weight[alone] == 0).all()
    assert (last.weight[alone] == 0).all()
    assert torch.equal(torch.isnan(last.margin), alone)
    if not loss_config.weighs_pairs:
        assert (last.weight <= config["max_weight"]).all()
        anchors = (~alone).sum(1)
        assert ((last.ess >= 1 - 1e-9) & (last.ess <= anchors + 1e-9) | (anchors == 0)).all()
        torch.testing.assert_close(last.ess, effective_sample_size(last.weight), rtol=1e-9, atol=0.0)


@given(configurations, seeds)
@few
def test_equal_weights_are_the_limit_of_a_flat_curve(config: dict, seed: int) -> None:
    assume(config["base"] not in OWN_WEIGHTS)
    training = Training(seed)
    config = config | {"combination": "multiply", "steepness_end": 0.0}
    want, uniform, *_ = training.run(config | {"curve": "uniform"})
    for curve in ("bell", "hard"):
        value, last, *_ = training.run(config | {"curve": curve, "steepness_start": 0.0})
        assert_near(value, want, curve, **NEAR)
        torch.testing.assert_close(last.weight, uniform.weight, rtol=1e-12, atol=1e-12, equal_nan=True)
        near, *_ = training.run(config | {"curve": curve, "steepness_start": 1e-4})
        assert_near(near, want, curve, relative=1e-3, absolute=1e-3)


@given(seeds, st.sampled_from(["bell", "hard"]), st.floats(0.5, 30))
@few
def test_l2_speaks_softer_the_fewer_pairs_carry_the_weight(seed: int, curve: str, kappa: float) -> None:
    config = {"curve": curve, "steepness_start": kappa, "max_weight": 1e6, "direction_mode": "off"}
    training = Training(seed, steps=1)
    _, last, *_ = training.run(config)
    _, mean, *_ = training.run(config | {"normalization": "sum"})
    anchors = (last.negative_index >= 0).sum(1)
    want = mean.direction_loss * (last.ess / anchors).sqrt()
    np.testing.assert_allclose(last.direction_loss, want, rtol=1e-12)
    assert (last.direction_loss <= mean.direction_loss + 1e-12).all()


def test_properties_are_tried_on_losses_that_are_not_zero() -> None:
    values = []
    for base in ("infonce", "triplet", "sigmoid", "dcl", "hn_nce", *OWN_WEIGHTS):
        values.append(float(Training(7).run({"base": base})[0].abs()))
    assert min(values) > 1e-3


@pytest.mark.parametrize("normalization", ["l2", "sum", "none", "rss"])
def test_only_the_literal_normalization_grows_with_the_batch(normalization: str) -> None:
    training = Training(3, steps=1)
    config = {"base": "triplet", "normalization": normalization, "direction_mode": "off"}
    one, *_ = training.run(config)
    four, *_ = training.run(config, lambda *batch: [torch.cat([x] * 4) for x in batch])
    assert float(four / one) == pytest.approx(2.0 if normalization == "rss" else 1.0)
