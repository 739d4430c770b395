"""Relative weights, effective sample size and denominators: hand-written values and properties."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from uwml_core.weighting import (
    NORMALIZATIONS,
    combined_weight,
    effective_sample_size,
    loss_denominator,
    relative_weight,
)

weights = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1)), min_size=1, max_size=50)


def test_values_by_hand() -> None:
    relative = relative_weight(np.array([[1.0, 3.0, 0.0], [2.0, 2.0, 2.0]]), max_weight=1.25)
    assert relative.tolist() == [[0.5, 1.25, 0.0], [1.0, 1.0, 1.0]]
    assert effective_sample_size(np.array([3.0, 1.0, 0.0])) == 16 / 10
    r = np.array([3.0, 4.0, 0.0])
    values = {name: float(loss_denominator(r, name)) for name in NORMALIZATIONS}
    assert values == {"l2": pytest.approx(50**0.5), "sum": 7.0, "rss": 5.0, "none": 2.0}


def test_nothing_weighted_gives_zero_not_nan() -> None:
    none = np.zeros(3)
    assert relative_weight(none).tolist() == [0.0, 0.0, 0.0]
    assert effective_sample_size(none) == 0.0
    assert all(loss_denominator(none, name) == 1.0 for name in NORMALIZATIONS)


def test_unknown_normalization_is_named() -> None:
    with pytest.raises(ValueError, match="normalization='l3' is unknown; choose one of l2, sum, rss, none"):
        loss_denominator(np.ones(2), "l3")


@given(weights, st.floats(1, 10))
def test_relative_weight_never_exceeds_the_clamp(values: list[float], clamp: float) -> None:
    relative = relative_weight(np.array(values), clamp)
    assert (relative <= clamp).all()
    assert ((relative > 0) == (np.array(values) > 0)).all()


@given(weights)
def test_mean_of_an_unclamped_relative_weight_is_one(values: list[float]) -> None:
    relative = relative_weight(np.array(values), 1e9)
    if any(values):
        assert relative[np.array(values) > 0].mean() == pytest.approx(1.0)


@given(weights)
def test_effective_sample_size_lies_between_one_and_n(values: list[float]) -> None:
    n = sum(value > 0 for value in values)
    ess = float(effective_sample_size(np.array(values)))
    assert ess == 0.0 if n == 0 else 1 - 1e-9 <= ess <= n + 1e-9


@given(weights, st.floats(1e-3, 1e3))
def test_scale_of_the_weights_does_not_matter(values: list[float], factor: float) -> None:
    one, other = np.array(values), np.array(values) * factor
    np.testing.assert_allclose(relative_weight(one), relative_weight(other), rtol=1e-9)
    np.testing.assert_allclose(effective_sample_size(one), effective_sample_size(other), rtol=1e-9)


@given(weights, st.integers(2, 5))
def test_l2_does_not_change_when_the_batch_is_repeated(values: list[float], times: int) -> None:
    losses = np.linspace(0.1, 3.0, len(values))

    def total(w, losses, name):
        r = relative_weight(w)
        return (r * losses).sum() / loss_denominator(r, name)

    one, many = np.array(values), np.tile(values, times)
    repeated = np.tile(losses, times)
    for name in ("l2", "sum", "none"):
        np.testing.assert_allclose(
            total(one, losses, name), total(many, repeated, name), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(
        total(one, losses, "rss") * times**0.5, total(many, repeated, "rss"), rtol=1e-9, atol=1e-12
    )


@given(weights)
def test_l2_is_the_weighted_mean_times_the_root_of_the_effective_share(values: list[float]) -> None:
    r = relative_weight(np.array(values))
    n = (r > 0).sum()
    if n:
        losses = np.linspace(0.1, 3.0, len(values))
        want = (r * losses).sum() / r.sum() * np.sqrt(effective_sample_size(r) / n)
        assert (r * losses).sum() / loss_denominator(r, "l2") == pytest.approx(want)


@given(weights)
def test_numpy_and_torch_agree(values: list[float]) -> None:
    array = np.array([values, values[::-1]])
    tensor = torch.tensor(array)
    np.testing.assert_allclose(relative_weight(array), relative_weight(tensor).numpy(), rtol=1e-12)
    np.testing.assert_allclose(
        effective_sample_size(array), effective_sample_size(tensor).numpy(), rtol=1e-12
    )
    for name in NORMALIZATIONS:
        np.testing.assert_allclose(
            loss_denominator(array, name), loss_denominator(tensor, name).numpy(), rtol=1e-12
        )


def test_sum_of_the_three_weights_by_hand() -> None:
    pair = np.array([[1.0, 0.4, 0.0], [0.7, 0.0, 0.1]])
    got = combined_weight(pair, np.array([[0.6], [0.4]]), 0.5)
    np.testing.assert_allclose(got, [[0.7, 0.5, 0.0], [1.6 / 3, 0.0, 1.0 / 3]])
    np.testing.assert_array_equal(
        combined_weight(torch.tensor(pair), 0.6, 0.5), combined_weight(pair, 0.6, 0.5)
    )
