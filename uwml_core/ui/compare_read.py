"""Cached reading for comparisons; keyed by the versions of all runs that take part."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd
import pyarrow.compute as pc
import streamlit as st

from uwml_core.analysis.compare.comparable import recount_error
from uwml_core.analysis.compare.comparison import Comparison, compare
from uwml_core.analysis.compare.methods import Member, member_of
from uwml_core.analysis.compare.outcomes import (
    RANK_COLUMNS,
    SUMMARY_COLUMNS,
    Outcome,
    choose,
    evaluations,
    outcome_of,
    summarise,
)
from uwml_core.i18n import language
from uwml_core.runlog.reader import Run
from uwml_core.ui.kept import version_of
from uwml_core.ui.read import evals
from uwml_core.ui.shared import shared

if TYPE_CHECKING:
    from uwml_core.ui.compare_choice import CompareChoice

T = TypeVar("T")


def members(runs: Sequence[Run]) -> list[Member]:
    """Runs as they take part in a comparison."""
    return [member_of(run) for run in runs]


def splits(runs: Sequence[Run]) -> list[str]:
    """Splits that any of the runs has ranks of, sorted."""
    return sorted({str(split) for run in runs for split in _evaluations_of(run)["split"].dropna()})


def comparison(chosen: CompareChoice) -> Comparison:
    """What comes out of the chosen runs."""
    entries = [
        (member, outcome(run, chosen.split, chosen.at))
        for run, member in zip(chosen.runs, members(chosen.runs), strict=True)
    ]
    return kept_for(chosen, "comparison", lambda: compare(entries, chosen.baseline, chosen.split))


def outcome(run: Run, split: str, at: str) -> Outcome | None:
    """The evaluation of a run that is compared; None where it has none."""
    when = choose(_evaluations_of(run), split, at)
    return None if when is None else _outcome(str(run.path), version_of(run), split, when, _run=run)


def recount_errors(chosen: CompareChoice) -> list[tuple[str, float]]:
    """For each run how far its logged R@K is from that counted from its ranks."""
    found = []
    for run in chosen.runs:
        one = outcome(run, chosen.split, chosen.at)
        if one is not None:
            found.append((run.name, recount_error(one, evals(run), chosen.split)))
    return found


def entries_at(chosen: CompareChoice) -> dict[str, tuple[str, int | None, int]]:
    """Name, epoch and step of each run's evaluation, by run id."""
    found = [(run, outcome(run, chosen.split, chosen.at)) for run in chosen.runs]
    return {run.run_id: (run.name, one.epoch, one.step) for run, one in found if one is not None}


def kept_for(chosen: CompareChoice, key: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` gives, made once per versions of the runs, choice and language; shared, never copied.

    Args:
        chosen: what all of it comes from.
        key: names the result, and every further choice that it depends on.
        make: computes it.
    """
    versions = tuple((str(run.path), version_of(run)) for run in chosen.runs)
    choice = (chosen.baseline, chosen.at, chosen.split)
    result: T = _kept(versions, choice, language(), st.context.theme.get("type"), key, _make=make)
    return result


@shared
def _kept(
    versions: Hashable,
    choice: Hashable,
    language: str,
    scheme: str | None,
    key: Hashable,
    *,
    _make: Callable[[], Any],
) -> Any:
    return _make()


def _evaluations_of(run: Run) -> pd.DataFrame:
    return _evaluations(str(run.path), version_of(run), _run=run)


@shared
def _evaluations(path: str, version: Hashable, *, _run: Run) -> pd.DataFrame:
    return evaluations(_run.map_parts("ranks", summarise, columns=list(SUMMARY_COLUMNS)))


@shared
def _outcome(path: str, version: Hashable, split: str, when: tuple[int, int | None], *, _run: Run) -> Outcome:
    step, epoch = when
    rows = (pc.field("step") == step) & (pc.field("split") == split)
    table = _run.table("ranks", columns=list(RANK_COLUMNS), filter=rows)
    return outcome_of(table, step, epoch, _run.directions)
