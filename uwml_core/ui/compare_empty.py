"""A comparison with nothing to compare yet: why, and what to do."""

from __future__ import annotations

import streamlit as st

from uwml_core.analysis.compare.comparison import Comparison
from uwml_core.i18n import _
from uwml_core.ui.compare_choice import CompareChoice
from uwml_core.ui.empty import empty_folder
from uwml_core.ui.read import runs
from uwml_core.ui.text import headline, note, notes, section

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
        if not found.methods and len(chosen.runs) > 0:
            note(_("Intervals come from the ranks of the same queries in every run. To log them:"))
            st.code(_RANKS, language="python")
        elif len(chosen.runs) < 2:
            note(_("Two runs on the same data, such as the loss with and without weights:"))
            st.code(_SECOND_RUN, language="bash")
        if not found.obstacles:
            note(_("Three seeds or more of each, to tell a better method from a lucky seed:"))
            st.code(_SEEDS, language="bash")
