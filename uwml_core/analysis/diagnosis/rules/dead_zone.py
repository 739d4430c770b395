"""Polynomial losses outside the range that their constants are made for."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.diagnosis.finding import Change, Finding, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import Rule
from uwml_core.analysis.diagnosis.series import current, measured, tail, thinned
from uwml_core.analysis.diagnosis.thresholds import DEAD_LIMIT
from uwml_core.analysis.text import percent
from uwml_core.i18n import _, mark


def check(frames: Frames) -> list[Finding]:
    """Find anchors whose hardest negative has no gradient, or one of the wrong sign."""
    names = [f"{kind}_share_{d}" for d in frames.directions for kind in ("dead", "wrong_sign")]
    columns = {name: frames.column(name) for name in names}
    total = np.nan_to_num(np.array(list(columns.values()))).sum(axis=0) / 2
    share = measured(frames, "lost_share", total, tail(frames), "1")
    if not share.value > DEAD_LIMIT:
        return []
    return [
        Finding(
            rule=DEAD_ZONE.name,
            severity="warning",
            confidence=confidence(share.value, DEAD_LIMIT, 1.0),
            title=_(
                "{share} of the anchors have a hardest negative in the dead or wrong-sign zone (last {n} "
                "steps): it is not pushed away, or is pulled closer."
            ).format(share=percent(share.value), n=f"{share.n:,}"),
            cause=_(
                "The constants of the polynomials are made for similarities of about 0.6; plain cosines of a "
                "contrastive model lie below."
            ),
            advice=_("Use the calibrated form, or another loss."),
            numbers=(share,),
            evidence=thinned(frames, columns, unit="1", limit=DEAD_LIMIT, limit_name=_("limit")),
            changes=(
                Change(name="loss.base", value="wei2020_calibrated", before=current(frames, "loss.base")),
            ),
            link=PageLink(page="training"),
        )
    ]


DEAD_ZONE = Rule(
    name="dead_zone",
    title=mark("Anchors in the dead or wrong-sign zone"),
    tables=("steps",),
    needs=("steps.dead_share_d",),
    check=check,
    early=False,
)
