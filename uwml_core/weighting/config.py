"""Configuration of the loss: its fields, their defaults and which of them go together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uwml_core.weighting.direction import direction_names
from uwml_core.weighting.parameters import PARAMETERS, Parameter

_INTEGERS = frozenset({"topk", "window", "update_every", "total_steps"})
_OPTIONAL = frozenset({"false_negative_margin", "temperature_end", "total_steps"})
# With a margin scale the center is a multiple of it, which no cosine bounds.
_SCALED_CENTER = Parameter(meaning=PARAMETERS["center"].meaning, low=-2000.0, high=2000.0)


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
    negative_statistic: str = "hardest"
    topk: int = 5
    quantile: float = 0.95
    margin_scale: str = "none"
    false_negative_margin: float | None = None
    curve: str = "bell"
    center: float = 0.15
    steepness_start: float = 2.0
    steepness_end: float = 12.0
    hard_floor: float = 0.3
    max_weight: float = 2.0
    normalization: str = "l2"
    combination: str = "multiply"
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
            scaled = name == "center" and self.margin_scale == "negative_std"
            self._check(name, _SCALED_CENTER if scaled else parameter)
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
