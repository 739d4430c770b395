"""Wrong candidates that stay the nearest one from snapshot to snapshot."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.text import percent
from uwml_core.i18n import _, ngettext

FEWEST_SNAPSHOTS = 3
COLUMNS = (
    "direction",
    "item_id",
    "caption",
    "negative_item_id",
    "negative_caption",
    "margin",
    "n",
    "snapshots",
    "first_epoch",
    "last_epoch",
)


def with_margin(neighbors: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``neighbors`` with ``margin`` = positive_similarity − similarity, in float64.

    Args:
        neighbors: frame of the table ``neighbors``.

    Returns:
        Sorted by direction, item, step and rank, directions as text; rows without a margin are left out.
    """
    margin = neighbors["positive_similarity"].astype(np.float64) - neighbors["similarity"].astype(np.float64)
    rows = neighbors.assign(direction=neighbors["direction"].astype(object), margin=margin)
    rows = rows[rows["margin"].notna() & rows["direction"].notna()]
    rows["epoch"] = rows["epoch"].fillna(-1).astype(np.int64)
    return rows.sort_values(["direction", "item_id", "step", "rank"], kind="stable").reset_index(drop=True)


def until(rows: pd.DataFrame, epoch: int | None) -> pd.DataFrame:
    """Rows up to an epoch; all of them for None."""
    return rows if epoch is None else rows[rows["epoch"] <= epoch]


def persistent(neighbors: pd.DataFrame) -> pd.DataFrame:
    """Probes whose nearest wrong candidate has been the same for the last snapshots.

    Args:
        neighbors: frame of ``with_margin``.

    Returns:
        Frame of ``COLUMNS``: ``n`` snapshots in a row, up to the last one, of ``snapshots``, the epoch in
        which that began and the last one, ``margin`` at the last one. Only n >= ``FEWEST_SNAPSHOTS``,
        longest first, then the lowest margin.
    """
    nearest = neighbors[neighbors["rank"] == 1]
    steps = np.sort(nearest["step"].unique())
    if len(steps) < FEWEST_SNAPSHOTS:
        return pd.DataFrame(columns=list(COLUMNS))
    first, last = _last_streaks(nearest, steps)
    long = last - first + 1 >= FEWEST_SNAPSHOTS
    first, last = first[long], last[long]
    epoch = nearest["epoch"].to_numpy()
    found = nearest.iloc[last].assign(
        n=last - first + 1, snapshots=len(steps), first_epoch=epoch[first], last_epoch=epoch[last]
    )
    found = found.sort_values(["n", "margin", "direction", "item_id"], ascending=[False, True, True, True])
    tidy: pd.DataFrame = found[list(COLUMNS)].reset_index(drop=True)
    return tidy


def _last_streaks(nearest: pd.DataFrame, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each probe the first and last row in which its newest candidate is there without a break.

    A probe that the newest snapshot does not have gets a first row behind its last.
    """
    item, direction = nearest["item_id"].to_numpy(), nearest["direction"].to_numpy()
    starts = np.flatnonzero(np.append(True, (item[1:] != item[:-1]) | (direction[1:] != direction[:-1])))
    ends = np.append(starts[1:], len(item))
    count = ends - starts
    place = np.arange(len(item))
    candidate = nearest["negative_item_id"].to_numpy()
    age = len(steps) - 1 - np.searchsorted(steps, nearest["step"].to_numpy())
    held = (candidate == np.repeat(candidate[ends - 1], count)) & (age == np.repeat(ends, count) - 1 - place)
    broken = np.maximum.reduceat(np.where(held, -1, place), starts)
    return np.maximum(broken + 1, starts), ends - 1


def persistent_note(rows: pd.DataFrame) -> str:
    """What the persistent ones were looked for in."""
    n = int(rows["step"].nunique())
    return ngettext(
        "From {n} snapshot of the probes, the nearest of a fixed pool",
        "From {n} snapshots of the probes, the nearest of a fixed pool",
        n,
    ).format(n=n)


def persistent_headline(neighbors: pd.DataFrame, found: pd.DataFrame) -> str:
    """One sentence: how many probes keep their nearest wrong candidate.

    Args:
        neighbors: frame of ``with_margin``.
        found: frame of ``persistent``.
    """
    snapshots = neighbors["step"].nunique()
    if snapshots < FEWEST_SNAPSHOTS:
        return ngettext(
            "Too little data yet: {count} snapshot, {needed} needed to see what persists.",
            "Too little data yet: {count} snapshots, {needed} needed to see what persists.",
            snapshots,
        ).format(count=snapshots, needed=FEWEST_SNAPSHOTS)
    queries = int(((neighbors["step"] == neighbors["step"].max()) & (neighbors["rank"] == 1)).sum())
    text = _(
        "{share} of {n} probe queries have kept their nearest wrong candidate for {needed} snapshots or "
        "more; in {wrong} of these it lies above the right answer."
    )
    return text.format(
        share=percent(len(found) / max(queries, 1), 1),
        n=f"{queries:,}",
        needed=FEWEST_SNAPSHOTS,
        wrong=f"{int((found['margin'] < 0).sum()):,}",
    )
