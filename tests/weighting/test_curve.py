"""The difficulty curve and the stage: hand-written values, properties, NumPy equal to torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from uwml_core.weighting import CURVES, WEIGHT_FLOOR, difficulty_weight, stage_factor, stage_steepness

margins = st.lists(st.floats(-2, 2), min_size=1, max_size=40)
settings = st.fixed_dictionaries(
    {
        "curve": st.sampled_from(CURVES),
        "center": st.floats(-2, 2),
        "steepness": st.floats(0, 500),
        "hard_floor": st.floats(0, 0.99),
    }
)


def test_values_by_hand() -> None:
    # kappa (m - c) = ln 2: sigma = 2/3, 4 * 2/3 * 1/3 = 8/9; below the center h + (1 - h) 8/9
    offset = math.log(2) / 10
    margin = np.array([0.15, 0.15 + offset, 0.15 - offset])
    bell = difficulty_weight(margin, center=0.15, steepness=10.0, hard_floor=0.25)
    np.testing.assert_allclose(bell, [1.0, 8 / 9, 0.25 + 0.75 * 8 / 9])
    hard = difficulty_weight(margin, curve="hard", center=0.15, steepness=10.0)
    np.testing.assert_allclose(hard, [1 / 2, 1 / 3, 2 / 3])
    assert difficulty_weight(margin, curve="uniform").tolist() == [1.0, 1.0, 1.0]


def test_nan_margin_has_weight_zero_on_every_curve() -> None:
    for curve in CURVES:
        assert difficulty_weight(np.array([np.nan, 0.1]), curve=curve)[0] == 0.0


def test_unknown_curve_is_named() -> None:
    with pytest.raises(ValueError, match="curve='gauss' is unknown; choose one of bell, uniform, hard"):
        difficulty_weight(np.zeros(1), curve="gauss")


@given(margins, settings)
def test_weights_stay_between_floor_and_one(values: list[float], kwargs: dict) -> None:
    weight = difficulty_weight(np.array(values), **kwargs)
    # 4t / (1 + t)^2 may round one digit above its peak
    assert ((weight >= WEIGHT_FLOOR) & (weight <= 1.0 + 1e-15)).all()


@given(margins, settings)
def test_numpy_and_torch_agree(values: list[float], kwargs: dict) -> None:
    for dtype in ("float64", "float32"):
        array = np.array(values, dtype=dtype)
        ours, other = difficulty_weight(array, **kwargs), difficulty_weight(torch.tensor(array), **kwargs)
        assert ours.dtype == array.dtype
        assert isinstance(other, torch.Tensor)
        tolerance = 1e-12 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(ours, other.numpy(), rtol=tolerance, atol=tolerance * 1e-3)


@given(st.floats(-1, 1), st.floats(0.1, 200), st.floats(0, 0.9))
def test_bell_is_continuous_with_zero_slope_at_the_center(
    center: float, steepness: float, floor: float
) -> None:
    step = 1e-3 / steepness
    around = difficulty_weight(
        np.array([center - step, center, center + step]),
        center=center,
        steepness=steepness,
        hard_floor=floor,
    )
    assert around[1] == 1.0
    np.testing.assert_allclose(around, 1.0, atol=1e-6)


@given(st.floats(-2, 2), st.floats(-2, 2), settings)
def test_weight_is_continuous_everywhere(one: float, other: float, kwargs: dict) -> None:
    # sech^2(z / 2) is steepest at 4 / sqrt(27) / 2 per unit of z, sigma(-z) at 1 / 4
    weight = difficulty_weight(np.array([one, other]), **kwargs)
    assert abs(weight[0] - weight[1]) <= 2 / math.sqrt(27) * kwargs["steepness"] * abs(one - other) + 1e-12


@given(st.floats(-2, 2), st.floats(0, 4), st.floats(0, 4), st.floats(0, 500), st.floats(0, 0.99))
def test_bell_rises_up_to_the_center_and_falls_behind_it(
    center: float, near: float, far: float, steepness: float, floor: float
) -> None:
    near, far = sorted((near, far))
    for sign in (1.0, -1.0):
        margin = center + sign * np.array([0.0, near, far])
        weight = difficulty_weight(margin, center=center, steepness=steepness, hard_floor=floor)
        assert weight[0] + 1e-15 >= weight[1] >= weight[2] - 1e-15
        below = margin < center
        assert (weight[below] >= floor).all()


@given(st.floats(0.01, 4), st.floats(1, 500), st.floats(0, 0.99))
def test_a_misaligned_pair_never_gets_the_highest_weight(
    below: float, steepness: float, floor: float
) -> None:
    weight = difficulty_weight(np.array([-below]), center=0.0, steepness=steepness, hard_floor=floor)
    # h + (1 - h) sech^2(z / 2), and sech^2(z / 2) < 1 - z^2 / 4 + z^4 / 24 up to z = 1
    z = min(steepness * below, 1.0)
    assert max(floor, 1e-6) <= weight[0] <= floor + (1 - floor) * (1 - z**2 / 4 + z**4 / 24) + 1e-12


@given(margins, st.floats(0, 1e-3), st.floats(-2, 2), st.floats(0, 0.99))
def test_a_flat_curve_is_uniform(values: list[float], steepness: float, center: float, floor: float) -> None:
    margin = np.array(values)
    bell = difficulty_weight(margin, center=center, steepness=steepness, hard_floor=floor)
    # sech^2(z / 2) > 1 - z^2 / 4 with |m - c| <= 4
    assert (bell >= 1 - 4 * steepness**2 - 1e-15).all()
    hard = difficulty_weight(margin, curve="hard", center=center, steepness=steepness)
    np.testing.assert_allclose(hard, 0.5, atol=steepness)


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(0, 200))
def test_hard_curve_never_rises(low: float, high: float, steepness: float) -> None:
    low, high = sorted((low, high))
    weight = difficulty_weight(np.array([low, high]), curve="hard", steepness=steepness)
    assert weight[0] >= weight[1]


def test_zero_steepness_is_uniform_for_the_bell() -> None:
    assert difficulty_weight(np.linspace(-2, 2, 9), steepness=0.0).tolist() == [1.0] * 9


def test_steepness_may_differ_per_row() -> None:
    margin, steepness = np.array([0.3, 0.3]), np.array([2.0, 12.0])
    both = difficulty_weight(margin, steepness=steepness)
    each = [float(difficulty_weight(np.array([0.3]), steepness=k)[0]) for k in (2.0, 12.0)]
    np.testing.assert_allclose(both, each)


@given(st.floats(0, 1), st.floats(0, 50), st.floats(0, 50))
def test_steepness_stays_between_its_ends(progress: float, start: float, end: float) -> None:
    value = stage_steepness(progress, start, end)
    assert min(start, end) - 1e-9 <= value <= max(start, end) + 1e-9
    assert 0.0 <= stage_factor(value, start, end) <= 1.0 + 1e-9


def test_steepness_is_flat_at_both_ends_and_works_on_arrays() -> None:
    t = np.array([0.0, 1e-4, 0.25, 1 - 1e-4, 1.0])
    values = stage_steepness(t, 2.0, 12.0)
    np.testing.assert_allclose(values, [2.0, 2.0, 2 + 5 * (1 - math.sqrt(0.5)), 12.0, 12.0], atol=1e-6)
    assert [stage_steepness(float(x), 2.0, 12.0) for x in t] == values.tolist()
    assert stage_factor(0.0, 0.0, 0.0) == 1.0
