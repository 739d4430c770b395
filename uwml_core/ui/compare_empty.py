"""A comparison with nothing to compare yet: why, and what to do."""

from __future__ import annotations

import streamlit as st

from uwml_core.analysis.compare.comparable import shares_data
from uwml_core.analysis.compare.comparison import Comparison
from uwml_core.analysis.text import listed
from uwml_core.i18n import _
from uwml_core.ui.compare_choice import CompareChoice, readable
from uwml_core.ui.compare_read import members, outcome
from uwml_core.ui.empty import empty_folder
from uwml_core.ui.read import runs
from uwml_core.ui.text import headline, note, notes, section

# Runs to choose instead that are named.
_MOST_NAMES = 6

_SECOND_RUN = """uwml train --preset infonce --set run.name=infonce
uwml train --preset uwml --set run.name=uwml"""

_SEEDS = """for seed in 0 1 2; do
  uwml train --preset uwml --set run.name=uwml-$seed --set train.seed=$seed
done"""

_RANKS = """log.log_ranks(step=step, epoch=epoch, split="val", direction="i2t",
              item_ids=item_ids, captions=None, ranks=ranks)  # 1 is best
log.log_ranks(step=step, epoch=epoch, split="val", direction="t2i",
              item_ids=item_ids, captions=captions, ranks=ranks)
"""


def empty_comparison() -> bool:
    """Say that no run is there, where that is so; returns whether it is."""
    if runs():
        return False
    empty_folder()
    return True


def choose_runs(chosen: CompareChoice) -> None:
    """Say that no run is chosen."""
    headline(_("Choose two runs or more."))
    unknown_runs(chosen)


def unknown_runs(chosen: CompareChoice) -> None:
    """Say which runs of the address are not there."""
    if chosen.unknown:
        text = _("The address asks for runs that are not in this folder: {runs}.")
        note(text.format(runs=", ".join(chosen.unknown)))


def nothing_to_compare(chosen: CompareChoice, found: Comparison) -> None:
    """Say why there is no difference to show, and how there would be one.

    Args:
        chosen: what was to be compared.
        found: what came out, without differences.
    """
    with st.container(border=True, key="card-nothing"):
        section(_("What a comparison needs"))
        # the headline holds the first two
        notes(*found.obstacles[2:])
        if not found.methods or _lacks_ranks(chosen):
            note(_("Intervals come from the ranks of the same queries in every run. To log them:"))
            st.code(_RANKS, language="python")
        elif len(chosen.runs) < 2:
            _teach_second_run()
        elif found.obstacles:
            note(_("Every run has to answer the same queries: those of the same data and split."))
            instead = _alike(chosen)
            for text in instead:
                note(text)
            if not instead:
                _teach_second_run()
        if not found.obstacles:
            note(_("Three seeds or more of each, to tell a better method from a lucky seed:"))
            st.code(_SEEDS, language="bash")


def _teach_second_run() -> None:
    note(_("Two runs on the same data, such as the loss with and without weights:"))
    st.code(_SECOND_RUN, language="bash")


def _lacks_ranks(chosen: CompareChoice) -> bool:
    """Whether a run that could be held against the baseline otherwise has no ranks to do so."""
    found = members(chosen.runs)
    baseline = next(member for member in found if member.run_id == chosen.baseline)
    return any(
        outcome(run, chosen.split, chosen.at) is None
        for run, member in zip(chosen.runs, found, strict=True)
        if shares_data(baseline, member)
    )


def _alike(chosen: CompareChoice) -> list[str]:
    """For each chosen run the others with ranks on its data, a sentence each; none where there is none."""
    ranked = members([run for run in readable(runs()) if run.has("ranks")])
    taken = {run.run_id for run in chosen.runs}
    texts = []
    for mine in members(chosen.runs):
        data = mine.fingerprint, mine.directions
        names = [m.name for m in ranked if (m.fingerprint, m.directions) == data and m.run_id not in taken]
        if names and mine.fingerprint is not None:
            more = ["…"] if len(names) > _MOST_NAMES else []
            text = _("On the data of {name} are also {runs}.")
            texts.append(text.format(name=mine.name, runs=listed([*names[:_MOST_NAMES], *more])))
    return texts
