"""Queries that one method answers and another does not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from uwml_core.analysis.compare.outcomes import Outcome, Ranks

WIN_COLUMNS = ("direction", "item_id", "caption", "rank_before", "rank_after", "change")


def mean_hits(runs: Sequence[Ranks], k: int) -> np.ndarray:
    """Share of a method's runs that find each query's answer among the first k, [Q]."""
    return np.asarray(np.mean([run.rank <= k for run in runs], axis=0))


def gained_and_lost(baseline: Sequence[Ranks], other: Sequence[Ranks], k: int) -> tuple[int, int]:
    """Queries that the other method finds more often than the baseline, and less often."""
    change = mean_hits(other, k) - mean_hits(baseline, k)
    return int((change > 0).sum()), int((change < 0).sum())


def mcnemar(gained: int, lost: int) -> float:
    """Two-sided exact p of McNemar's test: that a changed query is gained as easily as lost.

    Only for queries that are independent of each other.

    Args:
        gained, lost: queries that only one of both answers.

    Example:
        >>> mcnemar(8, 2), mcnemar(0, 0)
        (0.109375, 1.0)
    """
    n, fewer = gained + lost, min(gained, lost)
    k = np.arange(1, fewer + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((n - k + 1) / k))]) - n * math.log(2.0)
    return min(1.0, round(2.0 * float(np.exp(logs).sum()), 12))


def independent(ranks: Ranks) -> bool:
    """Whether no item asks twice."""
    return len(np.unique(ranks.item)) == len(ranks)


def won_queries(
    baseline: Sequence[Outcome], other: Sequence[Outcome], directions: Sequence[str], k: int = 1
) -> pd.DataFrame:
    """Queries whose answer is among the first k of one method only, the clearest change first.

    Args:
        baseline, other: outcomes of each method's runs, of the same queries.
        directions: which directions.
        k: the place that counts as found.

    Returns:
        Frame with ``WIN_COLUMNS``: mean ranks over the runs, NaN where a run has none; ``change`` is the
        difference of the shares of runs that find the answer, positive where the other method gains.
    """
    frames = []
    for direction in directions:
        if direction not in baseline[0].ranks:
            continue
        was, now = ([run.ranks[direction] for run in runs] for runs in (baseline, other))
        frame = pd.DataFrame(
            {
                "direction": direction,
                "item_id": was[0].item,
                "caption": was[0].caption,
                "rank_before": np.mean([run.rank for run in was], axis=0),
                "rank_after": np.mean([run.rank for run in now], axis=0),
                "change": mean_hits(now, k) - mean_hits(was, k),
            }
        )
        frames.append(frame[frame["change"] != 0])
    if not frames:
        return pd.DataFrame(columns=list(WIN_COLUMNS))
    found = pd.concat(frames, ignore_index=True)
    moved = np.abs(np.log(found["rank_before"] / found["rank_after"]))
    order = found.assign(much=found["change"].abs(), moved=moved)
    order = order.sort_values(["much", "moved"], ascending=False, kind="stable")
    return order[list(WIN_COLUMNS)].reset_index(drop=True)
