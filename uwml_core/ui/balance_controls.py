"""Controls of the direction controller."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uwml_core.i18n import _
from uwml_core.ui.parameter_controls import Controls, Preset, parameter_controls
from uwml_core.weighting import UWMLConfig

_ADAPTIVE_ONLY = ("window", "update_every", "smoothing", "sensitivity", "min_weight")


def balance_presets() -> tuple[Preset, ...]:
    """Presets of the direction controller; what they leave out takes the defaults of the loss."""
    return (
        Preset(_("UWML"), _("The defaults of the loss"), UWMLConfig()),
        Preset(_("Article calm"), _("Preset article_calm: smoothing 0.95"), UWMLConfig(smoothing=0.95)),
        Preset(
            _("Quick"),
            _("A short window, updated at every step: follows each swing"),
            UWMLConfig(window=20, update_every=1),
        ),
        Preset(_("Off"), _("Both directions weigh the same"), UWMLConfig(direction_mode="off")),
    )


def _acts(name: str, config: UWMLConfig) -> bool:
    return config.direction_mode == ("adaptive" if name in _ADAPTIVE_ONLY else "fixed")


BALANCE_CONTROLS = Controls(
    choices=("direction_mode",),
    sliders=(*_ADAPTIVE_ONLY, "direction_fixed"),
    presets=balance_presets,
    acts=_acts,
)


def balance_controls(
    logged: UWMLConfig | None, run_id: str, directions: Sequence[str]
) -> tuple[UWMLConfig, UWMLConfig]:
    """Draw presets and controls of the direction controller.

    Args:
        logged: configuration of the run, None for a loss that is not ours: it has no controller.
        run_id: the controls start over when another run is chosen.
        directions: names of its two directions.

    Returns:
        The configuration in use, which a reset goes back to, and the one with the controls' values.
    """
    in_use = logged or UWMLConfig(direction_mode="off")
    controls = dataclasses.replace(BALANCE_CONTROLS, first=directions[0])
    return in_use, parameter_controls(controls, in_use, run_id)
