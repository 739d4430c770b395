"""The sliders of a report: their controls, the table they change, and the numbers their script needs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uwml_core.analysis.bands import BAND_NAMES, band_label, band_of
from uwml_core.analysis.curves import MARGIN_GRID
from uwml_core.analysis.pooled import MIDDLE_B, PooledMargins
from uwml_core.i18n import _, translate
from uwml_core.report.markup import Html, notes, table, tag
from uwml_core.report.parameters import control_name, slider_range
from uwml_core.weighting import PARAMETERS, UWMLConfig

SLIDERS = ("center", "steepness_start", "steepness_end", "hard_floor", "max_weight")


def preview_controls(in_use: UWMLConfig) -> Html:
    """Curve kind, sliders and a reset, and the table of what they change."""
    sliders = [_slider(name, in_use) for name in SLIDERS]
    reset = tag("button", _("Reset"), type="button", id="reset", title=_("Back to what the run uses"))
    text = _(
        "Approximate: from the histogram's bins of 0.01 pooled over the epoch, where the app replays each "
        "step's pairs. Open-loop preview: other weights would have led to other margins."
    )
    body = tag("div", _curve_choice(in_use), *sliders, reset, class_="controls")
    cells = tag("div", table([[""]]), id="preview", class_="scroll")
    return tag("div", body, cells, notes(text), class_="block two", role="group", aria_label=_("Preview"))


def _curve_choice(in_use: UWMLConfig) -> Html:
    options = [
        tag("option", name, value=name, selected=name == in_use.curve) for name in PARAMETERS["curve"].choices
    ]
    select = tag("select", *options, id="parameter-curve", data_parameter="curve")
    return tag("p", tag("label", control_name("curve"), for_="parameter-curve"), select)


def _slider(name: str, in_use: UWMLConfig) -> Html:
    was = float(getattr(in_use, name))
    low, high, step = slider_range(name, was, scaled=in_use.margin_scale != "none")
    meaning = translate(PARAMETERS[name].meaning)
    label = tag("label", control_name(name), for_=f"parameter-{name}", title=meaning)
    slider = tag(
        "input", type="range", id=f"parameter-{name}", data_parameter=name, min=low, max=high, step=step,
        value=f"{was:g}",
    )  # fmt: skip
    return tag("p", label, tag("output", f"{was:g}", for_=f"parameter-{name}"), slider)


def preview_data(pooled: PooledMargins, *, progress: float, scale: float) -> dict[str, Any]:
    """What the script computes from; it holds no formula's result, so none can disagree.

    Args:
        pooled: histogram of one epoch.
        progress: at the epoch's middle, for the curve that is drawn; NaN where unknown.
        scale: what margins are divided by where the run has a margin scale, for the curve likewise.
    """
    config = pooled.config
    return {
        "grid": MARGIN_GRID.tolist(),
        "unit": 1.0 if config.margin_scale == "none" else scale,
        "progress": _known(progress),
        "in_use": {name: getattr(config, name) for name in ("curve", *SLIDERS)},
        "bands": list(BAND_NAMES),
        "directions": {
            pooled.directions[code]: {
                "progress": [_known(moment) for moment in pooled.progress[group]],
                "bins": _bins(pooled, group),
            }
            for group, code in enumerate(pooled.direction)
        },
        "measures": {
            "ess_share": _("Effective sample, % of pairs"),
            **{name: f"{_('Gradient by band')}, {band_label(name)}, %" for name in BAND_NAMES},
        },
        "words": {
            "heading": _("Pooled over the epoch"),
            "in_use": _("in use"),
            "tried": _("tried"),
            "curve": _("{name}, steepness {steepness}"),
            "center": _("center {center}"),
            "was": _("was {value}"),
        },
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _bins(pooled: PooledMargins, group: int) -> list[dict[str, float]]:
    sums = {name: values[group] for name, values in pooled.sums.items()}
    unit = 1.0 if pooled.config.margin_scale == "none" else float(pooled.margin_scale[group])
    return [
        {
            "margin": float(MIDDLE_B[place]) / unit,
            "n": float(sums["count"][place] - sums["no_weight_count"][place]),
            "weight": float(sums["weight_sum"][place]),
            "weight_sq": float(sums["weight_sq_sum"][place]),
            "gradient_share": float(sums["gradient_share_sum"][place]),
            "band": int(band_of(MIDDLE_B[place : place + 1])[0]),
        }
        for place in np.flatnonzero(sums["count"])
    ]
