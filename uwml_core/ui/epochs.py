"""Choose an epoch: the newest, all of them, or one."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from uwml_core.i18n import _
from uwml_core.ui.choice import choice

LATEST, ALL = "latest", "all"


def epoch_choice(epochs: Sequence[int], *, until: bool = False) -> int | None:
    """Let the visitor choose an epoch; the address carries ``latest``, ``all`` or its number.

    Args:
        epochs: epochs that were logged.
        until: whether the page looks at everything up to the epoch, which the label then says.

    Returns:
        The epoch, None for all of them or where none was logged.
    """
    names = {LATEST: _("Latest epoch"), ALL: _("All epochs")}

    def name(option: str) -> str:
        return names.get(option) or _("Epoch {epoch}").format(epoch=option)

    label = _("Everything up to") if until else _("Pairs of")
    chosen = choice(label, "epoch", [LATEST, ALL, *map(str, epochs)], LATEST, name)
    if chosen == ALL or not epochs:
        return None
    return max(epochs) if chosen == LATEST else int(chosen)


def progress_of(epochs: pd.DataFrame, epoch: int | None) -> float:
    """Progress at the middle of an epoch, or of the newest one; NaN where it was not logged.

    Args:
        epochs: frame of ``epoch_progress``.
        epoch: which epoch; None for the newest.
    """
    if epochs.empty:
        return float("nan")
    rows = epochs if epoch is None else epochs[epochs["epoch"] == epoch]
    return float(rows["progress"].iloc[-1]) if len(rows) else float("nan")
