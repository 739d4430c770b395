"""The numbers of the lesson, against loops written out and literals."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.curves import curve_frame
from uwml_core.analysis.learn import lessons
from uwml_core.weighting import UWMLConfig


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.3])
def test_gradient_shares_are_softmax_probabilities(temperature):
    frame = lessons.gradient_holders(temperature)
    easy = 0.05 + 0.08 * np.random.default_rng(0).standard_normal(1022)
    for row in frame.itertuples():
        hard = math.exp((0.30 - 0.40) / temperature)
        rest = sum(math.exp((s - 0.40) / temperature) for s in easy[: row.negatives - 1])
        assert row.hard == pytest.approx(hard / (hard + rest), rel=1e-9)
        assert row.hard + row.easy == pytest.approx(1)
    assert frame["hard"].is_monotonic_decreasing


def test_the_curve_is_the_losses():
    frame = curve_frame(UWMLConfig(), [1.0], lessons.MARGINS)
    assert np.interp(0.15, frame["margin"], frame["weight"]) == pytest.approx(1.0)
    z = 20.0 * (0.6 - 0.15)
    assert frame["weight"].iloc[-1] == pytest.approx(1 / math.cosh(z / 2) ** 2)


def test_the_share_of_weight_counts_histogram_bins():
    histogram = pd.DataFrame(
        {"left": [-0.4, 0.1, 0.5, -np.inf], "right": [-0.3, 0.2, 0.6, -1.0], "count": [10, 30, 60, 5]}
    )
    weights = pd.DataFrame({"margin": [-0.4, 0.1, 0.15, 0.2, 0.6], "weight": [0.2, 1.0, 1.0, 1.0, 0.0]})
    pairs, weight = lessons.weighted_share(histogram, weights)
    assert pairs == pytest.approx(0.3)
    low = np.interp([-0.35, 0.55], weights["margin"], weights["weight"])
    assert weight == pytest.approx(30 / (30 + 10 * low[0] + 60 * low[1]))
    assert all(math.isnan(v) for v in lessons.weighted_share(histogram.iloc[:0], weights))


def test_direction_weights_are_a_softmax_within_bounds():
    frame = lessons.direction_weights(0.05)
    at = frame.set_index("behind")
    assert at.loc[0.05, "lagging"] == pytest.approx(math.e / (1 + math.e))
    assert at.loc[0.3, "lagging"] == pytest.approx(0.9)
    assert (frame["leading"] + frame["lagging"]).to_numpy() == pytest.approx(1)


def test_a_long_window_is_calmer_than_a_short_one():
    gaps = np.random.default_rng(0).normal(0.2, 0.05, size=(300, 2))
    short, long = (lessons.controller_run(gaps, window)["first"].diff().abs().sum() for window in (1, 200))
    assert long < short / 5
    assert lessons.controller_run(np.zeros((0, 2)), 5).empty


def test_multiplying_keeps_an_easy_pair_light():
    frame = lessons.combinations(0.7).set_index(["pair", "direction"])
    easy = frame.loc[("easy", "lagging")]
    pair = 1 / math.cosh(20 * (0.6 - 0.15) / 2) ** 2
    total = (1 + pair) * 0.7 + (1 + pair) * 0.3
    assert easy["multiply"] == pytest.approx(0.7 * pair / total)
    added = {(p, d): (w + x + 1) / 3 for p, w in (("i", 1), ("e", pair)) for d, x in (("l", 0.7), ("r", 0.3))}
    assert easy["add"] == pytest.approx(added["e", "l"] / sum(added.values()))
    assert frame[["multiply", "add"]].sum().to_numpy() == pytest.approx(1)


def test_forces_are_derivatives_of_the_loss():
    t, step = 0.2, 1e-6
    frame = lessons.forces(t).set_index("margin")

    def weight(m: float) -> float:
        return 1 / math.cosh(20 * (m - 0.15) / 2) ** 2

    def base(m: float) -> float:
        return math.log1p(math.exp(-m / t))

    for m in (-0.3, -0.1, 0.05, 0.3):
        slope = (base(m + step) - base(m - step)) / (2 * step)
        whole = (weight(m + step) * base(m + step) - weight(m - step) * base(m - step)) / (2 * step)
        near = frame.iloc[np.abs(frame.index - m).argmin()]
        assert near["detached"] == pytest.approx(-weight(m) * slope, rel=1e-6)
        assert near["attached"] == pytest.approx(-whole, rel=2e-2, abs=2e-2)
    assert (frame["detached"] > 0).all()
    assert lessons.forces(0.3)["attached"].min() < 0
