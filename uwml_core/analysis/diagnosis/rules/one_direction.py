"""One retrieval direction that is not trained, or lags far behind."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.controller_log import controller_log
from uwml_core.analysis.diagnosis.finding import Change, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import Rule
from uwml_core.analysis.diagnosis.series import current, measured, tail, thinned
from uwml_core.analysis.diagnosis.thresholds import LAG_CERTAIN, LAG_LIMIT, NO_WEIGHT
from uwml_core.analysis.lag import Lag, find_lag, may_lag
from uwml_core.analysis.text import fixed
from uwml_core.i18n import _, mark


def check(frames: Frames) -> list[Finding]:
    """Find a direction without weight: nothing pulls its answers into order."""
    columns = {f"direction_weight_{d}": frames.column(f"direction_weight_{d}") for d in frames.directions}
    weights = [measured(frames, name, values, tail(frames), "1") for name, values in columns.items()]
    weakest = int(np.argmin([np.inf if np.isnan(w.value) else w.value for w in weights]))
    if not weights[weakest].value < NO_WEIGHT:
        return []
    return [
        Finding(
            rule=ONE_DIRECTION.name,
            severity="serious",
            confidence=1.0,
            title=_(
                "Only one direction is trained: {direction} has a weight of {weight} in the last {n} steps."
            ).format(
                direction=frames.directions[weakest],
                weight=fixed(weights[weakest].value, 3),
                n=f"{weights[weakest].n:,}",
            ),
            cause=_("The direction's weight is fixed at 0, or its loss was left out of the sum."),
            advice=_("Train both directions: let the controller weigh them, or switch their weights off."),
            numbers=(weights[weakest],),
            evidence=thinned(frames, columns, unit="1", limit=0.5, limit_name=_("balance")),
            changes=(_adaptive(frames),),
            link=PageLink(page="modal_balance"),
        )
    ]


def _adaptive(frames: Frames) -> Change:
    mode = "loss.direction_mode"
    return Change(name=mode, value="adaptive", before=current(frames, mode))


def check_lag(frames: Frames) -> list[Finding]:
    """Find a direction whose gap is smaller than the other's by far, up to now."""
    log = controller_log(frames.steps, frames.directions)
    lag = find_lag(log) if may_lag(log, LAG_LIMIT) else None
    if lag is None or lag.lagging is None or not lag.behind.low > LAG_LIMIT:
        return []
    return [_lagging(frames, lag, lag.lagging)]


def _lagging(frames: Frames, lag: Lag, lagging: int) -> Finding:
    name, step = frames.directions[lagging], frames.steps["step"]
    behind = Measured(
        name="behind", value=lag.behind.mean, unit="cosine", n=lag.behind.n,
        first_step=lag.first_step, last_step=int(step.iloc[-1]),
    )  # fmt: skip
    return Finding(
        rule=LAGGING.name,
        severity="warning",
        confidence=confidence(lag.behind.low, LAG_LIMIT, LAG_CERTAIN),
        title=_("{direction} lags by {behind} ± {spread} since step {step} (n = {n} steps).").format(
            direction=name,
            behind=fixed(lag.behind.mean, 3),
            spread=fixed(lag.behind.half_width, 3),
            step=f"{lag.first_step or 0:,}",
            n=f"{lag.behind.n:,}",
        ),
        cause=_(
            "One modality has more variants of the same thing, or hubs that are near to everything, so "
            "its answers are harder to tell apart; or its direction gets too little weight."
        ),
        advice=_("Give the lagging direction more weight: adaptive weights, a smaller sensitivity."),
        numbers=(behind,),
        evidence=thinned(
            frames, {f"gap_{d}": frames.column(f"gap_{d}") for d in frames.directions}, unit="cosine"
        ),
        changes=(_adaptive(frames),),
        link=PageLink(page="modal_balance"),
    )


ONE_DIRECTION = Rule(
    name="one_direction",
    title=mark("A direction that is not trained"),
    tables=("steps",),
    needs=("steps.direction_weight_d",),
    check=check,
)
LAGGING = Rule(
    name="lagging_direction",
    title=mark("A direction that lags far behind"),
    tables=("steps",),
    needs=("steps.gap_d",),
    check=check_lag,
)
