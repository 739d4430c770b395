"""Sliders of the weight curve: ranges from the parameters themselves, what each one was, one-click reset."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping
from typing import Any

import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui.text import element
from uwml_core.weighting import PARAMETERS, UWMLConfig

# Where a parameter has no upper bound, the slider ends here or at twice what the run uses.
_OPEN_ENDS = {"steepness_start": 40.0, "steepness_end": 40.0, "max_weight": 10.0}
_STEPS = {"center": 0.01, "steepness_start": 0.5, "steepness_end": 0.5, "hard_floor": 0.01, "max_weight": 0.1}
_SLIDERS = tuple(_STEPS)
_CHOICES = ("curve", "normalization")
CONTROLS = (*_CHOICES, *_SLIDERS)
_RUN_OF_CONTROLS = "_controls_of_run"


def preset_values() -> Mapping[str, dict[str, Any]]:
    """Presets by name: the controls that each one sets; the others take the defaults of the loss."""
    return {
        _("UWML"): {},
        _("Uniform"): {"curve": "uniform"},
        _("Hard"): {"curve": "hard"},
        _("Center 0"): {"center": 0.0},
    }


def control_name(parameter: str) -> str:
    """What a parameter is called beside its control."""
    names = {
        "curve": _("Curve"),
        "normalization": _("Normalization"),
        "center": _("Center, cosine"),
        "steepness_start": _("Steepness at the start, 1/cosine"),
        "steepness_end": _("Steepness at the end, 1/cosine"),
        "hard_floor": _("Hard floor"),
        "max_weight": _("Max weight"),
    }
    return names[parameter]


def weighting_controls(logged: UWMLConfig | None, run_id: str) -> tuple[UWMLConfig, UWMLConfig]:
    """Draw presets and controls, in the address under the parameters' own names.

    Args:
        logged: configuration of the run, None for a loss that is not ours: it weighs all pairs alike.
        run_id: the controls start over when another run is chosen.

    Returns:
        The configuration in use, which a reset goes back to, and the one with the controls' values.
    """
    in_use = logged or UWMLConfig(curve="uniform")
    _start_over(in_use, run_id)
    _presets(in_use)
    left, right = st.columns(2, gap="small")
    values: dict[str, Any] = {}
    with left:
        values["curve"] = _name_control("curve", in_use)
    with right:
        values["normalization"] = _name_control("normalization", in_use)
    for name in _SLIDERS:
        values[name] = _slider(name, in_use)
    return in_use, dataclasses.replace(in_use, **values)


def slider_range(name: str, value: float) -> tuple[float, float, float]:
    """Lowest, highest value and step of a parameter's slider.

    Args:
        name: a number of ``PARAMETERS``.
        value: what the run uses; always inside the range.

    Example:
        >>> slider_range("hard_floor", 0.3)
        (0.0, 0.99, 0.01)
        >>> slider_range("max_weight", 2.0)
        (1.0, 10.0, 0.1)
    """
    parameter, step = PARAMETERS[name], _STEPS[name]
    low = 0.0 if parameter.low is None else parameter.low
    if parameter.high is None:
        high = max(_OPEN_ENDS[name], 2 * value)
    else:
        high = parameter.high - step if parameter.high_open else parameter.high
    return float(low), round(max(float(high), value), 10), step


def _start_over(in_use: UWMLConfig, run_id: str) -> None:
    before = st.session_state.get(_RUN_OF_CONTROLS)
    st.session_state[_RUN_OF_CONTROLS] = run_id
    if before not in (None, run_id):
        _set(in_use)


def _presets(in_use: UWMLConfig) -> None:
    row = st.container(horizontal=True, gap="xsmall")
    with row:
        for number, (name, changed) in enumerate(preset_values().items()):
            preset = dataclasses.replace(UWMLConfig(), **changed)
            st.button(name, key=f"preset-{number}", on_click=_set, args=(preset,))
        st.button(
            _("Reset"), key="reset", on_click=_set, args=(in_use,), type="tertiary", icon=":material/undo:",
            help=_("Back to what the run uses"),
        )  # fmt: skip


def _set(config: UWMLConfig) -> None:
    for name in CONTROLS:
        st.session_state[name] = getattr(config, name)


def _slider(name: str, in_use: UWMLConfig) -> float:
    was = float(getattr(in_use, name))
    low, high, step = slider_range(name, was)
    with st.container(gap=None, key=f"control-{name}"):
        label = st.empty()
        value = float(
            st.slider(
                control_name(name),
                low,
                high,
                was,
                step,
                key=name,
                bind="query-params",
                label_visibility="collapsed",
            )
        )
        label.html(_label(name, was, value, "{:g}"))
    return value


def _name_control(name: str, in_use: UWMLConfig) -> str:
    was, options = str(getattr(in_use, name)), PARAMETERS[name].choices
    with st.container(gap=None, key=f"control-{name}"):
        label = st.empty()
        index = options.index(was)
        value = st.selectbox(
            control_name(name),
            options,
            index,
            key=name,
            bind="query-params",
            label_visibility="collapsed",
        )
        label.html(_label(name, was, value, "{}"))
    return str(value)


def _label(name: str, was: Any, value: Any, form: str) -> str:
    meaning = html.escape(_(PARAMETERS[name].meaning))
    text = f'<span class="uw-muted" title="{meaning}">{html.escape(control_name(name))}</span>'
    changed = "" if was == value else element("b", _("was {value}").format(value=form.format(was)), "")
    return f'<p class="uw-control">{text}{changed}</p>'
