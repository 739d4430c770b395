"""Configuration of the loss: its fields, their defaults and which of them go together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uwml_core.weighting.direction import direction_names
from uwml_core.weighting.parameters import PARAMETERS, Parameter

_INTEGERS = frozenset(
    {"topk", "memory_batches", "accumulate_batches", "window", "update_every", "total_steps"}
)
_OPTIONAL = frozenset({"false_negative_margin", "temperature_end", "total_steps"})
# With a margin scale the center is a multiple of it, which no cosine bounds.
_SCALED_CENTER = Parameter(meaning=PARAMETERS["center"].meaning, low=-2000.0, high=2000.0)
_FINITE = Parameter(meaning="a finite number")
_WITH_TEMPERATURE = frozenset({"infonce", "dcl", "hn_nce"})
_OWN_WEIGHTS = frozenset({"wei2020_max", "wei2020_calibrated"})


class _Default(str):
    """A default that a base loss with weights of its own replaces, unlike the same word given by hand."""


@dataclass(frozen=True, kw_only=True)
class UWMLConfig:
    """Configuration of ``UWMLLoss``; ``PARAMETERS`` says what each field means and allows.

    The bases ``wei2020_max`` and ``wei2020_calibrated`` have weights of their own: curve and
    direction_mode are then ``uniform`` and ``off`` unless given. ``positive_polynomial`` and
    ``negative_polynomial`` are their coefficients, of power 0 first, and ``triplet_margin`` says how close
    an informative negative is.

    Raises:
        ValueError: naming the field, its value and the allowed range; or for fields that exclude each
            other: a base with weights of its own together with a curve, direction weights, a margin scale
            or combination ``add``; ``learnable_temperature`` together with ``temperature_end``; either of
            them with a base that has no temperature or learns its own; ``over_negatives="sum"`` with another
            base than ``triplet``.

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
    curve: str = _Default("bell")
    center: float = 0.15
    steepness_start: float = 2.0
    steepness_end: float = 20.0
    hard_floor: float = 0.0
    max_weight: float = 2.0
    normalization: str = "l2"
    combination: str = "multiply"
    direction_mode: str = _Default("adaptive")
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
    over_negatives: str = "hardest"
    hn_alpha: float = 1.0
    hn_beta: float = 0.25
    positive_polynomial: tuple[float, ...] = (0.5, -0.7, 0.2)
    negative_polynomial: tuple[float, ...] = (0.03, -0.4, 0.9)
    memory_batches: int = 0
    memory_modalities: str = "both"
    accumulate_batches: int = 1
    modalities: tuple[str, str] = ("image", "text")
    total_steps: int | None = None

    def __post_init__(self) -> None:
        for name, own in (("curve", "uniform"), ("direction_mode", "off")):
            value = getattr(self, name)
            if isinstance(value, _Default):
                object.__setattr__(self, name, own if self.own_weights else str(value))
        direction_names(self.modalities)
        object.__setattr__(self, "modalities", tuple(self.modalities))
        self._check_others()
        for name, parameter in PARAMETERS.items():
            scaled = name == "center" and self.margin_scale == "negative_std"
            self._check(name, _SCALED_CENTER if scaled else parameter)
        self._check_together()

    def _check_others(self) -> None:
        if not isinstance(self.learnable_temperature, bool):
            raise ValueError(
                f"learnable_temperature={self.learnable_temperature!r} is not a truth value; "
                "expected true or false"
            )
        for name in ("positive_polynomial", "negative_polynomial"):
            value = getattr(self, name)
            if not isinstance(value, (tuple, list)) or not value or not all(map(_FINITE.allows, value)):
                raise ValueError(f"{name}={value!r} is no polynomial; expected finite coefficients")
            object.__setattr__(self, name, tuple(value))

    def _check_together(self) -> None:
        if self.learnable_temperature and self.temperature_end is not None:
            raise ValueError(
                "temperature_end cannot be scheduled while learnable_temperature is true; drop one of them"
            )
        for name, unset in (("learnable_temperature", False), ("temperature_end", None)):
            if getattr(self, name) != unset and not self.has_temperature:
                why = "which learns its own scale" if self.base == "sigmoid" else "which has none"
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has no effect with base={self.base!r}, {why}; drop it"
                )
        if self.over_negatives != "hardest" and self.base != "triplet":
            raise ValueError(
                f"over_negatives={self.over_negatives!r} has no effect with base={self.base!r}; drop it"
            )
        needed = {
            "curve": "uniform",
            "direction_mode": "off",
            "margin_scale": "none",
            "combination": "multiply",
        }
        for name, only in needed.items():
            if self.own_weights and getattr(self, name) != only:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is impossible with base={self.base!r}, which has "
                    f"weights of its own; expected {only!r}"
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
    def own_weights(self) -> bool:
        """Whether the base loss has weights of its own in place of curve and direction weights."""
        return self.base in _OWN_WEIGHTS

    @property
    def weighs_pairs(self) -> bool:
        """Whether weights belong to pairs of anchor and negative instead of anchors."""
        return self.base == "sigmoid" or (self.base == "triplet" and self.over_negatives == "sum")

    @property
    def has_temperature(self) -> bool:
        """Whether the base loss is a softmax with a temperature."""
        return self.base in _WITH_TEMPERATURE

    @property
    def directions(self) -> tuple[str, str]:
        """Names of the two retrieval directions, such as ``('i2t', 't2i')``."""
        return direction_names(self.modalities)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that ``from_dict`` and YAML take back; tuples become lists."""
        values = dataclasses.asdict(self)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}

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
