"""Negatives that are right answers: equal captions under different labels."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.diagnosis.finding import Change, Evidence, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.series import current
from uwml_core.analysis.diagnosis.thresholds import SHARED_CERTAIN, SHARED_LIMIT
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, mark


def check(frames: Frames) -> list[Finding]:
    """Find that a batch holds, for many anchors, another label with the very same caption."""
    shared = frames.shared_captions
    if "caption" not in shared:
        raise NotApplicable(_("Not applicable: needs {columns}.").format(columns="items.captions"))
    if shared.empty:
        return []
    batch = float(np.nanmedian(frames.column("batch_size"))) if frames.logged("steps.batch_size") else np.nan
    chance = float((shared["items"] * shared["chance"]).sum() / shared["of"].iloc[0])
    expected = chance * (batch - 1.0)
    if not expected > SHARED_LIMIT:
        return []
    n = int(shared["of"].iloc[0])
    share = float(shared["share"].iloc[0])
    table = shared.head(20)[["caption", "items", "labels"]].reset_index(drop=True)
    masked = current(frames, "loss.false_negative_margin")
    return [
        Finding(
            rule=FALSE_NEGATIVES.name,
            severity="warning",
            confidence=confidence(expected, SHARED_LIMIT, SHARED_CERTAIN),
            title=_(
                "{share} of {n} training items share a caption with items of another label: in a batch of "
                "{batch} an anchor meets {expected} such false negatives on average."
            ).format(share=percent(share), n=f"{n:,}", batch=fixed(batch, 0), expected=fixed(expected, 3)),
            cause=_(
                "Captions from a template, copies of items, or several items of one thing without a common "
                "label."
            ),
            advice=_("Give items that show the same thing one label, or take a sampler without duplicates."),
            numbers=(
                Measured(name="shared_share", value=share, unit="1", n=n),
                Measured(name="false_negatives_per_anchor", value=expected, unit="pairs", n=n),
            ),
            evidence=Evidence(frame=table, x="caption", y=("items", "labels"), kind="table"),
            changes=(Change(name="loss.false_negative_margin", value=0.1, before=masked),)
            if masked is None
            else (),
            link=PageLink(page="hard_negatives", query={"tab": "false-negatives"}),
        )
    ]


FALSE_NEGATIVES = Rule(
    name="false_negatives",
    title=mark("False negatives in the batch"),
    tables=("steps",),
    needs=("steps.step",),
    check=check,
)
