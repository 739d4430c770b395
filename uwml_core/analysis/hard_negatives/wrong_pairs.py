"""Pairs whose picture and caption may not belong together: always below their negatives."""

from __future__ import annotations

import pandas as pd

from uwml_core.analysis.text import percent
from uwml_core.i18n import _

FEWEST_ENCOUNTERS = 3
# A model that gets less than half of its pairs right cannot tell a wrong pair from a hard one.
TYPICAL_LIMIT = 0.5


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
    typical = float((totals["below"] / totals["encounters"]).median())
    if typical >= TYPICAL_LIMIT:
        text = _(
            "{found} of {n} items were always below their negatives, but the model is too weak to tell: the "
            "typical item is below in {typical} of its encounters."
        )
    else:
        text = _(
            "{found} of {n} items were below their negatives at every encounter; the typical item in "
            "{typical} of its encounters."
        )
    return text.format(
        found=f"{found['item_id'].nunique():,}",
        n=f"{totals['item_id'].nunique():,}",
        typical=percent(typical),
    )
