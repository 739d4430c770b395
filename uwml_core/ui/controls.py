"""Controls of the weight curve."""

from __future__ import annotations

import math
from dataclasses import replace

import streamlit as st

from uwml_core.analysis.validity import replay_obstacle
from uwml_core.i18n import _
from uwml_core.ui.parameter_controls import Controls, Preset, parameter_controls
from uwml_core.weighting import UWMLConfig


def weighting_presets() -> tuple[Preset, ...]:
    """Presets of the weight curve; what they leave out takes the defaults of the loss."""
    return (
        Preset(_("UWML"), _("The defaults of the loss"), UWMLConfig()),
        Preset(_("Uniform"), _("Every pair counts the same: plain InfoNCE"), UWMLConfig(curve="uniform")),
        Preset(_("Hard"), _("The harder a pair, the more it counts"), UWMLConfig(curve="hard")),
        Preset(
            _("Center 0"),
            _("Pairs whose best wrong candidate is as similar count most"),
            UWMLConfig(center=0.0),
        ),
    )


WEIGHTING_CONTROLS = Controls(
    choices=("curve", "normalization"),
    sliders=("center", "steepness_start", "steepness_end", "hard_floor", "max_weight"),
    presets=weighting_presets,
)
CONTROLS = WEIGHTING_CONTROLS.names


def _controls(scale: float) -> Controls:
    # a scale that was not logged cannot be tried
    if not math.isfinite(scale):
        return WEIGHTING_CONTROLS
    return replace(WEIGHTING_CONTROLS, choices=(*WEIGHTING_CONTROLS.choices, "margin_scale"))


def weighting_names(scale: float) -> tuple[str, ...]:
    """Parameters that ``weighting_controls`` lets one change."""
    return _controls(scale).names


def weighting_controls(
    logged: UWMLConfig | None, run_id: str, scale: float = math.nan
) -> tuple[UWMLConfig, UWMLConfig]:
    """Draw presets and controls of the weight curve.

    Args:
        logged: configuration of the run, None for a loss that is not ours: it weighs all pairs alike.
        run_id: the controls start over when another run is chosen.
        scale: mean logged margin scale, cosine units; NaN where none was logged, and then it is not offered.

    Returns:
        The configuration in use, which a reset goes back to, and the one with the controls' values; the same
        twice, and no controls, where nothing can be replayed.
    """
    in_use = logged or UWMLConfig(curve="uniform")
    if obstacle := replay_obstacle(in_use):
        st.caption(obstacle)
        return in_use, in_use
    return in_use, parameter_controls(_controls(scale), in_use, run_id)
