"""A few pairs that carry the whole batch."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.diagnosis.finding import Change, Finding, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import Rule
from uwml_core.analysis.diagnosis.series import current, measured, tail, thinned
from uwml_core.analysis.diagnosis.thresholds import ESS_CERTAIN, ESS_LIMIT
from uwml_core.analysis.text import percent
from uwml_core.i18n import _, mark
from uwml_core.weighting import UWMLConfig

# flatter than the defaults, and with a floor
_CALM = UWMLConfig(steepness_end=12.0, hard_floor=0.3)
_NAMES = ("steepness_start", "steepness_end", "hard_floor", "max_weight")


def check(frames: Frames) -> list[Finding]:
    """Find an effective sample size that is a small part of the batch in the last quarter of the steps."""
    batch = frames.column("batch_size")
    shares = {f"ess_share_{d}": frames.column(f"ess_{d}") / batch for d in frames.directions}
    lowest = np.fmin.reduce(list(shares.values()))
    ess = measured(frames, "ess_share", lowest, tail(frames), "1")
    if not ess.value < ESS_LIMIT:
        return []
    before = {name: current(frames, f"loss.{name}") for name in _NAMES}
    return [
        Finding(
            rule=FEW_PAIRS.name,
            severity="warning",
            confidence=confidence(ess.value, ESS_LIMIT, ESS_CERTAIN),
            title=_(
                "Few pairs carry the batch: the weights of the last {n} steps count as {share} of its pairs "
                "(median effective sample size)."
            ).format(n=f"{ess.n:,}", share=percent(ess.value, 1)),
            cause=_(
                "The difficulty curve is so steep, or so far from where the margins lie, that only a few "
                "pairs get weight; without a clamp one of them may decide the step."
            ),
            advice=_(
                "Make the curve flatter, raise the hard floor, clamp the weights, and keep them detached."
            ),
            numbers=(ess,),
            evidence=thinned(frames, shares, unit="1", limit=ESS_LIMIT, limit_name=_("limit")),
            changes=tuple(
                Change(name=f"loss.{name}", value=getattr(_CALM, name), before=value)
                for name, value in before.items()
                if value is not None and value != getattr(_CALM, name)
            ),
            link=PageLink(page="weight_curve"),
        )
    ]


FEW_PAIRS = Rule(
    name="few_pairs",
    title=mark("Few pairs that carry the batch"),
    tables=("steps",),
    needs=("steps.ess_d", "steps.batch_size"),
    check=check,
)
