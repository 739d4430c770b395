"""Methods held against a baseline: differences with intervals over queries and over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from uwml_core.analysis.compare.bootstrap import Resampled, resample
from uwml_core.analysis.compare.comparable import obstacle
from uwml_core.analysis.compare.methods import Member, Method, methods_of
from uwml_core.analysis.compare.outcomes import Outcome, Ranks, higher_is_better
from uwml_core.analysis.compare.seeds import paired_differences, t_interval
from uwml_core.analysis.compare.wins import gained_and_lost, independent, mcnemar

DIFFERENCE_COLUMNS = (
    "method",
    "direction",
    "metric",
    "baseline",
    "value",
    "difference",
    "low",
    "high",
    "queries",
    "items",
    "gained",
    "lost",
    "mcnemar_p",
    "seed_difference",
    "seed_low",
    "seed_high",
    "seeds",
    "verdict",
)
BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "same", "unknown"

Entry = tuple[Member, Outcome | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """What came out.

    Attributes:
        methods: those that can be compared, the baseline first; empty where it has no ranks.
        outcomes: of each method's runs.
        resampled: metrics and resamples of the methods; None without methods.
        differences: ``DIFFERENCE_COLUMNS``, a row per other method and metric. ``low`` and ``high`` bound
            the difference over queries, ``seed_*`` that over the seeds that both methods have; ``gained``
            and ``lost`` count queries for R@K. ``verdict`` goes by the seeds where there are two or more.
        obstacles: why other runs were left out, a sentence each.
    """

    methods: list[Method]
    outcomes: list[list[Outcome]]
    resampled: Resampled | None
    differences: pd.DataFrame
    obstacles: list[str]

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions that have queries."""
        known = self.outcomes[0][0].ranks if self.outcomes else {}
        return tuple(d for d in self.methods[0].members[0].directions if d in known) if known else ()


def compare(entries: Sequence[Entry], baseline: str, split: str) -> Comparison:
    """Hold runs against a baseline.

    Args:
        entries: runs with the evaluation to compare, None where there is none.
        baseline: id of one of them.
        split: the split that was evaluated.
    """
    first = next(entry for entry in entries if entry[0].run_id == baseline)
    others = [entry for entry in entries if entry[0].run_id != baseline]
    reasons = [obstacle(first, entry, split) for entry in others]
    obstacles = list(dict.fromkeys(reason for reason in reasons if reason))
    if first[1] is None or not first[1].ranks:
        obstacles = list(dict.fromkeys([obstacle(first, first, split), *obstacles]))
        return Comparison(
            methods=[], outcomes=[], resampled=None, differences=_frame([]), obstacles=obstacles
        )
    usable = [first, *(entry for entry, reason in zip(others, reasons, strict=True) if not reason)]
    known = {member.run_id: outcome for member, outcome in usable if outcome is not None}
    methods = methods_of([member for member, _outcome in usable])
    outcomes = [[known[member.run_id] for member in method.members] for method in methods]
    resampled = resample(outcomes, first[0].directions)
    rows = [row for m in range(1, len(methods)) for row in _rows(methods, outcomes, resampled, m)]
    return Comparison(
        methods=methods,
        outcomes=outcomes,
        resampled=resampled,
        differences=_frame(rows),
        obstacles=obstacles,
    )


def _frame(rows: list[dict[str, object]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(DIFFERENCE_COLUMNS))


def _rows(
    methods: Sequence[Method], outcomes: Sequence[Sequence[Outcome]], resampled: Resampled, m: int
) -> list[dict[str, object]]:
    low, high = resampled.interval(m, 0)
    per_seed = [seed_values(methods[k], outcomes[k], resampled.names) for k in (0, m)]
    rows: list[dict[str, object]] = []
    for k, (direction, metric) in enumerate(resampled.names):
        seeds = t_interval(paired_differences(per_seed[0][k], per_seed[1][k]))
        row = {
            "method": methods[m].name,
            "direction": direction,
            "metric": metric,
            "baseline": resampled.value[0, k],
            "value": resampled.value[m, k],
            "difference": resampled.value[m, k] - resampled.value[0, k],
            "low": low[k],
            "high": high[k],
            "items": resampled.items,
            **_counts(outcomes[0], outcomes[m], direction, metric),
            "seed_difference": seeds.mean,
            "seed_low": seeds.low,
            "seed_high": seeds.high,
            "seeds": seeds.n,
        }
        by_seeds = math.isfinite(seeds.low)
        bounds = (seeds.low, seeds.high) if by_seeds else (float(low[k]), float(high[k]))
        rows.append({**row, "verdict": _verdict(*bounds, metric)})
    return rows


def _counts(
    baseline: Sequence[Outcome], other: Sequence[Outcome], direction: str, metric: str
) -> dict[str, object]:
    if not direction:
        n = sum(len(ranks) for ranks in baseline[0].ranks.values())
        return {"queries": n, "gained": None, "lost": None, "mcnemar_p": math.nan}
    was, now = ([run.ranks[direction] for run in runs] for runs in (baseline, other))
    if not metric.startswith("R@"):
        return {"queries": len(was[0]), "gained": None, "lost": None, "mcnemar_p": math.nan}
    gained, lost = gained_and_lost(was, now, int(metric[2:]))
    alone = len(was) == len(now) == 1 and independent(was[0])
    p = mcnemar(gained, lost) if alone else math.nan
    return {"queries": len(was[0]), "gained": gained, "lost": lost, "mcnemar_p": p}


def _verdict(low: float, high: float, metric: str) -> str:
    if math.isnan(low) or math.isnan(high):
        return UNKNOWN
    if low <= 0.0 <= high:
        return SAME
    return BETTER if (low > 0.0) == higher_is_better(metric) else WORSE


def seed_values(
    method: Method, outcomes: Sequence[Outcome], names: Sequence[tuple[str, str]]
) -> list[dict[int, float]]:
    """A method's metrics per seed; runs of the same seed are averaged.

    Args:
        method: the method.
        outcomes: of its runs.
        names: (direction, metric) of the metrics.

    Returns:
        For each metric its value by seed; runs without a seed are left out.
    """
    found = []
    for direction, metric in names:
        by_seed: dict[int, list[float]] = {}
        for member, outcome in zip(method.members, outcomes, strict=True):
            if member.seed is not None:
                by_seed.setdefault(member.seed, []).append(metric_value(outcome, direction, metric))
        found.append({seed: float(np.mean(values)) for seed, values in by_seed.items()})
    return found


def metric_value(outcome: Outcome, direction: str, metric: str) -> float:
    """One metric of one evaluation, counted from its ranks; R@K in percent.

    Args:
        outcome: the evaluation.
        direction: empty for ``rsum``.
        metric: ``R@1``, ``R@5``, ``R@10``, ``median_rank`` or ``rsum``.
    """
    if metric == "rsum":
        return float(sum(_hit_rate(r, k) for r in outcome.ranks.values() for k in (1, 5, 10)))
    ranks = outcome.ranks[direction]
    if metric == "median_rank":
        return float(np.median(np.where(np.isnan(ranks.rank), np.inf, ranks.rank)))
    return _hit_rate(ranks, int(metric[2:]))


def _hit_rate(ranks: Ranks, k: int) -> float:
    return 100.0 * float((ranks.rank <= k).mean())
