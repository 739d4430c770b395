"""Steps that have become slow, and telemetry that costs more than it should."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.diagnosis.finding import Change, Finding, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.series import current, measured, tail, thinned
from uwml_core.analysis.diagnosis.thresholds import (
    FEWEST_TREND_STEPS,
    SLOWER_CERTAIN,
    SLOWER_LIMIT,
    TELEMETRY_CERTAIN,
    TELEMETRY_LIMIT,
)
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, mark


def check_speed(frames: Frames) -> list[Finding]:
    """Find nine of ten steps of the last quarter to take far longer than the median of the first half."""
    time_ms = frames.column("step_time_ms")
    if len(time_ms) < FEWEST_TREND_STEPS:
        raise NotApplicable(_("Fewer than {needed} steps.").format(needed=FEWEST_TREND_STEPS))
    before = measured(frames, "early_step_time", time_ms, slice(1, len(time_ms) // 2), "ms")
    after = measured(frames, "late_step_time", time_ms, tail(frames), "ms")
    late = time_ms[tail(frames)]
    # nearly every late step, so that a busy moment of the machine does not count
    ratio = float(np.nanquantile(late, 0.1)) / before.value if np.isfinite(late).any() else np.nan
    if not ratio > SLOWER_LIMIT:
        return []
    return [
        Finding(
            rule=THROUGHPUT.name,
            severity="note",
            confidence=confidence(ratio, SLOWER_LIMIT, SLOWER_CERTAIN),
            title=_(
                "Steps have become slower: {before} ms in the first half, {after} ms in the last quarter."
            ).format(before=fixed(before.value), after=fixed(after.value)),
            cause=_(
                "Another program on the machine, a disk or network that is slow, or memory that runs out."
            ),
            advice=_("Look at the load of the machine and at what the data loader waits for."),
            numbers=(before, after),
            evidence=thinned(frames, {"step_time_ms": time_ms}, unit="ms"),
            link=PageLink(page="training"),
        )
    ]


def check_telemetry(frames: Frames) -> list[Finding]:
    """Find a share of the step that goes into telling about it."""
    telemetry, step = frames.column("telemetry_time_ms"), frames.column("step_time_ms")
    cost = measured(frames, "telemetry_time", telemetry, slice(0, len(step)), "ms")
    whole = measured(frames, "step_time", step, slice(0, len(step)), "ms")
    share = cost.value / (whole.value + cost.value)
    if not share > TELEMETRY_LIMIT:
        return []
    return [
        Finding(
            rule=TELEMETRY_COST.name,
            severity="note",
            confidence=confidence(share, TELEMETRY_LIMIT, TELEMETRY_CERTAIN),
            title=_(
                "Telemetry takes {share} of a step: {cost} ms of {whole} ms (medians of {n} steps)."
            ).format(
                share=percent(share),
                cost=fixed(cost.value, 2),
                whole=fixed(whole.value + cost.value, 2),
                n=f"{cost.n:,}",
            ),
            cause=_("The log waits for a device, copies large tensors, or writes to a slow disk."),
            advice=_(
                "Hand over tensors that are on the host or need no wait, and keep pairs of fewer steps."
            ),
            numbers=(cost, whole),
            evidence=thinned(frames, {"telemetry_time_ms": telemetry, "step_time_ms": step}, unit="ms"),
            changes=(
                Change(name="train.pairs_every", value=10, before=current(frames, "train.pairs_every")),
            ),
            link=PageLink(page="training"),
        )
    ]


THROUGHPUT = Rule(
    name="throughput",
    title=mark("Steps that have become slow"),
    tables=("steps",),
    needs=("steps.step_time_ms",),
    check=check_speed,
)
TELEMETRY_COST = Rule(
    name="telemetry_cost",
    title=mark("Telemetry that costs too much"),
    tables=("steps",),
    needs=("steps.telemetry_time_ms", "steps.step_time_ms"),
    check=check_telemetry,
)
