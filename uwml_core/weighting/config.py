"""Parameters of the loss: names, defaults, ranges and meaning, once for loss, YAML and sliders."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uwml_core.i18n import mark
from uwml_core.weighting.curve import CURVES
from uwml_core.weighting.direction import MODES, direction_names
from uwml_core.weighting.normalization import NORMALIZATIONS


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """Range and meaning of one number, or the choices of one name.

    Attributes:
        meaning: one sentence, with the unit; English, marked for translation.
        low, high: bounds, None where open-ended.
        low_open, high_open: True where the bound itself is not allowed.
        choices: allowed names, for parameters that are names.
    """

    meaning: str
    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False
    choices: tuple[str, ...] = ()

    def expectation(self) -> str:
        """What is allowed, in words for an error message."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        low = "" if self.low is None else f"{'>' if self.low_open else '>='} {self.low:g}"
        high = "" if self.high is None else f"{'<' if self.high_open else '<='} {self.high:g}"
        return " and ".join(part for part in (low, high) if part)

    def allows(self, value: Any) -> bool:
        """Whether a value is inside; a bool or a non-finite number never is."""
        if self.choices:
            return value in self.choices
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return False
        above = self.low is None or (value > self.low if self.low_open else value >= self.low)
        below = self.high is None or (value < self.high if self.high_open else value <= self.high)
        return above and below


PARAMETERS: Mapping[str, Parameter] = {
    "base": Parameter(meaning=mark("base loss"), choices=("infonce", "triplet")),
    "curve": Parameter(meaning=mark("shape of the pair weight over the margin"), choices=CURVES),
    "center": Parameter(
        meaning=mark("margin that gets the highest weight, cosine units"), low=-2.0, high=2.0
    ),
    "steepness_start": Parameter(meaning=mark("steepness of the curve at the first step"), low=0.0),
    "steepness_end": Parameter(meaning=mark("steepness of the curve at the last step"), low=0.0),
    "hard_floor": Parameter(
        meaning=mark("weight that a badly misaligned pair keeps"), low=0.0, high=1.0, high_open=True
    ),
    "max_weight": Parameter(meaning=mark("clamp on the relative weight"), low=1.0),
    "normalization": Parameter(meaning=mark("what the weighted sum is divided by"), choices=NORMALIZATIONS),
    "direction_mode": Parameter(meaning=mark("how the directions are weighted"), choices=MODES),
    "direction_fixed": Parameter(meaning=mark("fixed weight of the first direction"), low=0.0, high=1.0),
    "window": Parameter(meaning=mark("gaps per mean, steps"), low=1),
    "update_every": Parameter(meaning=mark("steps between updates of the direction weights"), low=1),
    "smoothing": Parameter(
        meaning=mark("share of the old direction weight kept at an update"), low=0.0, high=1.0, high_open=True
    ),
    "sensitivity": Parameter(
        meaning=mark("gap difference that moves the weights by a factor e, cosine units"),
        low=0.0,
        low_open=True,
    ),
    "min_weight": Parameter(
        meaning=mark("smallest weight of a direction"), low=0.0, high=0.5, high_open=True
    ),
    "temperature": Parameter(
        meaning=mark("temperature of the softmax, cosine units"), low=0.0, low_open=True
    ),
    "temperature_end": Parameter(meaning=mark("temperature at the last step"), low=0.0, low_open=True),
    "triplet_margin": Parameter(meaning=mark("hinge margin alpha, cosine units"), low=0.0),
    "total_steps": Parameter(meaning=mark("optimizer steps of the whole training"), low=1),
}

_INTEGERS = frozenset({"window", "update_every", "total_steps"})
_OPTIONAL = frozenset({"temperature_end", "total_steps"})


@dataclass(frozen=True, kw_only=True)
class UWMLConfig:
    """Configuration of ``UWMLLoss``; ``PARAMETERS`` says what each field means and allows.

    Raises:
        ValueError: naming the field, its value and the allowed range.

    Example:
        >>> UWMLConfig(center=0.0).center
        0.0
        >>> UWMLConfig(temperature=-1)
        Traceback (most recent call last):
        ValueError: temperature=-1 is out of range; expected > 0
    """

    base: str = "infonce"
    curve: str = "bell"
    center: float = 0.15
    steepness_start: float = 2.0
    steepness_end: float = 12.0
    hard_floor: float = 0.3
    max_weight: float = 2.0
    normalization: str = "l2"
    direction_mode: str = "adaptive"
    direction_fixed: float = 0.5
    window: int = 200
    update_every: int = 10
    smoothing: float = 0.9
    sensitivity: float = 0.05
    min_weight: float = 0.1
    temperature: float = 0.07
    temperature_end: float | None = None
    learnable_temperature: bool = False
    triplet_margin: float = 0.2
    modalities: tuple[str, str] = ("image", "text")
    total_steps: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "modalities", tuple(self.modalities))
        direction_names(self.modalities)
        if not isinstance(self.learnable_temperature, bool):
            raise ValueError(
                f"learnable_temperature={self.learnable_temperature!r} is not a truth value; "
                "expected true or false"
            )
        for name, parameter in PARAMETERS.items():
            self._check(name, parameter)
        if self.learnable_temperature and self.temperature_end is not None:
            raise ValueError(
                "temperature_end cannot be scheduled while learnable_temperature is true; drop one of them"
            )
        if self.learnable_temperature and self.base == "triplet":
            raise ValueError(
                "learnable_temperature=True has no effect with base='triplet', which has none; drop it"
            )

    def _check(self, name: str, parameter: Parameter) -> None:
        value = getattr(self, name)
        if value is None and name in _OPTIONAL:
            return
        if not parameter.allows(value):
            kind = "unknown" if parameter.choices else "out of range"
            raise ValueError(f"{name}={value!r} is {kind}; expected {parameter.expectation()}")
        if name in _INTEGERS and value != int(value):
            raise ValueError(f"{name}={value!r} is not a whole number; expected {parameter.expectation()}")

    @property
    def directions(self) -> tuple[str, str]:
        """Names of the two retrieval directions, such as ``('i2t', 't2i')``."""
        return direction_names(self.modalities)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that ``from_dict`` and YAML take back; ``modalities`` becomes a list."""
        return {**dataclasses.asdict(self), "modalities": list(self.modalities)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> UWMLConfig:
        """Build from plain values.

        Raises:
            ValueError: for an unknown key, naming it and the nearest known one.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        reject_unknown_keys(values, known, where="loss")
        return cls(**values)


def reject_unknown_keys(values: Mapping[str, Any], known: list[str], *, where: str) -> None:
    """Raise a ValueError that names each unknown key of a configuration section and what is known.

    Example:
        >>> reject_unknown_keys({"centre": 0}, ["center", "curve"], where="loss")
        Traceback (most recent call last):
        ValueError: loss.centre is not a known setting; did you mean loss.center?
    """
    import difflib

    for key in values:
        if key in known:
            continue
        near = difflib.get_close_matches(str(key), known, n=1)
        hint = f"did you mean {where}.{near[0]}?" if near else f"known: {', '.join(sorted(known))}"
        raise ValueError(f"{where}.{key} is not a known setting; {hint}")
