"""One item over the epochs: its margins, and what it was confused with."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.hard_negatives.catalogue import caption_texts
from uwml_core.analysis.text import clauses, fixed
from uwml_core.i18n import _, ngettext

BATCHES, POOL = "batches", "pool"
COLUMNS = (
    "source",
    "direction",
    "epoch",
    "margin",
    "low",
    "high",
    "n",
    "negative_item_id",
    "negative_caption",
)
CANDIDATES = ("direction", "epoch", "place", "negative_item_id", "negative_caption", "margin")
MOST_PLACES = 5
LONGEST_NAME = 80


def item_history(pairs: pd.DataFrame, neighbors: pd.DataFrame, item_id: int) -> pd.DataFrame:
    """Margins of an item over the epochs, in its batches and against the pool.

    Args:
        pairs: rows of the table ``pairs`` of this item.
        neighbors: frame of ``with_margin``, of this item at least.
        item_id: the item.

    Returns:
        Frame of ``COLUMNS``, sorted: ``source`` is batches (mean, lowest and highest margin over the n
        encounters of the epoch, negative of the lowest) or pool (margin to the nearest wrong candidate at
        the snapshot, n = 1).
    """
    parts = [_in_batches(pairs[pairs["item_id"] == item_id]), _in_pool(neighbors, item_id)]
    frame = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return frame.sort_values(["source", "direction", "epoch"], kind="stable").reset_index(drop=True)


def _in_batches(pairs: pd.DataFrame) -> pd.DataFrame:
    rows = pairs[pairs["margin"].notna()]
    rows = rows.assign(
        direction=rows["direction"].astype(object),
        epoch=rows["epoch"].fillna(-1).astype(np.int64),
        margin=rows["margin"].astype(np.float64),
    )
    rows = rows.sort_values("margin", kind="stable")
    grouped = rows.groupby(["direction", "epoch"], sort=True)
    frame = grouped["margin"].agg(["mean", "min", "max", "size"]).reset_index()
    frame.columns = pd.Index(["direction", "epoch", "margin", "low", "high", "n"])
    # nth keeps a null where the hardest encounter had no negative; first would skip it
    lowest = rows.drop_duplicates(["direction", "epoch"]).sort_values(["direction", "epoch"], kind="stable")
    for name in ("negative_item_id", "negative_caption"):
        frame[name] = lowest[name].fillna(-1).to_numpy(dtype=np.int64)
    frame.insert(0, "source", BATCHES)
    return frame[list(COLUMNS)]


def _in_pool(neighbors: pd.DataFrame, item_id: int) -> pd.DataFrame:
    rows = neighbors[(neighbors["item_id"] == item_id) & (neighbors["rank"] == 1)]
    rows = rows.drop_duplicates(["direction", "epoch"], keep="last")
    rows = rows.assign(source=POOL, low=rows["margin"], high=rows["margin"], n=1)
    return rows[list(COLUMNS)].astype({"epoch": np.int64})


def named(history: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """The history with ``negative``, the wrong candidate's caption in words; empty where there was none.

    Args:
        history: frame of ``item_history``.
        items: frame of ``catalogue``.
    """
    ids, captions = history["negative_item_id"], history["negative_caption"]
    texts = caption_texts(items, ids.tolist(), captions.tolist())
    return history.assign(
        negative=[text if item_id >= 0 else "" for text, item_id in zip(texts, ids, strict=True)]
    )


def candidates(pairs: pd.DataFrame, neighbors: pd.DataFrame, item_id: int) -> pd.DataFrame:
    """Nearest wrong candidates of an item at each snapshot; where it is no probe, its batches' negatives.

    Args:
        pairs, neighbors, item_id: as for ``item_history``.

    Returns:
        Frame of ``CANDIDATES``, newest epoch first, ``place`` 1 to 5 by rising margin.
    """
    rows = neighbors[neighbors["item_id"] == item_id].rename(columns={"rank": "place"})
    if rows.empty:
        rows = pairs[(pairs["item_id"] == item_id) & pairs["negative_item_id"].notna()]
        rows = rows.assign(
            direction=rows["direction"].astype(object),
            epoch=rows["epoch"].fillna(-1).astype(np.int64),
            negative_caption=rows["negative_caption"].fillna(-1),
        ).sort_values("margin", kind="stable")
        rows = rows.drop_duplicates(["direction", "epoch", "negative_item_id"])
        rows = rows.assign(place=rows.groupby(["direction", "epoch"]).cumcount() + 1)
    rows = rows[rows["place"] <= MOST_PLACES]
    rows = rows.sort_values(["epoch", "direction", "place"], ascending=[False, True, True], kind="stable")
    whole = {"negative_item_id": np.int64, "negative_caption": np.int64, "place": np.int64}
    return rows[list(CANDIDATES)].astype(whole).reset_index(drop=True)


def history_headline(history: pd.DataFrame, directions: tuple[str, str], name: str) -> str:
    """One sentence: where an item's margin stands now and how often it was below.

    Args:
        history: frame of ``item_history``.
        directions: the run's directions.
        name: what the item is called.
    """
    parts = [text for direction in directions if (text := _direction_part(history, direction))]
    if not parts:
        return _("Too little data yet: “{name}” has not met a negative.").format(name=_short(name))
    return _("“{name}”: {parts}.").format(name=_short(name), parts=clauses(parts))


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def _direction_part(history: pd.DataFrame, direction: str) -> str:
    rows = history[history["direction"] == direction]
    source = POOL if (rows["source"] == POOL).any() else BATCHES
    rows = rows[rows["source"] == source]
    if rows.empty:
        return ""
    below, n = int((rows["margin"] < 0).sum()), len(rows)
    if source == POOL:
        text = ngettext(
            "{direction} margin {margin}, below 0 at {below} of {n} snapshot",
            "{direction} margin {margin}, below 0 at {below} of {n} snapshots",
            n,
        )
    else:
        text = ngettext(
            "{direction} margin {margin} in its batches, below 0 in {below} of {n} epoch",
            "{direction} margin {margin} in its batches, below 0 in {below} of {n} epochs",
            n,
        )
    last = fixed(float(rows["margin"].iloc[-1]), 3)
    return text.format(direction=direction, margin=last, below=below, n=n)
