"""A learned logit scale that falls, or stands at its limit."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.diagnosis.finding import Change, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.series import current, lowered, measured, tail, thinned
from uwml_core.analysis.diagnosis.thresholds import PINNED_SCALE, SCALE_FALL
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, mark


def check(frames: Frames) -> list[Finding]:
    """Find 1 / temperature far below its highest value, or at the limit of 100 in the last quarter."""
    temperature = frames.column("temperature")
    scale = 1.0 / np.where(temperature > 0, temperature, np.nan)
    known = np.flatnonzero(np.isfinite(scale))
    if frames.loss is not None and not frames.loss.learnable_temperature:
        raise NotApplicable(_("The temperature is not learned."))
    if not len(known) or np.ptp(scale[known]) == 0:
        raise NotApplicable(_("The temperature does not change."))
    end = measured(frames, "end_scale", scale, tail(frames, 0.1))
    pinned = measured(frames, "scale", scale, tail(frames))
    if pinned.value >= PINNED_SCALE:
        return [_pinned(frames, pinned, scale)]
    highest = float(scale[known].max())
    fall = 1.0 - end.value / highest
    return [_falling(frames, end, highest, fall, scale)] if fall > SCALE_FALL else []


def _pinned(frames: Frames, found: Measured, scale: np.ndarray) -> Finding:
    return Finding(
        rule=LOGIT_SCALE.name,
        severity="warning",
        confidence=0.9,
        title=_("The logit scale stands at its limit: {scale} over the last {n} steps.").format(
            scale=fixed(found.value, 1), n=f"{found.n:,}"
        ),
        cause=_(
            "The pairs are told apart already, and only a sharper softmax still lowers the loss; on large "
            "data after long training that is normal, on small data it goes with learning by heart."
        ),
        advice=_("Fix the temperature, lower the scale's learning rate, or stop earlier."),
        numbers=(found,),
        evidence=thinned(frames, {"scale": scale}, limit=100.0, limit_name=_("limit")),
        changes=(
            Change(
                name="loss.learnable_temperature",
                value=False,
                before=current(frames, "loss.learnable_temperature"),
            ),
        ),
        link=PageLink(page="training"),
    )


def _falling(frames: Frames, end: Measured, highest: float, fall: float, scale: np.ndarray) -> Finding:
    return Finding(
        rule=LOGIT_SCALE.name,
        severity="warning",
        confidence=confidence(fall, SCALE_FALL, 0.9),
        title=_("The logit scale has fallen by {fall}, from {highest} to {end} (last {n} steps).").format(
            fall=percent(fall), highest=fixed(highest, 1), end=fixed(end.value, 1), n=f"{end.n:,}"
        ),
        cause=_(
            "The model gives up on telling pairs apart: a softer softmax is its cheapest way to a lower "
            "loss. Usually the learning rate is too high or the pairs do not belong together."
        ),
        advice=_("Lower the learning rate, look for wrong pairs, or fix the temperature."),
        numbers=(end, Measured(name="highest_scale", value=highest, n=int(np.isfinite(scale).sum()))),
        evidence=thinned(frames, {"scale": scale}),
        changes=(
            *lowered("train.learning_rate", current(frames, "train.learning_rate"), 0.3),
            Change(
                name="loss.learnable_temperature",
                value=False,
                before=current(frames, "loss.learnable_temperature"),
            ),
        ),
        link=PageLink(page="training"),
    )


LOGIT_SCALE = Rule(
    name="logit_scale",
    title=mark("A logit scale that falls or stands at its limit"),
    tables=("steps",),
    needs=("steps.temperature",),
    check=check,
)
