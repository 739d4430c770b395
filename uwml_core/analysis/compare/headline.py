"""Did it help? One or two sentences from the differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from uwml_core.analysis.compare.bootstrap import FEWEST_ITEMS
from uwml_core.analysis.compare.comparison import BETTER, SAME, UNKNOWN, WORSE, Comparison
from uwml_core.analysis.compare.outcomes import BEST
from uwml_core.analysis.compare.tables import records
from uwml_core.analysis.text import clauses, fixed, listed, sentences, signed
from uwml_core.i18n import _, ngettext

MIXED = "mixed"


def compare_headline(comparison: Comparison, chosen: int) -> str:
    """Say which methods beat the baseline, in R@1 with its 95 % interval.

    Args:
        comparison: what came out.
        chosen: runs that the visitor chose.
    """
    if chosen < 2:
        return _("Too little data yet: choose a second run to compare with.")
    others = list(dict.fromkeys(comparison.differences["method"]))
    if not others:
        return sentences(comparison.obstacles[:2]) or _one_method(comparison)
    rows = comparison.differences
    at_one = rows[rows["metric"] == "R@1"]
    verdicts = [_of(at_one[at_one["method"] == name]) for name in others]
    best = max(others, key=lambda name: at_one.loc[at_one["method"] == name, "difference"].mean())
    text = _sentence(rows[rows["method"] == best], best, comparison.methods[0].name)
    left_out = comparison.obstacles[0] if comparison.obstacles else ""
    if len(others) == 1:
        return sentences([text, _summed(rows), left_out])
    return sentences([_tally(verdicts, comparison.methods[0].name), text, left_out])


def _one_method(comparison: Comparison) -> str:
    text = _("The chosen runs are one method: they differ in the seed alone. Choose another to compare.")
    return text if comparison.methods else _("Too little data yet.")


def _of(rows: pd.DataFrame) -> str:
    """Verdict over both directions; ``MIXED`` where they contradict each other."""
    found = set(rows["verdict"])
    if {BETTER, WORSE} <= found:
        return MIXED
    return next((verdict for verdict in (BETTER, WORSE, SAME) if verdict in found), UNKNOWN)


def _tally(verdicts: list[str], baseline: str) -> str:
    text = _(
        "Of {n} methods held against {baseline}, {better} better, {worse} worse, {same} not beyond noise."
    )
    better, worse = verdicts.count(BETTER), verdicts.count(WORSE)
    same = len(verdicts) - better - worse
    return text.format(n=len(verdicts), baseline=baseline, better=better, worse=worse, same=same)


def _sentence(rows: pd.DataFrame, method: str, baseline: str) -> str:
    templates = {
        BETTER: _("{method} beats {baseline}: {evidence}."),
        WORSE: _("{method} is worse than {baseline}: {evidence}."),
        MIXED: _("{method} beats {baseline} in one direction and is worse in the other: {evidence}."),
        SAME: _("No difference beyond noise between {method} and {baseline}: {evidence}."),
        UNKNOWN: _("Too little data yet to tell {method} from {baseline}: {evidence}."),
    }
    at_one = rows[rows["metric"] == "R@1"]
    undecided = at_one["verdict"].isin([SAME, UNKNOWN])
    first, *others = records(at_one.assign(last=undecided).sort_values("last", kind="stable"))
    evidence = clauses([evidence_of(first), *map(further_evidence, others)])
    verdict = _of(at_one)
    if not at_one[["gained", "lost"]].to_numpy(dtype=np.float64).any():
        text = _("{method} and {baseline} find the same queries: no difference in R@1.")
        return text.format(method=method, baseline=baseline)
    return templates[verdict].format(method=method, baseline=baseline, evidence=evidence)


def _summed(rows: pd.DataFrame) -> str:
    """What the sum over all R@K says where R@1 alone says nothing."""
    row = records(rows[rows["metric"] == "rsum"])[0]
    is_news = _of(rows[rows["metric"] == "R@1"]) == SAME and row["verdict"] in (BETTER, WORSE)
    if not is_news:
        return ""
    text = _("The sum over R@1, R@5 and R@10 does differ: {difference}, 95 % interval {low} to {high}.")
    return text.format(**_numbers(row))


def _numbers(row: Mapping[str, Any]) -> dict[str, str]:
    prefix = "seed_" if np.isfinite(row["seed_low"]) else ""
    return {name: signed(row[f"{prefix}{name}"]) for name in ("difference", "low", "high")}


def evidence_of(row: Mapping[str, Any]) -> str:
    """A difference with its interval and what it rests on, seeds before queries.

    Args:
        row: of ``Comparison.differences``, a metric of one direction.
    """
    names = {"metric": row["metric"], "direction": row["direction"], **_numbers(row)}
    if np.isfinite(row["seed_low"]):
        text = _("{difference} {metric} ({direction}), 95 % interval {low} to {high}, paired over {n} seeds")
        return text.format(n=f"{row['seeds']:,}", **names)
    if not np.isfinite(row["low"]):
        text = ngettext(
            "{difference} {metric} ({direction}) of {n} query, {needed} items needed for an interval",
            "{difference} {metric} ({direction}) of {n} queries, {needed} items needed for an interval",
            int(row["queries"]),
        )
        return text.format(n=f"{row['queries']:,}", needed=FEWEST_ITEMS, **names)
    text = _("{difference} {metric} ({direction}), 95 % interval {low} to {high}, paired over {n} queries")
    return text.format(n=f"{row['queries']:,}", **names)


def further_evidence(row: Mapping[str, Any]) -> str:
    """The same in few words, after ``evidence_of`` another row."""
    names = {"direction": row["direction"], **_numbers(row)}
    if np.isfinite(row["seed_low"]):
        return _("{difference} ({direction}), {low} to {high}").format(**names)
    if not np.isfinite(row["low"]):
        text = ngettext(
            "{difference} ({direction}) of {n} query",
            "{difference} ({direction}) of {n} queries",
            int(row["queries"]),
        )
    else:
        text = _("{difference} ({direction}), {low} to {high}, {n} queries")
    return text.format(n=f"{row['queries']:,}", **names)


def seeds_note(differences: pd.DataFrame) -> str:
    """What the intervals know of seeds."""
    known = differences["seeds"]
    if known.empty:
        return ""
    if known.max() < 2:
        return _("One seed in common: the intervals are over queries and know nothing of other seeds")
    if known.min() >= 2:
        return _("Intervals are over seeds, those over queries stand in the table")
    return _("Intervals are over seeds where a method has two in common with the baseline, else over queries")


def chosen_note(at: str, moments: list[tuple[str, int | None, int]]) -> str:
    """Which evaluation of each run is compared.

    Args:
        at: ``last`` or ``best``.
        moments: name of a run, epoch (None where not logged) and step.
    """
    when: dict[tuple[int | None, int], list[str]] = {}
    for name, epoch, step in moments:
        when.setdefault((epoch, step), []).append(name)
    runs = clauses(_at(listed(names), epoch, step) for (epoch, step), names in when.items())
    if at == BEST:
        return _("Best evaluation of each run, which flatters all of them: {runs}").format(runs=runs)
    return _("Newest evaluations: {runs}").format(runs=runs) if len(when) > 1 else ""


def _at(names: str, epoch: int | None, step: int) -> str:
    if epoch is None:
        return _("{names} at step {step}").format(names=names, step=f"{step:,}")
    return _("{names} at epoch {epoch}").format(names=names, epoch=epoch)


def mean_text(value: float, half: float, decimals: int = 1) -> str:
    """A mean with half its interval behind a ±, where it has one.

    Example:
        >>> mean_text(33.07, 1.24), mean_text(33.07, float("nan"))
        ('33.1 ± 1.2', '33.1')
    """
    return fixed(value, decimals) + ("" if np.isnan(half) else f" ± {fixed(half, decimals)}")
