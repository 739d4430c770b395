"""Loss or gradient that is no number, and the steps before it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.diagnosis.finding import Change, Evidence, Finding, Measured, PageLink
from uwml_core.analysis.diagnosis.frames import FINITE, NOT_FINITE, Frames
from uwml_core.analysis.diagnosis.registry import Rule
from uwml_core.analysis.diagnosis.series import current, lowered
from uwml_core.i18n import _, mark, ngettext

STEPS_BEFORE = 30


def check(frames: Frames) -> list[Finding]:
    """Find steps whose loss or gradient norm is NaN or infinite, and a training that ended with one."""
    steps, broken = frames.steps, _broken(frames)
    if not len(broken):
        return []
    first, last, count = int(broken[0]), int(broken[-1]), len(broken)
    text = ngettext(
        "{count} of {n} steps has a loss, gradient or embedding that is not finite: step {first}.",
        "{count} of {n} steps have a loss, gradient or embedding that is not finite, from step {first} on.",
        count,
    )
    return [
        Finding(
            rule=NON_FINITE.name,
            severity="serious",
            confidence=1.0,
            title=text.format(count=f"{count:,}", n=f"{len(steps):,}", first=f"{first:,}"),
            cause=_(
                "Usually a learning rate that is too high, a gradient without clipping, a logit scale that "
                "runs away, half precision, or a broken item in the batch."
            ),
            advice=_(
                "Look at the steps before it: where loss or gradient norm climb, lower the learning rate or "
                "clip; where they do not, look for broken items in that batch."
            ),
            numbers=(
                Measured(
                    name="steps", value=count, unit="steps", n=len(steps), first_step=first, last_step=last
                ),
                Measured(name="first_step", value=first, unit="step", n=count),
            ),
            evidence=_before(frames, first),
            changes=(
                *lowered("train.learning_rate", current(frames, "train.learning_rate"), 0.3),
                Change(name="train.gradient_clip", value=1.0, before=current(frames, "train.gradient_clip")),
            ),
            link=PageLink(page="training"),
        )
    ]


def _broken(frames: Frames) -> np.ndarray:
    """Steps with a number that is not finite, by their rows or by an event, ascending."""
    broken = frames.column(NOT_FINITE) > 0
    return np.union1d(frames.steps["step"].to_numpy()[broken], _events(frames))


def _events(frames: Frames) -> np.ndarray:
    events = frames.events
    # one of level info tells that the numbers are finite again
    bad = (events["kind"] == "non_finite") & (events["level"] != "info")
    rows = events[bad & events["step"].notna()]
    return np.sort(rows["step"].to_numpy(dtype=np.int64))


def _before(frames: Frames, first: int) -> Evidence:
    near = frames.steps["step"].between(first - STEPS_BEFORE, first + 3)
    columns = [name for name in FINITE if name in frames.steps]
    frame = frames.steps.loc[near, ["step", *columns]].reset_index(drop=True)
    return Evidence(frame=pd.DataFrame(frame), x="step", y=tuple(columns))


NON_FINITE = Rule(
    name="non_finite",
    title=mark("Loss or gradient that is not finite"),
    tables=("steps", "events"),
    needs=(f"steps.{NOT_FINITE}",),
    check=check,
)
