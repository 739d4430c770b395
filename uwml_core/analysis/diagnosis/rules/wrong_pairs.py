"""Training pairs whose two halves may not belong together."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.diagnosis.finding import Evidence, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.series import current
from uwml_core.analysis.diagnosis.suspects import wrong_pair_limit, wrong_pair_ranking
from uwml_core.analysis.diagnosis.thresholds import (
    FEWEST_ENCOUNTERS,
    LEARNED_MARGIN,
    LOPSIDED_CERTAIN,
    LOPSIDED_LIMIT,
    LOPSIDED_UNDER_BELL,
)
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, mark

_EDGES = np.linspace(-1.0, 1.0, 81)
_BELL = ("curve", "steepness_start", "hard_floor")
_FLOOR, _STEEP = 0.1, 10.0


def check(frames: Frames) -> list[Finding]:
    """Find a long lower tail of margins: items that are learned much later than the others, or never.

    Margins of right pairs, averaged over the training, lie about as far below the median as above it; wrong
    pairs are the lower tail alone. Suspected are the items that lie farther below the median than 99 % of all
    lie above it.
    """
    margin = _mean_margins(frames)
    low, typical, learned, high = (float(q) for q in np.quantile(margin, [0.05, 0.5, 0.9, 0.95]))
    lopsided = (typical - low) / max(high - typical, 1e-9)
    limit, certain = _limits(frames)
    if not (learned > LEARNED_MARGIN and lopsided > limit):
        return []
    below = int((margin < wrong_pair_limit(margin)).sum())
    share = below / len(margin)
    return [
        Finding(
            rule=WRONG_PAIRS.name,
            severity="warning",
            confidence=confidence(lopsided, limit, certain),
            title=_(
                "{found} of {n} training items ({share}) are suspected wrong pairs: the lowest twentieth of "
                "the mean margins lies {lopsided} times as far below the median ({typical}) as the highest "
                "twentieth above."
            ).format(
                found=f"{below:,}",
                n=f"{len(margin):,}",
                share=percent(share),
                typical=fixed(typical, 3),
                lopsided=fixed(lopsided, 1),
            ),
            cause=_("Captions that belong to other items, or that say too little to find the item by."),
            advice=_("Look at the list, the lowest first, and mend or leave out the pairs that do not fit."),
            numbers=(
                Measured(name="lopsidedness", value=lopsided, n=len(margin)),
                Measured(name="suspected_share", value=share, unit="1", n=len(margin)),
                Measured(name="typical_margin", value=typical, unit="cosine", n=len(margin)),
            ),
            evidence=_histogram(margin),
            link=PageLink(page="hard_negatives", query={"tab": "wrong-pairs", "epoch": "all"}),
        )
    ]


def _limits(frames: Frames) -> tuple[float, float]:
    """Where suspicion begins and is certain: a bell without floor makes a tail by itself."""
    curve, start, floor = (current(frames, f"loss.{name}") for name in _BELL)
    if curve != "bell" or not isinstance(floor, int | float) or floor >= _FLOOR:
        return LOPSIDED_LIMIT, LOPSIDED_CERTAIN
    if isinstance(start, int | float) and start >= _STEEP:
        raise NotApplicable(
            _("A bell that is steep from the first step on leaves hard pairs unlearned, right or wrong.")
        )
    return LOPSIDED_UNDER_BELL


def _mean_margins(frames: Frames) -> np.ndarray:
    ranking = wrong_pair_ranking(frames.item_statistics)
    ranking = ranking[ranking["encounters"] >= 2 * FEWEST_ENCOUNTERS]
    if ranking.empty:
        raise NotApplicable(
            _("No item has met its negatives {needed} times.").format(needed=FEWEST_ENCOUNTERS)
        )
    return np.asarray(ranking["mean_margin"])


def _histogram(margin: np.ndarray) -> Evidence:
    counts, edges = np.histogram(margin, _EDGES)
    frame = pd.DataFrame({"mean_margin": (edges[:-1] + edges[1:]) / 2, "items": counts})
    used = np.flatnonzero(counts)
    frame = frame.iloc[used[0] : used[-1] + 1] if len(used) else frame
    return Evidence(
        frame=frame.reset_index(drop=True), x="mean_margin", y=("items",), kind="bar", unit="items"
    )


WRONG_PAIRS = Rule(
    name="wrong_pairs",
    title=mark("Suspected wrong pairs"),
    tables=("rollups/items",),
    needs=("item_statistics.margin_mean",),
    check=check,
)
