"""What a parameter of the loss is called beside its slider, and how far the slider goes."""

from __future__ import annotations

from typing import Any

from uwml_core.i18n import _
from uwml_core.weighting import PARAMETERS, UWMLConfig

# Where a parameter has no upper bound, its slider ends here or at twice what the run uses.
_OPEN_ENDS = {
    "steepness_start": 40.0,
    "steepness_end": 40.0,
    "max_weight": 10.0,
    "window": 1000,
    "update_every": 100,
    "sensitivity": 0.5,
}
_STEPS = {
    "center": 0.01,
    "steepness_start": 0.5,
    "steepness_end": 0.5,
    "hard_floor": 0.01,
    "max_weight": 0.1,
    "direction_fixed": 0.01,
    "window": 1,
    "update_every": 1,
    "smoothing": 0.01,
    "sensitivity": 0.005,
    "min_weight": 0.01,
}
_SCALED_CENTER = 10.0


def control_name(parameter: str, first: str = "") -> str:
    """What a parameter is called beside its control.

    Args:
        parameter: its name.
        first: the run's first direction, whose weight ``direction_fixed`` is.
    """
    names = {
        "curve": _("Curve"),
        "normalization": _("Normalization"),
        "margin_scale": _("Margin scale"),
        "center": _("Center, cosine"),
        "steepness_start": _("Steepness at the start, 1/cosine"),
        "steepness_end": _("Steepness at the end, 1/cosine"),
        "hard_floor": _("Hard floor"),
        "max_weight": _("Max weight"),
        "direction_mode": _("Direction weights"),
        "direction_fixed": _("Fixed weight of {direction}").format(direction=first),
        "window": _("Window, steps"),
        "update_every": _("Update interval, steps"),
        "smoothing": _("Smoothing"),
        "sensitivity": _("Sensitivity, cosine"),
        "min_weight": _("Min weight"),
    }
    return names[parameter]


def slider_range(name: str, value: float, *, scaled: bool = False) -> tuple[Any, Any, Any]:
    """Lowest, highest value and step of a parameter's slider, whole numbers for a whole number.

    Args:
        name: a number of ``PARAMETERS``.
        value: what the run uses; always inside the range.
        scaled: whether margins, and so the center, count multiples of a scale.

    Example:
        >>> slider_range("hard_floor", 0.3)
        (0.0, 0.99, 0.01)
        >>> slider_range("max_weight", 2.0)
        (1.0, 10.0, 0.1)
        >>> slider_range("window", 200)
        (1, 1000, 1)
    """
    parameter, step = PARAMETERS[name], _STEPS[name]
    low = 0.0 if parameter.low is None else parameter.low
    if parameter.low_open:
        low += step
    if parameter.high is None:
        high = max(_OPEN_ENDS[name], 2 * value)
    else:
        high = parameter.high - step if parameter.high_open else parameter.high
    if scaled and name == "center":
        low, high = -_SCALED_CENTER, _SCALED_CENTER
    low, high = min(low, value), max(high, value)
    if is_whole(name):
        return int(low), int(high), int(step)
    return float(low), round(float(high), 10), step


def is_whole(name: str) -> bool:
    """Whether a parameter takes whole numbers only."""
    return isinstance(getattr(UWMLConfig(), name), int)
