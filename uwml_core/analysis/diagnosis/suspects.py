"""Rankings of items to look at and relabel: wrong pairs, and negatives that are right answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from uwml_core.analysis.hard_negatives.likeness import text_likeness


def shared_captions(items: pa.Table) -> tuple[pd.DataFrame, np.ndarray]:
    """Captions that occur under more than one label, letters' case and outer spaces aside.

    Args:
        items: ``item_id``, ``label`` and ``captions``, a row per item; a caption of each item is drawn with
            equal chance.

    Returns:
        ``[caption, items, labels, chance]``: items that have it, their labels, and the mean chance, over
        these items, that it is drawn and a random other item of another label draws it, too. The most
        items first. Then whether each item has one of these captions, bool ``[items]``.
    """
    owner, code, names = _captions_by_owner(items["captions"])
    long = _repeated(owner, code, items)
    totals = long.groupby("code").agg(
        items=("item_id", "nunique"), labels=("label", "nunique"), drawn=("weight", "sum")
    )
    several = totals[totals["labels"] > 1]
    mine = long[long["code"].isin(several.index)]
    same_label = mine.groupby(["code", "label"])["weight"].transform("sum")
    others = several["drawn"].loc[mine["code"]].to_numpy() - same_label.to_numpy()
    met = mine["weight"].to_numpy() * others / max(items.num_rows - 1, 1)
    chance = pd.Series(met).groupby(mine["code"].to_numpy()).mean()
    caption = names.take(pa.array(several.index.to_numpy(np.int64))).to_pylist()
    found = several.drop(columns="drawn").assign(chance=chance).reset_index(drop=True)
    found.insert(0, "caption", pd.Series(caption, dtype=object))
    has_one = np.zeros(items.num_rows, dtype=bool)
    has_one[owner[np.isin(code, several.index)]] = True
    by = ["items", "caption"]
    return found.sort_values(by, ascending=[False, True], kind="stable", ignore_index=True), has_one


def _captions_by_owner(captions: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray, pa.Array]:
    """Of each caption its item's row and which text it is, and these texts."""
    lists = pa.concat_arrays(captions.chunks) if captions.num_chunks else pa.array([], captions.type)
    counts = pc.list_value_length(lists).fill_null(0).to_numpy()
    texts = lists.flatten().cast(pa.string()).fill_null("")
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(texts)).dictionary_encode()
    return np.repeat(np.arange(len(counts)), counts), plain.indices.to_numpy(), plain.dictionary


def _repeated(owner: np.ndarray, code: np.ndarray, items: pa.Table) -> pd.DataFrame:
    """Captions that occur more than once, ``[owner, code, weight, item_id, label]`` of items with them."""
    # nearly all captions belong to one item, and need no frame
    again = np.flatnonzero(np.bincount(code)[code] > 1)
    weight = 1.0 / np.bincount(owner, minlength=items.num_rows)[owner[again]]
    long = pd.DataFrame({"owner": owner[again], "code": code[again], "weight": weight})
    long = pd.DataFrame(long.groupby(["owner", "code"], as_index=False, sort=True).sum())
    chosen = long["owner"].to_numpy(dtype=np.int64)
    item_id, label = (items[name].to_numpy()[chosen] for name in ("item_id", "label"))
    return long.assign(item_id=item_id, label=label)


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
    sums = _by_direction_and_item(rows)
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


def wrong_pair_limit(margin: np.ndarray) -> float:
    """Mean margin below which an item is suspected: as far below the median as 1 % of them lie above it.

    Args:
        margin: mean margins ``[items]``, one or more, of items that were met often enough.
    """
    typical, top = np.quantile(margin, [0.5, 0.99])
    return float(2.0 * typical - top)


def _by_direction_and_item(rows: pd.DataFrame) -> pd.DataFrame:
    """``[direction, item_id, n, margin]`` over all windows; directions as numbers."""
    # counted by place, several times as fast as grouping by two keys
    direction = rows["direction"].astype("category").cat.codes.to_numpy().astype(np.int64)
    item, items = pd.factorize(rows["item_id"].to_numpy(), sort=True)
    key = direction * len(items) + item
    n = np.bincount(key, rows["n"].to_numpy(np.float64))
    total = np.bincount(key, (rows["margin_mean"] * rows["n"]).to_numpy(np.float64))
    there = np.flatnonzero(n)
    direction, item = np.divmod(there, max(len(items), 1))
    return pd.DataFrame(
        {
            "direction": direction,
            "item_id": items[item],
            "n": n[there].astype(np.int64),
            "margin": total[there] / n[there],
        }
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
