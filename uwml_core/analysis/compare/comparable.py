"""Whether runs may be compared at all: the same data, split and queries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from uwml_core.analysis.compare.methods import Member
from uwml_core.analysis.compare.outcomes import RECALL_AT, Outcome
from uwml_core.analysis.text import fixed, listed
from uwml_core.i18n import _

# Recall is logged in float64 and recounted from ranks in float32: equal up to rounding.
TOLERANCE = 1e-6


def obstacle(
    baseline: tuple[Member, Outcome | None], other: tuple[Member, Outcome | None], split: str
) -> str:
    """Why two runs cannot be compared, as a sentence; empty where they can.

    Args:
        baseline, other: each run with its evaluation, None where it has none.
        split: the split that both should have been evaluated on.
    """
    (first, was), (second, now) = baseline, other
    names = {"first": first.name, "second": second.name}
    if first.directions != second.directions:
        return _("{first} and {second} cannot be compared: they retrieve between other modalities.").format(
            **names
        )
    if not shares_data(first, second):
        return _("{first} and {second} cannot be compared: they are runs on different data.").format(**names)
    for member, outcome in ((first, was), (second, now)):
        if outcome is None:
            text = _("Too little data yet: {name} has no ranks on {split}.")
            return text.format(name=member.name, split=split)
    return _other_queries(was, now, first, second) if was and now else ""


def shares_data(first: Member, second: Member) -> bool:
    """Whether two runs retrieve between the same modalities on data that are not known to be different."""
    prints = {first.fingerprint, second.fingerprint} - {None}
    return first.directions == second.directions and len(prints) < 2


def _other_queries(was: Outcome, now: Outcome, first: Member, second: Member) -> str:
    for direction in first.directions:
        one, two = was.ranks.get(direction), now.ranks.get(direction)
        if (one is None) != (two is None) or (one and two and len(one) != len(two)):
            counts = {"a": f"{len(one) if one else 0:,}", "b": f"{len(two) if two else 0:,}"}
            return _(
                "{first} and {second} cannot be compared: they answered {a} and {b} {direction} queries."
            ).format(first=first.name, second=second.name, direction=direction, **counts)
        if one and two and not one.asks_the_same(two):
            text = _("{first} and {second} cannot be compared: they answered other {direction} queries.")
            return text.format(first=first.name, second=second.name, direction=direction)
    return ""


def recount_error(outcome: Outcome, evals: pd.DataFrame, split: str) -> float:
    """Largest difference between logged R@K and that counted from ``ranks``, points.

    Args:
        outcome: an evaluation.
        evals: frame of the table ``evals``.
        split: which split.

    Returns:
        The difference; NaN where the evaluation was not logged in ``evals``.
    """
    mine = evals[(evals["split"] == split) & (evals["step"] == outcome.step)]
    logged = {
        (str(d), m): v for d, m, v in zip(mine["direction"], mine["metric"], mine["value"], strict=True)
    }
    errors = [
        abs(logged[direction, f"R@{k}"] - 100.0 * float((ranks.rank <= k).mean()))
        for direction, ranks in outcome.ranks.items()
        for k in RECALL_AT
        if pd.notna(logged.get((direction, f"R@{k}")))
    ]
    return max(errors, default=float("nan"))


def recount_note(errors: Sequence[tuple[str, float]]) -> str:
    """Says whether hit rates from ``ranks`` are those in ``evals``.

    Args:
        errors: name of a run and its ``recount_error``.
    """
    wrong = [f"{name} ({fixed(error, 2)})" for name, error in errors if error > TOLERANCE]
    if wrong:
        text = _("Hit rates counted from ranks differ from the logged R@K, by so many points: {runs}")
        return text.format(runs=listed(wrong))
    known = any(math.isfinite(error) for _name, error in errors)
    if not known:
        return _("No logged R@K to check the hit rates against")
    return _("Hit rates counted from ranks equal the logged R@K")
