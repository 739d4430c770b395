"""Rankings of items to look at and relabel: wrong pairs, and negatives that are right answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from uwml_core.analysis.hard_negatives.likeness import text_likeness


def shared_captions(items: pd.DataFrame) -> pd.DataFrame:
    """Captions that occur under more than one label, letters' case and outer spaces aside.

    Args:
        items: ``[item_id, label, captions]``; a caption of each item is drawn with equal chance.

    Returns:
        ``[caption, items, labels, chance]``: items that have it, their labels, and the mean chance, over
        these items, that it is drawn and a random other item of another label draws it, too. The most
        items first.
    """
    long = _repeated(items)
    grouped = long.groupby("caption", sort=True)
    totals = grouped.agg(items=("item_id", "nunique"), labels=("label", "nunique"), drawn=("weight", "sum"))
    several = totals[totals["labels"] > 1]
    mine = long[long["caption"].isin(several.index)]
    same_label = mine.groupby(["caption", "label"])["weight"].transform("sum")
    others = several["drawn"].loc[mine["caption"]].to_numpy() - same_label.to_numpy()
    met = mine["weight"].to_numpy() * others / max(len(items) - 1, 1)
    chance = pd.Series(met).groupby(mine["caption"].to_numpy()).mean()
    found = several.drop(columns="drawn").assign(chance=chance).reset_index()
    return found.sort_values(["items", "caption"], ascending=[False, True], kind="stable", ignore_index=True)


def _repeated(items: pd.DataFrame) -> pd.DataFrame:
    """Captions that occur more than once, ``[item_id, label, caption, weight]`` of items with them."""
    counts = items["captions"].map(len).to_numpy(dtype=np.int64)
    owner = np.repeat(np.arange(len(items)), counts)
    flat = [str(text) for captions in items["captions"] for text in captions]
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(pa.array(flat, pa.string()))).dictionary_encode()
    code = plain.indices.to_numpy()
    # nearly all captions belong to one item, and need no frame
    again = np.flatnonzero(np.bincount(code, minlength=len(plain.dictionary))[code] > 1)
    names = plain.dictionary.take(pa.array(code[again])).to_pylist()
    long = pd.DataFrame({"owner": owner[again], "caption": names, "weight": 1.0 / counts[owner[again]]})
    long = pd.DataFrame(long.groupby(["owner", "caption"], as_index=False, sort=True).sum())
    chosen = items.iloc[long["owner"].to_numpy(dtype=np.int64)]
    return long.assign(item_id=chosen["item_id"].to_numpy(), label=chosen["label"].to_numpy())


def sharing(items: pd.DataFrame, shared: pd.DataFrame) -> np.ndarray:
    """Whether each item has one of the captions of ``shared_captions``, bool ``[items]``."""
    known = set(shared["caption"])
    return np.array([any(_plain(text) in known for text in texts) for texts in items["captions"]], dtype=bool)


def _plain(text: object) -> str:
    return str(text).strip().lower()


def wrong_pair_ranking(statistics: pd.DataFrame) -> pd.DataFrame:
    """Items by how far their positive stays below their hardest negatives over the whole training.

    Items of a wrong pair are learned last, so that their margin, averaged over all epochs, is low even
    where a long training has learned them by heart in the end.

    Args:
        statistics: ``Frames.item_statistics``.

    Returns:
        ``[item_id, suspicion, mean_margin, encounters, directions]``, the most suspicious first; suspicion
        is the mean over directions of minus the mean margin's z-score among the items of the direction.

    Reference:
        G. Pleiss et al., Identifying Mislabeled Data using the Area Under the Margin Ranking, 2020.
    """
    rows = statistics[(statistics["n"] > 0) & statistics["margin_mean"].notna()]
    rows = rows.assign(total=rows["margin_mean"] * rows["n"], direction=rows["direction"].astype(object))
    sums = rows.groupby(["direction", "item_id"], as_index=False)[["n", "total"]].sum()
    sums["margin"] = sums["total"] / sums["n"]
    grouped = sums.groupby("direction")["margin"]
    spread = grouped.transform("std").fillna(0.0)
    sums["score"] = -(sums["margin"] - grouped.transform("mean")) / spread.where(spread > 0, 1.0)
    found = sums.groupby("item_id", as_index=False).agg(
        suspicion=("score", "mean"), mean_margin=("margin", "mean"), encounters=("n", "sum"),
        directions=("direction", "nunique"),
    )  # fmt: skip
    return found.sort_values(
        ["suspicion", "item_id"], ascending=[False, True], kind="stable", ignore_index=True
    )


def false_negative_ranking(
    confusions: pd.DataFrame, captions: dict[int, list[str]] | None = None
) -> pd.DataFrame:
    """Items and the negatives near them by how likely the negative is a right answer.

    A right answer stays near through the whole training and for picture and caption alike, while what is
    near by chance changes.

    Args:
        confusions: rows with ``step``, ``item_id``, ``negative_item_id``, ``margin`` (the positive's
            similarity minus the negative's) and ``similarity`` to the negative, such as rows of
            ``neighbors`` of all snapshots and both directions.
        captions: item to its captions; None where the text may not be used.

    Returns:
        ``[item_id, negative_item_id, similarity, margin, encounters, likeness, score]`` with one row per pair
        of items of the last step, the most likely first: by the captions' likeness, or without captions by
        the number of rows over all steps, and then by similarity minus half of the margin. Similarity and
        margin are means of the last step.
    """
    pair = ["item_id", "negative_item_id"]
    last = confusions[confusions["step"] == confusions["step"].max()]
    rows = last.groupby(pair, as_index=False)[["similarity", "margin"]].mean()
    counted = confusions.groupby(pair, as_index=False).size().rename(columns={"size": "encounters"})
    rows = rows.merge(counted, on=pair)
    rows["likeness"] = [
        np.nan if captions is None else _likeness(captions.get(a, []), captions.get(b, []))
        for a, b in zip(rows["item_id"], rows["negative_item_id"], strict=True)
    ]
    main = rows["encounters"] if captions is None else rows["likeness"]
    rows["score"] = main + 1e-3 * (rows["similarity"] - 0.5 * rows["margin"])
    found: pd.DataFrame = rows.sort_values("score", ascending=False, kind="stable", ignore_index=True)
    return found


def _likeness(one: list[str], other: list[str]) -> float:
    return max((text_likeness(a, b) for a in one for b in other), default=0.0)
