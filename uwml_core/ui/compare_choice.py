"""Which runs are compared, with which baseline, at which evaluation; all of it in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from uwml_core.analysis.compare.comparison import Comparison
from uwml_core.analysis.compare.methods import methods_of, plain_first
from uwml_core.analysis.compare.outcomes import BEST, LAST
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run, SchemaTooNew
from uwml_core.ui.choice import choice
from uwml_core.ui.compare_read import members, splits
from uwml_core.ui.frame import chosen_run
from uwml_core.ui.read import runs

RUNS, BASELINE, AGAINST = "runs", "baseline", "against"
MOST_RUNS = 24
_SEEN, _PICKED, _OWN = "_runs_in_address", "_run_of_comparison", "_runs_by_hand"


@dataclass(frozen=True, kw_only=True)
class CompareChoice:
    """What to compare.

    Attributes:
        runs: the chosen runs, in their order.
        baseline: id of one of them.
        at: ``last`` or ``best``.
        split: which split.
        unknown: ids that the address names and the folder does not hold.
    """

    runs: tuple[Run, ...]
    baseline: str
    at: str
    split: str
    unknown: tuple[str, ...] = ()


def compare_choice() -> CompareChoice:
    """Draw the choice of runs, baseline, evaluation and, where there are several, split."""
    known = {run.run_id: run for run in readable(runs())}
    unknown = _adopt(known)
    names = [run.name for run in known.values()]

    def label(run_id: str) -> str:
        name = known[run_id].name
        return name if names.count(name) == 1 else f"{name} ({run_id})"

    st.multiselect(
        _("Runs to compare"), list(known), key=RUNS, format_func=label, max_selections=MOST_RUNS,
        on_change=_by_hand, placeholder=_("Choose runs"),
        help=_("Runs that differ in the seed alone are one method"),
    )  # fmt: skip
    chosen = tuple(known[run_id] for run_id in st.session_state[RUNS])
    _publish()
    if not chosen:
        return CompareChoice(runs=(), baseline="", at=LAST, split="", unknown=unknown)
    baseline = _baseline(chosen)
    moments = {LAST: _("Newest"), BEST: _("Best by R@1")}
    at = choice(_("Evaluation"), "at", list(moments), LAST, moments.__getitem__)
    found = splits(chosen)
    preferred = "val" if "val" in found or not found else found[0]
    split = choice(_("Split"), "split", found, preferred, str) if len(found) > 1 else preferred
    return CompareChoice(runs=chosen, baseline=baseline, at=at, split=split, unknown=unknown)


def _baseline(chosen: Sequence[Run]) -> str:
    """Draw the choice of a method to hold the others against; gives the id of its first run."""
    found = members(chosen)
    methods = {method.members[0].run_id: method for method in methods_of(found)}
    first_of = {m.run_id: first for first, method in methods.items() for m in method.members}
    asked = st.query_params.get(BASELINE)
    if asked in first_of:
        st.query_params[BASELINE] = first_of[asked]
    natural = first_of[plain_first(found, members(_picked() or chosen[:1])[0]).run_id]
    return choice(_("Baseline"), BASELINE, list(methods), natural, lambda first: methods[first].name)


def against_choice(found: Comparison) -> int:
    """Draw the choice of the method whose differences are listed, where there are several.

    Args:
        found: what came out, with at least one other method.

    Returns:
        Its place among the methods; the one with the highest R@1 unless chosen otherwise.
    """
    others = found.methods[1:]
    if len(others) < 2:
        return 1
    rows = found.differences[found.differences["metric"] == "R@1"]
    best = rows.groupby("method", sort=False)["value"].mean().idxmax()
    ids = {method.members[0].run_id: method.name for method in others}
    default = next(first for first, name in ids.items() if name == best)
    chosen = choice(_("Details of"), AGAINST, list(ids), default, ids.__getitem__)
    return 1 + list(ids).index(chosen)


def readable(found: Sequence[Run]) -> list[Run]:
    """Runs whose tables this version can read."""
    kept = []
    for run in found:
        try:
            run.refuse_newer()
        except SchemaTooNew:
            continue
        kept.append(run)
    return kept


def _by_hand() -> None:
    st.session_state[_OWN] = True


def _adopt(known: dict[str, Run]) -> tuple[str, ...]:
    """Bring the runs of the address, the run picker or natural ones into the session; gives unknown ids."""
    state = st.session_state
    asked = tuple(st.query_params.get_all(RUNS))
    # a widget that was not drawn for a while has lost its state
    chosen = list(state.get(RUNS, state.get(_SEEN, ())))
    new = bool(asked) and (RUNS not in state or asked != state.get(_SEEN))
    picked = next((run.run_id for run in _picked()), None)
    changed, state[_PICKED] = state.get(_PICKED, picked) != picked, picked
    if new:
        chosen, state[_OWN] = list(dict.fromkeys(asked)), True
    elif not state.get(_OWN):
        chosen = _natural(known, picked)
    elif changed and picked is not None and picked not in chosen:
        chosen.append(picked)
    state[RUNS] = [run_id for run_id in chosen if run_id in known][-MOST_RUNS:]
    return tuple(run_id for run_id in asked if run_id not in known) if new else ()


def _publish() -> None:
    """Write the runs to the address."""
    value = tuple(st.session_state[RUNS])
    st.session_state[_SEEN] = value
    if tuple(st.query_params.get_all(RUNS)) != value:
        st.query_params[RUNS] = list(value)


def _picked() -> tuple[Run, ...]:
    run = chosen_run()
    return () if run is None else (run,)


def _natural(known: dict[str, Run], picked: str | None) -> list[str]:
    """The picked run, what it is naturally held against, and other seeds of both."""
    if picked not in known:
        return list(known)[:2]
    fingerprint = known[picked].info.get("data_fingerprint")
    same_data = [run for run in known.values() if run.info.get("data_fingerprint") == fingerprint]
    # a run without ranks can be held against nothing
    alike = members([run for run in same_data if run.run_id == picked or run.has("ranks")])
    mine = next(member for member in alike if member.run_id == picked)
    others = [m for m in alike if m.run_id != picked and m.directions == mine.directions]
    if not others:
        return [picked]
    pair = {picked, plain_first(others, mine).run_id}
    methods = [m for m in methods_of([mine, *others]) if pair & {one.run_id for one in m.members}]
    return [member.run_id for method in methods for member in method.members][:MOST_RUNS]
