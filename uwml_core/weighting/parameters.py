"""Range and meaning of every parameter of the loss, once for loss, YAML and sliders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uwml_core.i18n import mark
from uwml_core.weighting.curve import CURVES
from uwml_core.weighting.direction import MODES
from uwml_core.weighting.normalization import COMBINATIONS, NORMALIZATIONS

BASES = ("infonce", "triplet", "sigmoid", "dcl", "hn_nce", "wei2020_max", "wei2020_calibrated")
OVER_NEGATIVES = ("hardest", "sum")
STATISTICS = ("hardest", "topk_mean", "quantile", "mean")
MEMORY_MODALITIES = ("both", "text")
MARGIN_SCALES = ("none", "negative_std")


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
    "base": Parameter(meaning=mark("base loss"), choices=BASES),
    "negative_statistic": Parameter(
        meaning=mark("what of an anchor's negatives the margin is taken to"), choices=STATISTICS
    ),
    "topk": Parameter(meaning=mark("negatives in the mean of the statistic topk_mean"), low=1),
    "quantile": Parameter(meaning=mark("level of the statistic quantile"), low=0.0, high=1.0, low_open=True),
    "margin_scale": Parameter(
        meaning=mark("what margins are divided by before the curve"), choices=MARGIN_SCALES
    ),
    "false_negative_margin": Parameter(
        meaning=mark("negatives more similar than the positive by over this are left out, cosine units"),
        low=-2.0,
        high=2.0,
    ),
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
    "combination": Parameter(
        meaning=mark("how pair weight and direction weight come together"), choices=COMBINATIONS
    ),
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
    "over_negatives": Parameter(
        meaning=mark("whether the hinge takes the hardest negative or the sum over all"),
        choices=OVER_NEGATIVES,
    ),
    "hn_alpha": Parameter(
        meaning=mark("share of the positive in the denominator of hn_nce"), low=0.0, high=1.0
    ),
    "hn_beta": Parameter(meaning=mark("how much hn_nce raises hard negatives; 0 not at all"), low=0.0),
    "memory_batches": Parameter(
        meaning=mark("earlier batches whose embeddings are further negatives"), low=0
    ),
    "memory_modalities": Parameter(
        meaning=mark("which modalities the memory keeps: both, or the second alone"),
        choices=MEMORY_MODALITIES,
    ),
    "accumulate_batches": Parameter(
        meaning=mark("calls of the loss per optimizer step, or chunks in which a batch is encoded"), low=1
    ),
    "total_steps": Parameter(meaning=mark("optimizer steps of the whole training"), low=1),
}
