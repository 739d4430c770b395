"""Random settings on clean pairs: a weighting that gains, against InfoNCE that is tuned as long.

``DRAWS`` settings each, chosen among by the validation split.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.study.configuration import Configuration
from benchmarks.study.methods import INFONCE, UWML, Settings, configuration
from benchmarks.study.paired import Results

DRAWS = 40
_SEED = {INFONCE: 1, UWML: 2}


def searched(name: str, modality: str) -> list[Configuration]:
    """The configurations that a method is chosen from, the one it has without a search first.

    Args:
        name: ``INFONCE`` or ``UWML``.
        modality: which set.

    Returns:
        ``DRAWS`` configurations; the learning rate and the temperature are drawn for both methods, the
        weighting for the other one besides.
    """
    rng = np.random.default_rng(_SEED[name])
    drawn = [_drawn(rng, _weighting if name == UWML else None) for _ in range(DRAWS - 1)]
    return [configuration(name, modality, 0.0, more, purpose="tune") for more in ({}, *drawn)]


def found(results: Results, name: str, modality: str) -> Configuration:
    """The one that is best on the validation split, for the test.

    Raises:
        ValueError: while results are lacking.
    """
    best = results.best(searched(name, modality))
    return configuration(name, modality, 0.0, best.settings)


def _drawn(rng: np.random.Generator, more: Callable[[np.random.Generator], Settings] | None) -> Settings:
    settings = {
        "train.learning_rate": _log_uniform(rng, 5e-4, 1e-2),
        "loss.temperature": _log_uniform(rng, 0.03, 0.3),
    }
    return settings if more is None else {**settings, **more(rng)}


def _weighting(rng: np.random.Generator) -> Settings:
    scaled = rng.random() < 0.25
    # one standard deviation of the negatives is about a tenth here
    unit = 10.0 if scaled else 1.0
    return {
        "loss.margin_scale": "negative_std" if scaled else "none",
        "loss.center": round(unit * float(rng.uniform(-0.1, 0.5)), 3),
        "loss.steepness_start": round(float(rng.uniform(0.0, 12.0)) / unit, 3),
        "loss.steepness_end": _log_uniform(rng, 2.0 / unit, 40.0 / unit),
        "loss.hard_floor": float(rng.choice([0.0, 0.1, 0.3, 0.6])),
        "loss.max_weight": float(rng.choice([2.0, 4.0, 10.0])),
        "loss.sensitivity": float(rng.choice([0.02, 0.05, 0.1])),
    }


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")
