"""What to look at and label anew: suspected wrong pairs, false negatives and memorized negatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from uwml_core.analysis.diagnosis.frames import read_frames
from uwml_core.analysis.diagnosis.suspects import false_negative_ranking, wrong_pair_limit, wrong_pair_ranking
from uwml_core.analysis.diagnosis.thresholds import FEWEST_ENCOUNTERS
from uwml_core.analysis.hard_negatives.browse import NEW_LABEL
from uwml_core.analysis.hard_negatives.catalogue import catalogue
from uwml_core.analysis.hard_negatives.memorised import memorised, recall_fall
from uwml_core.analysis.hard_negatives.persistent import with_margin
from uwml_core.runlog.reader import Run

MOST = 1_000


def relabel_tables(run: Run, most: int = MOST) -> dict[str, pd.DataFrame]:
    """Rankings of a run's training items, the most suspicious first, with an empty column to fill in.

    Args:
        run: any run.
        most: rows of each.

    Returns:
        ``wrong_pairs``: ``[item_id, item_key, captions, suspicion, mean_margin, encounters, suspected,
        new_label]``; suspected are those that the rule of this name counts.
        ``false_negatives``, of the probes at the last snapshot, and ``memorised``: the same of the item and,
        with ``negative_`` in front, of its negative, and the numbers that they are ranked by. Captions are
        joined by `` | ``. A table is empty where the run has not logged what it needs.

    Raises:
        SchemaTooNew: if a newer version wrote the run.
    """
    items = catalogue(run.items(columns=["item_id", "item_key", "label", "group", "split", "captions"]))
    return {name: _named(rank(run, items).head(most), items) for name, rank in _RANKINGS.items()}


def _wrong_pairs(run: Run, items: pd.DataFrame) -> pd.DataFrame:
    found = wrong_pair_ranking(read_frames(run).item_statistics).drop(columns="directions")
    often = (found["encounters"] >= 2 * FEWEST_ENCOUNTERS).to_numpy()
    margin = found["mean_margin"].to_numpy()
    limit = wrong_pair_limit(margin[often]) if often.any() else -np.inf
    return found.assign(suspected=often & (margin < limit))


def _false_negatives(run: Run, items: pd.DataFrame) -> pd.DataFrame:
    rows = with_margin(run.frame("neighbors"))
    # before training everything is near by chance
    rows = rows[(rows["epoch"] >= 0) & (rows["split"] == "train")]
    captions = {int(str(item)): list(texts) for item, texts in items["captions"].items()}
    return false_negative_ranking(rows, captions or None)


def _memorised(run: Run, items: pd.DataFrame) -> pd.DataFrame:
    frames = read_frames(run)
    falls = [recall_fall(frames.evals, direction) for direction in frames.directions]
    found = memorised(with_margin(frames.neighbors), falls)
    return found[["direction", "item_id", "negative_item_id", "margin_then", "margin", "growth"]]


_RANKINGS: Mapping[str, Callable[[Run, pd.DataFrame], pd.DataFrame]] = {
    "wrong_pairs": _wrong_pairs,
    "false_negatives": _false_negatives,
    "memorised": _memorised,
}


def _named(ranking: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """With key and captions behind each id, and the column to fill in at the end."""
    columns: dict[str, object] = {}
    for name in ranking:
        columns[str(name)] = ranking[name].to_numpy()
        if str(name).endswith("item_id"):
            prefix = str(name).removesuffix("item_id")
            columns[f"{prefix}item_key"] = ranking[name].map(items["item_key"]).to_numpy()
            texts = items["captions"].map(" | ".join) if len(items) else items["captions"]
            columns[f"{prefix}captions"] = ranking[name].map(texts).to_numpy()
    return pd.DataFrame({**columns, NEW_LABEL: ""}, index=range(len(ranking)))
