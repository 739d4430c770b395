"""Pairs whose picture and caption may not belong together: always below their negatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.columns import direction_codes, numbers
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, ngettext

FEWEST_ENCOUNTERS = 3
# A model that gets less than half of its pairs right cannot tell a wrong pair from a hard one.
TYPICAL_LIMIT = 0.5
# what is looked at of the item statistics
STATISTICS = ("n", "margin_mean")


def item_totals(confusions: pd.DataFrame) -> pd.DataFrame:
    """How each item fares over all its negatives.

    Returns:
        Frame ``[direction, item_id, encounters, below, mean_margin]``.
    """
    weighed = confusions.assign(margin_sum=confusions["margin"] * confusions["n"])
    sums = weighed.groupby(["direction", "item_id"], as_index=False)[["n", "below", "margin_sum"]].sum()
    sums["mean_margin"] = sums["margin_sum"] / sums["n"]
    sums = sums.rename(columns={"n": "encounters"})
    return sums[["direction", "item_id", "encounters", "below", "mean_margin"]]


def probe_confusions(neighbors: pd.DataFrame) -> pd.DataFrame:
    """Probes against their nearest wrong candidates, as confusions.

    An encounter is a snapshot after training began; it counts as below where the positive lies below all
    the candidates that were kept.

    Args:
        neighbors: frame of ``with_margin``.

    Returns:
        One row per direction, item and candidate of the last snapshot: ``margin`` there, ``n`` snapshots,
        ``below`` of them, first and last epoch; ``n`` and ``below`` stand with the nearest candidate only,
        so that sums over an item are right.
    """
    rows = neighbors[neighbors["epoch"] >= 0]
    keys = ["direction", "item_id"]
    farthest = rows.groupby([*keys, "step"], as_index=False)["margin"].max()
    totals = farthest.assign(below=farthest["margin"] < 0).groupby(keys)["below"].agg(["size", "sum"])
    epochs = rows.groupby(keys)["epoch"].agg(["min", "max"])
    totals = totals.join(epochs).reset_index()
    totals.columns = pd.Index([*keys, "n", "below", "first_epoch", "last_epoch"])
    last = rows[rows["step"] == rows["step"].max()]
    found = last[[*keys, "caption", "negative_item_id", "negative_caption", "margin", "rank"]].merge(totals)
    found.loc[found["rank"] > 1, ["n", "below"]] = 0
    tidy: pd.DataFrame = found.drop(columns="rank")
    return tidy


def suspected_wrong_pairs(confusions: pd.DataFrame, fewest: int = FEWEST_ENCOUNTERS) -> pd.DataFrame:
    """Items that were below their negatives at every encounter, in every direction logged.

    Args:
        confusions: frame of ``confusions`` over several epochs, or of ``probe_confusions``.
        fewest: encounters needed in each direction.

    Returns:
        The confusions of these items with ``encounters`` and ``mean_margin`` of the item in that direction;
        the lowest mean margin comes first.
    """
    totals = item_totals(confusions)
    always = (totals["below"] == totals["encounters"]) & (totals["encounters"] >= fewest)
    suspected = always.groupby(totals["item_id"]).all()
    chosen = totals[totals["item_id"].isin(suspected.index[suspected])].drop(columns="below")
    rows = confusions.merge(chosen, on=["direction", "item_id"])
    return rows.sort_values(["mean_margin", "margin"], kind="stable").reset_index(drop=True)


def wrong_pairs_headline(
    confusions: pd.DataFrame, found: pd.DataFrame, fewest: int = FEWEST_ENCOUNTERS
) -> str:
    """One sentence: how many items never rise above their negatives, and how the typical item fares.

    Args:
        confusions, found: what ``suspected_wrong_pairs`` was given and gave.
        fewest: as for ``suspected_wrong_pairs``.
    """
    totals = item_totals(confusions)
    totals = totals[totals["encounters"] >= fewest]
    if totals.empty:
        return _("Too little data yet: no item has met negatives {needed} times.").format(needed=fewest)
    typical, n = float((totals["below"] / totals["encounters"]).median()), totals["item_id"].nunique()
    if typical >= TYPICAL_LIMIT:
        text = ngettext(
            "{found} of {n} item was always below its negatives, but the model is too weak to tell: the "
            "typical item is below in {typical} of its encounters.",
            "{found} of {n} items were always below their negatives, but the model is too weak to tell: the "
            "typical item is below in {typical} of its encounters.",
            n,
        )
    else:
        text = ngettext(
            "{found} of {n} item was below its negatives at every encounter that was looked at; the typical "
            "item in {typical} of its encounters.",
            "{found} of {n} items were below their negatives at every encounter that was looked at; the "
            "typical item in {typical} of its encounters.",
            n,
        )
    return text.format(
        found=f"{found['item_id'].nunique():,}",
        n=f"{n:,}",
        typical=percent(typical),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemStatistics:
    """How the items of a run fare in the windows of its rollup.

    Attributes:
        below: items whose mean margin lies below 0 in every window and direction: any that were below at
            every encounter are among them.
        totals: ``[direction, item_id, met, mean_margin]`` of these over all windows, ``met`` encounters.
        items: with ``FEWEST_ENCOUNTERS`` in each direction that they occur in.
        typical: median over directions and items of the mean margin; NaN without any.
    """

    below: np.ndarray
    totals: pd.DataFrame
    items: int
    typical: float


def item_statistics(
    rollup: pa.Table, directions: tuple[str, str], fewest: int = FEWEST_ENCOUNTERS
) -> ItemStatistics:
    """Look through the item statistics of a run that has too many pairs to be read.

    Args:
        rollup: what ``Run.rollup("items")`` gives, with ``STATISTICS`` at least.
        directions: the run's directions.
        fewest: encounters needed in each direction.
    """
    item, n = numbers(rollup, "item_id").astype(np.int64), numbers(rollup, "n").astype(np.float64)
    mean, code = numbers(rollup, "margin_mean").astype(np.float64), direction_codes(rollup, directions)
    met = (n > 0) & (code >= 0)
    keys, group = np.unique(item[met] * len(directions) + code[met], return_inverse=True)
    items, sides = np.divmod(keys, len(directions))
    encounters = np.bincount(group, n[met], minlength=len(keys))
    margin = np.bincount(group, n[met] * mean[met], minlength=len(keys)) / np.maximum(encounters, 1)
    above = np.bincount(group, mean[met] >= 0, minlength=len(keys)) > 0
    enough = np.setdiff1d(items, items[encounters < fewest])
    below = np.setdiff1d(enough, items[above])
    chosen = np.isin(items, below)
    totals = {"direction": np.array(directions, dtype=object)[sides[chosen]], "item_id": items[chosen]}
    known = margin[np.isin(items, enough)]
    return ItemStatistics(
        below=below,
        totals=pd.DataFrame(
            {**totals, "met": encounters[chosen].astype(np.int64), "mean_margin": margin[chosen]}
        ),
        items=len(enough),
        typical=float(np.median(known)) if len(known) else float("nan"),
    )


def with_statistics(confusions: pd.DataFrame, statistics: ItemStatistics) -> pd.DataFrame:
    """Confusions of the items below 0 with what their statistics tell, the lowest mean margin first."""
    rows = confusions.merge(statistics.totals, on=["direction", "item_id"])
    return rows.sort_values(["mean_margin", "margin"], kind="stable").reset_index(drop=True)


def statistics_headline(statistics: ItemStatistics, fewest: int = FEWEST_ENCOUNTERS) -> str:
    """One sentence: how many items lie below their negatives throughout, and where the typical one lies."""
    if not statistics.items:
        return _("Too little data yet: no item has met negatives {needed} times.").format(needed=fewest)
    text = ngettext(
        "{found} of {n} item lay below its negatives on average in every ten epochs; the typical mean "
        "margin is {margin}.",
        "{found} of {n} items lay below their negatives on average in every ten epochs; the typical mean "
        "margin is {margin}.",
        statistics.items,
    )
    return text.format(
        found=f"{len(statistics.below):,}", n=f"{statistics.items:,}", margin=fixed(statistics.typical, 3)
    )
