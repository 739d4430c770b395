"""What is confused most: how often an anchor's hardest negative lies above its positive."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.text import percent
from uwml_core.i18n import _, ngettext


def below_shares(confusions: pd.DataFrame, directions: tuple[str, str]) -> pd.DataFrame:
    """Share of encounters whose hardest negative lies above the positive.

    Returns:
        Frame ``[direction, share, n]``, a row per direction; share NaN without encounters.
    """
    mine = [(confusions["direction"] == direction).to_numpy() for direction in directions]
    below, n = (
        np.array([confusions[name].to_numpy()[rows].sum() for rows in mine], np.int64)
        for name in ("below", "n")
    )
    share = below / np.where(n > 0, n, np.nan)
    return pd.DataFrame({"direction": list(directions), "share": share, "n": n})


def hardest_headline(confusions: pd.DataFrame, directions: tuple[str, str], when: str) -> str:
    """One sentence: how much is confused in each direction.

    Args:
        confusions: frame of ``confusions``.
        directions: the run's directions.
        when: what the rows belong to, such as "epoch 3".
    """
    shares = below_shares(confusions, directions)
    known = shares[shares["n"] > 0]
    if known.empty:
        return _("Too little data yet: no pair with a negative has been logged.")
    parts = [
        ngettext("{share} of {n} {direction} pair", "{share} of {n} {direction} pairs", int(row["n"])).format(
            share=percent(row["share"], 1), n=f"{int(row['n']):,}", direction=row["direction"]
        )
        for _index, row in known.iterrows()
    ]
    text = _("In {when}, {parts} lie below their hardest negative.")
    return text.format(when=when, parts=_(" and ").join(parts))
