"""What each step of the lesson shows: small frames from the functions that the loss itself calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from uwml_core.analysis.curves import curve_weight
from uwml_core.weighting import UWMLConfig, combined_weight, replay_controller, stage_factor

# A constructed anchor: its positive, one hard negative and easy ones around 0, cosines.
POSITIVE, HARD, EASY_MEAN, EASY_SPREAD = 0.40, 0.30, 0.05, 0.08
COUNTS = (1, 3, 7, 15, 31, 63, 127, 255, 511, 1023)
MARGINS = np.linspace(-0.8, 0.6, 561)
_SEED = 0


def gradient_holders(temperature: float) -> pd.DataFrame:
    """Who holds the gradient of one anchor: its hard negative or the easy ones together.

    Similarities are constructed; shares are softmax probabilities among the negatives, which are the
    gradient by each negative's similarity, divided by their sum.

    Args:
        temperature: of the softmax, cosine units, above 0.

    Returns:
        ``[negatives, hard, easy]``: how many negatives there are, and both shares, which sum to 1.
    """
    easy = EASY_MEAN + EASY_SPREAD * np.random.default_rng(_SEED).standard_normal(max(COUNTS) - 1)
    hard = np.exp((HARD - POSITIVE) / temperature)
    rest = np.concatenate([[0.0], np.cumsum(np.exp((easy - POSITIVE) / temperature))])
    easy_part = rest[np.array(COUNTS) - 1]
    share = hard / (hard + easy_part)
    return pd.DataFrame({"negatives": COUNTS, "hard": share, "easy": 1.0 - share})


def weighted_share(histogram: pd.DataFrame, weights: pd.DataFrame) -> tuple[float, float]:
    """Share of the pairs that lie above half of the peak weight, and the weight that they carry.

    Args:
        histogram: ``[left, right, count]`` of margins.
        weights: frame of ``curves.curve_frame``, one moment.
    """
    inside = histogram[np.isfinite(histogram["left"]) & np.isfinite(histogram["right"])]
    middle, count = (inside["left"] + inside["right"]).to_numpy() / 2, inside["count"].to_numpy(np.float64)
    weight = np.interp(middle, weights["margin"], weights["weight"])
    chosen = weight >= weights["weight"].max() / 2
    if not count.sum():
        return float("nan"), float("nan")
    return float(count[chosen].sum() / count.sum()), float(
        (count * weight)[chosen].sum() / (count * weight).sum()
    )


def direction_weights(sensitivity: float) -> pd.DataFrame:
    """Weight of both directions once the controller has come to rest, by how far one lags.

    Args:
        sensitivity: of the controller, cosine units.

    Returns:
        ``[behind, leading, lagging]``: difference of the gaps in cosines, and both weights.
    """
    behind = np.linspace(0.0, 0.3, 61)
    calm = replace(UWMLConfig(), sensitivity=sensitivity, window=1, update_every=1, smoothing=0.0)
    settled = [replay_controller(np.array([[0.3, 0.3 - lag]]), calm)[-1] for lag in behind]
    weights = np.array(settled)
    return pd.DataFrame({"behind": behind, "leading": weights[:, 0], "lagging": weights[:, 1]})


def controller_run(gaps: np.ndarray, window: int) -> pd.DataFrame:
    """The controller's weights on logged gaps, with another window.

    Args:
        gaps: float64 ``[n, 2]``, cosine units.
        window: gaps per mean, steps.

    Returns:
        ``[step, first, second]``.
    """
    weights = replay_controller(gaps, replace(UWMLConfig(), window=window, update_every=1, smoothing=0.0))
    return pd.DataFrame({"step": np.arange(len(gaps)), "first": weights[:, 0], "second": weights[:, 1]})


def combinations(lagging_weight: float) -> pd.DataFrame:
    """Four pairs and what multiplying and adding make of their factors, at the end of training.

    Args:
        lagging_weight: of the lagging direction, in [0.5, 0.9].

    Returns:
        ``[pair, direction, multiply, add]``; the weights of each way sum to 1.
    """
    config = UWMLConfig()
    margin = np.array([config.center, 0.6, config.center, 0.6])
    of_direction = np.array([lagging_weight, lagging_weight, 1 - lagging_weight, 1 - lagging_weight])
    pair = curve_weight(margin, config.steepness_end, config)
    stage = stage_factor(config.steepness_end, config.steepness_start, config.steepness_end)
    multiplied, added = pair * of_direction * stage, combined_weight(pair, of_direction, stage)
    return pd.DataFrame(
        {
            "pair": ["informative", "easy"] * 2,
            "direction": ["lagging"] * 2 + ["leading"] * 2,
            "multiply": multiplied / multiplied.sum(),
            "add": added / added.sum(),
        }
    )


def forces(temperature: float) -> pd.DataFrame:
    """What pulls a margin up, with weights that are detached and with weights that are not.

    The loss of a pair is r(m) log(1 + e^(-m / t)). Detached, r is a number and the force is
    r(m) / (t (1 + e^(m / t))); otherwise the loss falls as well where r does, and the model may push a
    pair to where it counts less.

    Args:
        temperature: t, cosine units.

    Returns:
        ``[margin, detached, attached]``: minus the derivative by the margin, per cosine; above 0 the margin
        grows.
    """
    config = UWMLConfig()
    weight = curve_weight(MARGINS, config.steepness_end, config)
    base = np.logaddexp(0.0, -MARGINS / temperature)
    slope = 1.0 / (temperature * (1.0 + np.exp(MARGINS / temperature)))
    detached = weight * slope
    attached = detached - np.gradient(weight, MARGINS) * base
    return pd.DataFrame({"margin": MARGINS, "detached": detached, "attached": attached})
