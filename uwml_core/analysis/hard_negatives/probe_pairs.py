"""Encounters of a run without training steps: each probe with its nearest wrong candidate."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from uwml_core.analysis.hard_negatives.confusions import PAIR_COLUMNS
from uwml_core.i18n import ngettext

# As in the run log: how far above its positive a negative is suspected to be a right answer.
_SUSPICION = 0.1


def probe_pairs(neighbors: pd.DataFrame, epoch: int | None, *, until: bool) -> tuple[pa.Table, str]:
    """Rows like those of ``pairs`` from the nearest wrong candidates of the probes.

    Args:
        neighbors: frame of ``persistent.with_margin``.
        epoch: which snapshots; None for all.
        until: whether earlier epochs belong to it.

    Returns:
        Table of ``confusions.PAIR_COLUMNS``, ``weight`` null, and a sentence about where they come from.
    """
    rows = neighbors[neighbors["rank"] == 1]
    if epoch is not None:
        rows = rows[rows["epoch"] <= epoch if until else rows["epoch"] == epoch]
    told = rows.assign(
        weight=pd.Series(pd.NA, index=rows.index, dtype="Float32"),
        suspected_false_negative=rows["margin"] < -_SUSPICION,
    )
    note = ngettext(
        "From the probes of {n} snapshot, with the first caption of each, as no pairs were logged",
        "From the probes of {n} snapshots, with the first caption of each, as no pairs were logged",
        rows["step"].nunique(),
    ).format(n=rows["step"].nunique())
    return pa.Table.from_pandas(told[list(PAIR_COLUMNS)], preserve_index=False), note
