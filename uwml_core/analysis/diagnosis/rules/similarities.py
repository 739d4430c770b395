"""Similarities that no cosine can have, and ties among those of the evaluation."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.diagnosis.finding import Evidence, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import Rule
from uwml_core.analysis.diagnosis.thresholds import COSINE_LIMIT, TIED_CERTAIN, TIED_LIMIT
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, mark


def check_norms(frames: Frames) -> list[Finding]:
    """Find similarities beyond ±1: the features were not divided by their lengths."""
    pairs = frames.pairs
    values = np.abs(pairs[["positive_similarity", "negative_similarity"]].to_numpy(dtype=np.float64))
    largest = np.nanmax(np.where(np.isfinite(values), values, np.nan), axis=1, initial=-1.0)
    beyond = largest > COSINE_LIMIT
    if not beyond.any():
        return []
    share = float(beyond.mean())
    by_step = pd.DataFrame({"step": pairs["step"], "largest": largest}).groupby("step", as_index=False).max()
    number = Measured(
        name="largest_similarity", value=float(largest.max()), unit="cosine", n=len(pairs),
        first_step=int(pairs["step"].min()), last_step=int(pairs["step"].max()),
    )  # fmt: skip
    return [
        Finding(
            rule=NOT_NORMALISED.name,
            severity="serious",
            confidence=1.0,
            title=_(
                "The features are not normalized: similarities reach {largest} in absolute value, {share} "
                "of {n} pairs lie beyond 1."
            ).format(largest=fixed(number.value, 2), share=percent(share), n=f"{len(pairs):,}"),
            cause=_("The division of each embedding by its length is missing, or goes along the wrong axis."),
            advice=_("Normalize both sides along the embedding axis before the similarities."),
            numbers=(number, Measured(name="beyond_share", value=share, unit="1", n=len(pairs))),
            evidence=Evidence(
                frame=by_step.tail(200).reset_index(drop=True), x="step", y=("largest",), unit="cosine",
                limit=1.0, limit_name=_("largest cosine"),
            ),
            link=PageLink(page="weight_curve"),
        )
    ]  # fmt: skip


def check_ties(frames: Frames) -> list[Finding]:
    """Find queries, in either direction, whose best positive ties with a negative at the last evaluation.

    The direction with fewer ties counts: items with equal pictures tie in one of them however exact the
    numbers are.
    """
    evals = frames.evals
    rows = evals[(evals["metric"] == "R@1") & evals["tied_share"].notna()]
    rows = rows[rows["epoch"] >= 0] if (rows["epoch"] >= 0).any() else rows
    by_step = rows.groupby(["step", "epoch"], as_index=False).agg(
        tied_share=("tied_share", "min"), n=("n", "max")
    )
    if by_step.empty or not by_step["tied_share"].iloc[-1] > TIED_LIMIT:
        return []
    last = by_step.iloc[-1]
    share, step, n = float(last["tied_share"]), int(last["step"]), int(last["n"])
    return [
        Finding(
            rule=TIES.name,
            severity="warning",
            confidence=confidence(share, TIED_LIMIT, TIED_CERTAIN),
            title=_(
                "At the last evaluation {share} of the queries or more tie with a wrong answer in each "
                "direction (n = {n})."
            ).format(share=percent(share, 1), n=f"{n:,}"),
            cause=_("Embeddings in half precision or of few bits, or embeddings that have collapsed."),
            advice=_("Evaluate in float32; look whether the embeddings still differ."),
            numbers=(
                Measured(name="tied_share", value=share, unit="1", n=n, first_step=step, last_step=step),
            ),
            evidence=Evidence(
                frame=by_step, x="epoch", y=("tied_share",), unit="1", limit=TIED_LIMIT, limit_name=_("limit")
            ),
            link=PageLink(page="training"),
        )
    ]


NOT_NORMALISED = Rule(
    name="not_normalised",
    title=mark("Features that are not normalized"),
    tables=("pairs",),
    needs=("pairs.positive_similarity",),
    check=check_norms,
)
TIES = Rule(
    name="ties",
    title=mark("Ties among the similarities"),
    tables=("evals",),
    needs=("evals.tied_share",),
    check=check_ties,
    early=False,
)
