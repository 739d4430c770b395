"""Direction weights that chase noise."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.diagnosis.finding import Change, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import Rule
from uwml_core.analysis.diagnosis.series import current, thinned
from uwml_core.analysis.diagnosis.thresholds import JITTER_CERTAIN, JITTER_LIMIT
from uwml_core.analysis.jitter import jitter
from uwml_core.analysis.text import fixed
from uwml_core.i18n import _, mark
from uwml_core.weighting import UWMLConfig


def check(frames: Frames) -> list[Finding]:
    """Find a total variation of the direction weight beyond what a calm controller shows."""
    names = [f"direction_weight_{d}" for d in frames.directions]
    weights = np.column_stack([frames.column(name) for name in names])
    found = jitter(weights)
    if not found.per_100_steps > JITTER_LIMIT:
        return []
    step = frames.steps["step"]
    title = _(
        "The direction weights travel {travel} within 100 steps; a calm controller stays below {limit}."
    ).format(travel=fixed(found.per_100_steps, 2), limit=fixed(JITTER_LIMIT, 1))
    return [
        Finding(
            rule=JITTER.name,
            severity="warning",
            confidence=confidence(found.per_100_steps, JITTER_LIMIT, JITTER_CERTAIN),
            title=title,
            cause=_(
                "The controller follows the noise of single batches: its window is short, its smoothing low, "
                "or its sensitivity small."
            ),
            advice=_("Lengthen the window, smooth more, or switch the directions' weights off."),
            numbers=(
                Measured(
                    name="jitter_per_100_steps",
                    value=found.per_100_steps,
                    n=int(np.isfinite(np.diff(weights[:, 0])).sum()),
                    first_step=int(step.iloc[0]),
                    last_step=int(step.iloc[-1]),
                ),
            ),
            evidence=thinned(frames, dict(zip(names, weights.T, strict=True))),
            changes=_calmer(frames),
            link=PageLink(page="modal_balance"),
        )
    ]


def _calmer(frames: Frames) -> tuple[Change, ...]:
    """The controller's defaults, where the run has others."""
    calm = UWMLConfig()
    names = ("window", "update_every", "smoothing", "sensitivity")
    settings = [(f"loss.{name}", getattr(calm, name), current(frames, f"loss.{name}")) for name in names]
    return tuple(
        Change(name=name, value=value, before=before) for name, value, before in settings if before != value
    )


JITTER = Rule(
    name="direction_jitter",
    title=mark("Direction weights that jitter"),
    tables=("steps",),
    needs=("steps.direction_weight_d",),
    check=check,
)
