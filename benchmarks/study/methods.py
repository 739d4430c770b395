"""The methods that are compared, and the settings that each of them is tuned over.

Every method has the same budget on the validation split: ``len(GRID[name])`` settings and two seeds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.study.configuration import Configuration

Settings = Mapping[str, Any]

TUNING_SEEDS = (100, 101)
SEEDS = tuple(range(10))
NOISES = (0.0, 0.2, 0.4)
# Share of swapped captions at which a test's settings were chosen: clean for clean, 20 % for the others.
TUNED_AT = {0.0: 0.0, 0.2: 0.2, 0.4: 0.2}
# About as many steps for both sets.
BASE: Mapping[str, Settings] = {
    "image": {"train.epochs": 12, "train.learning_rate": 3e-3},
    "video": {"train.epochs": 20, "train.learning_rate": 3e-3},
}
# The weighting that the study began with, with the floor and the mild bell of the first defaults.
FLOORED_WEIGHTING: Settings = {
    "loss.center": 0.15,
    "loss.steepness_start": 2.0,
    "loss.steepness_end": 12.0,
    "loss.hard_floor": 0.3,
    "loss.max_weight": 2.0,
    "loss.temperature": 0.07,
}


@dataclass(frozen=True, kw_only=True)
class Method:
    """A loss with what belongs to it.

    Attributes:
        preset: named loss.
        settings: laid over it.
        warmup: preset of the first fifth of the steps; None without.
        grid: settings to choose from; empty for a method that is taken as it is.
    """

    preset: str
    settings: Settings = dataclasses.field(default_factory=dict)
    warmup: str | None = None
    grid: tuple[Settings, ...] = ()


def weighted(center: float, start: float, end: float, **more: float) -> Settings:
    """A bell without floor: center, steepness at the start and at the end, and other fields of the loss."""
    named = {f"loss.{name}": value for name, value in more.items()}
    return {
        "loss.hard_floor": 0.0,
        "loss.center": center,
        "loss.steepness_start": start,
        "loss.steepness_end": end,
        **named,
    }


def _product(
    first: str, values: tuple[float, ...], second: str, others: tuple[float, ...]
) -> tuple[Settings, ...]:
    return tuple({first: value, second: other} for value in values for other in others)


# The defaults, written out: these results stay what they are if defaults change.
WEIGHTING: Settings = {**FLOORED_WEIGHTING, **weighted(0.15, 2.0, 20.0)}
_RATE = "train.learning_rate"
_RATES = (1e-3, 3e-3)
_TEMPERATURE_GRID = _product("loss.temperature", (0.07, 0.2), _RATE, _RATES)
_HINGE_GRID = _product("loss.triplet_margin", (0.1, 0.2), _RATE, _RATES)

INFONCE, UWML, TUNED_UWML, TUNED_INFONCE = "InfoNCE", "UWML", "UWML tuned", "InfoNCE tuned"
FLOORED, NOISY = "UWML, floor 0.3", "UWML, noisy_pairs"
METHODS: Mapping[str, Method] = {
    INFONCE: Method(preset="infonce", settings={"loss.temperature": 0.07}),
    FLOORED: Method(preset="uwml", settings=FLOORED_WEIGHTING),
    UWML: Method(preset="uwml", settings=WEIGHTING),
    NOISY: Method(preset="uwml", settings={**WEIGHTING, **weighted(0.15, 16.0, 24.0)}),
    TUNED_INFONCE: Method(preset="infonce", grid=_TEMPERATURE_GRID),
    TUNED_UWML: Method(
        preset="uwml",
        settings=WEIGHTING,
        grid=(
            weighted(0.15, 16.0, 24.0),
            weighted(0.3, 2.0, 20.0),
            weighted(0.3, 12.0, 12.0),
            weighted(0.3, 12.0, 12.0, temperature=0.1),
        ),
    ),
    "hard weighting": Method(preset="hard", grid=_TEMPERATURE_GRID),
    "HN-NCE": Method(
        preset="hn_nce", grid=_product("loss.temperature", (0.07, 0.2), "loss.hn_beta", (0.25, 0.5))
    ),
    "SigLIP": Method(preset="siglip", grid=tuple({_RATE: rate} for rate in (3e-4, 1e-3, 3e-3, 1e-2))),
    "VSE++ after VSE0": Method(preset="vsepp", warmup="vse0", grid=_HINGE_GRID),
    "Wei calibrated": Method(preset="wei2020_calibrated", grid=_HINGE_GRID),
}


def configuration(
    name: str,
    modality: str,
    noise: float,
    more: Settings,
    *,
    encoder: str = "frozen",
    purpose: str = "test",
    warmup: str | None = None,
) -> Configuration:
    """A method with further settings, after a warm-up of its own where none is given."""
    method = METHODS[name]
    return Configuration(
        modality=modality,
        encoder=encoder,
        noise=noise,
        method=name,
        preset=method.preset,
        settings={**BASE[modality], **method.settings, **more},
        warmup=warmup or method.warmup,
        purpose=purpose,
    )


def tuning(name: str, modality: str, noise: float) -> list[Configuration]:
    """The configurations that a method is chosen from."""
    return [configuration(name, modality, noise, more, purpose="tune") for more in METHODS[name].grid]
