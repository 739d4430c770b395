"""Controls of a loss: ranges from its parameters, what each one was, one-click reset."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import streamlit as st

from uwml_core.i18n import _, translate
from uwml_core.report.parameters import control_name, is_whole, slider_range
from uwml_core.ui.text import element
from uwml_core.weighting import PARAMETERS, UWMLConfig

_RUN_OF_CONTROLS = "_controls_of_run"


class Preset(NamedTuple):
    """A named setting: what it is called, what it does, the configuration whose controls it sets."""

    name: str
    meaning: str
    config: UWMLConfig


def _acts_always(name: str, config: UWMLConfig) -> bool:
    return True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Controls:
    """Which parameters a page lets one change.

    Attributes:
        choices: parameters that are names, side by side.
        sliders: parameters that are numbers, each on a line of its own.
        presets: gives the presets in the visitor's language.
        acts: whether a slider's parameter changes anything, given the values of the choices; a slider
            that does not is greyed out.
        first: the run's first direction.
    """

    choices: tuple[str, ...]
    sliders: tuple[str, ...]
    presets: Callable[[], tuple[Preset, ...]]
    acts: Callable[[str, UWMLConfig], bool] = _acts_always
    first: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All parameters that can be changed, in the order of the page."""
        return (*self.choices, *self.sliders)


def parameter_controls(controls: Controls, in_use: UWMLConfig, run_id: str) -> UWMLConfig:
    """Draw presets and controls, in the address under the parameters' own names.

    Args:
        controls: which ones.
        in_use: what the run uses; a reset goes back to it.
        run_id: the controls start over when another run is chosen.

    Returns:
        ``in_use`` with the controls' values.
    """
    _start_over(controls, in_use, run_id)
    _presets(controls, in_use)
    values: Mapping[str, Any] = {}
    for column, name in zip(st.columns(len(controls.choices), gap="small"), controls.choices, strict=True):
        with column:
            values = {**values, name: _name_control(control_name(name), name, in_use)}
    chosen = _with_choices(in_use, values)
    numbers = {
        name: _slider(
            control_name(name, controls.first), name, in_use, disabled=not controls.acts(name, chosen)
        )
        for name in controls.sliders
    }
    return dataclasses.replace(chosen, **_within_cosines(chosen.margin_scale, numbers))


def _with_choices(in_use: UWMLConfig, values: Mapping[str, Any]) -> UWMLConfig:
    scale = values.get("margin_scale", in_use.margin_scale)
    return dataclasses.replace(in_use, **values, **_within_cosines(scale, {"center": in_use.center}))


def _within_cosines(margin_scale: str, numbers: dict[str, Any]) -> dict[str, Any]:
    """The numbers with the center in its range, which it may leave only where it is multiples of a scale."""
    center = PARAMETERS["center"]
    if margin_scale != "none" or "center" not in numbers or center.allows(numbers["center"]):
        return numbers
    return {**numbers, "center": max(center.low or 0.0, min(numbers["center"], center.high or 0.0))}


def _start_over(controls: Controls, in_use: UWMLConfig, run_id: str) -> None:
    # per set of controls: the run may have changed while another page was shown
    key = f"{_RUN_OF_CONTROLS}:{','.join(controls.names)}"
    before = st.session_state.get(key)
    st.session_state[key] = run_id
    if before not in (None, run_id):
        _set(controls, in_use)


def _presets(controls: Controls, in_use: UWMLConfig) -> None:
    row = st.container(horizontal=True, gap="xsmall")
    with row:
        for number, preset in enumerate(controls.presets()):
            arguments = (controls, preset.config)
            st.button(preset.name, key=f"preset-{number}", on_click=_set, args=arguments, help=preset.meaning)
        st.button(
            _("Reset"), key="reset", on_click=_set, args=(controls, in_use), type="tertiary",
            icon=":material/undo:", help=_("Back to what the run uses"),
        )  # fmt: skip


def _set(controls: Controls, config: UWMLConfig) -> None:
    for name in controls.choices:
        st.session_state[name] = getattr(config, name)
    for name in controls.sliders:
        st.session_state[name] = _number(name, config)


def _number(name: str, config: UWMLConfig) -> Any:
    """Value of a slider; a configuration may hold a whole number where the slider needs a float."""
    value = getattr(config, name)
    return int(value) if is_whole(name) else float(value)


def _slider(title: str, name: str, in_use: UWMLConfig, *, disabled: bool) -> Any:
    was = _number(name, in_use)
    low, high, step = slider_range(name, was, scaled=in_use.margin_scale != "none")
    with st.container(gap=None, key=f"control-{name}"):
        label = st.empty()
        value = st.slider(
            title,
            low,
            high,
            was,
            step,
            key=name,
            bind="query-params",
            disabled=disabled,
            label_visibility="collapsed",
        )
        label.html(_label(title, name, f"{was:g}", f"{value:g}"))
    return value


def _name_control(title: str, name: str, in_use: UWMLConfig) -> str:
    was, options = str(getattr(in_use, name)), PARAMETERS[name].choices
    with st.container(gap=None, key=f"control-{name}"):
        label = st.empty()
        index = options.index(was)
        value = st.selectbox(
            title,
            options,
            index,
            key=name,
            bind="query-params",
            label_visibility="collapsed",
        )
        label.html(_label(title, name, was, value, shown=""))
    return str(value)


def _label(title: str, name: str, was: str, value: str, shown: str | None = None) -> str:
    meaning = html.escape(translate(PARAMETERS[name].meaning))
    text = f'<span class="uw-muted" title="{meaning}">{html.escape(title)}</span>'
    changed = "" if was == value else element("b", _("was {value}").format(value=was), "")
    return (
        f'<p class="uw-control">{text}{changed}{element("span", value if shown is None else shown, "")}</p>'
    )
