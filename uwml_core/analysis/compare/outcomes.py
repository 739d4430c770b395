"""Ranks of a run's queries at one evaluation: the newest, or the best one.

Shapes: Q queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.columns import numbers

SUMMARY_COLUMNS = ("split", "step", "epoch", "direction", "rank")
RANK_COLUMNS = ("direction", "item_id", "caption", "rank")
LAST, BEST = "last", "best"
RECALL_AT = (1, 5, 10)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranks:
    """Queries of a direction, in the order of their keys.

    Attributes:
        item: int64 [Q], the item of each query.
        caption: int64 [Q], which caption asks; -1 where the query is no caption.
        rank: float64 [Q], NaN where there is none.
    """

    item: np.ndarray
    caption: np.ndarray
    rank: np.ndarray

    def __len__(self) -> int:
        return len(self.rank)

    def asks_the_same(self, other: Ranks) -> bool:
        """Whether both have the same queries."""
        return np.array_equal(self.item, other.item) and np.array_equal(self.caption, other.caption)


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """One evaluation of a run.

    Attributes:
        step: last completed step; -1 before training.
        epoch: None where it was not logged.
        ranks: by direction.
    """

    step: int
    epoch: int | None
    ranks: Mapping[str, Ranks]


def summarise(part: pa.Table) -> pd.DataFrame:
    """Queries and hits at 1 of each evaluation in a part of ``ranks``; columns ``SUMMARY_COLUMNS``."""
    rows = part.select(["split", "step", "epoch", "direction"]).to_pandas()
    rows["hit"] = numbers(part, "rank") <= 1.0
    groups = rows.groupby(["split", "step", "epoch", "direction"], observed=True, dropna=False, sort=False)
    counts: pd.DataFrame = groups["hit"].agg(n="size", hits="sum").reset_index()
    return counts.astype({"split": object})


def evaluations(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Evaluations of a run in the order of their steps.

    Args:
        parts: frames of ``summarise``.

    Returns:
        Frame ``[split, step, epoch, r1]``; ``r1`` is the mean R@1 of the directions, percent.
    """
    if not parts:
        return pd.DataFrame(columns=["split", "step", "epoch", "r1"])
    rows = pd.concat([part.assign(direction=part["direction"].astype(object)) for part in parts])
    keys = ["split", "step", "epoch"]
    sums = rows.groupby([*keys, "direction"], dropna=False)[["n", "hits"]].sum().reset_index()
    sums["r1"] = 100.0 * sums["hits"] / sums["n"]
    found = sums.groupby(keys, dropna=False)["r1"].mean().reset_index()
    return found.sort_values(["split", "step"], kind="stable").reset_index(drop=True)


def choose(found: pd.DataFrame, split: str, at: str) -> tuple[int, int | None] | None:
    """Step and epoch of the evaluation to compare; None where the split has none.

    Args:
        found: frame of ``evaluations``.
        split: which split.
        at: ``last``, or ``best`` for the highest mean R@1, of equal ones the first.
    """
    mine = found[found["split"] == split]
    if mine.empty:
        return None
    row = mine.iloc[-1] if at == LAST else mine.iloc[int(mine["r1"].to_numpy().argmax())]
    return int(row["step"]), None if pd.isna(row["epoch"]) else int(row["epoch"])


def outcome_of(table: pa.Table, step: int, epoch: int | None, directions: Sequence[str]) -> Outcome:
    """Ranks of one evaluation.

    Args:
        table: its rows of ``ranks``, columns ``RANK_COLUMNS``.
        step, epoch: when it was.
        directions: the run's directions; others are left out.
    """
    names = table["direction"].cast(pa.string()).to_numpy(zero_copy_only=False)
    item = numbers(table, "item_id").astype(np.int64)
    caption = np.nan_to_num(numbers(table, "caption").astype(np.float64), nan=-1.0).astype(np.int64)
    rank = numbers(table, "rank").astype(np.float64)
    ranks = {}
    for direction in directions:
        rows = np.flatnonzero(names == direction)
        if len(rows):
            ranks[direction] = _in_order(item[rows], caption[rows], rank[rows])
    return Outcome(step=step, epoch=epoch, ranks=ranks)


def _in_order(item: np.ndarray, caption: np.ndarray, rank: np.ndarray) -> Ranks:
    # a query that was logged twice counts once, as it was logged last
    key = (item << 17) + caption + 1
    _keys, first = np.unique(key[::-1], return_index=True)
    rows = len(key) - 1 - first
    return Ranks(item=item[rows], caption=caption[rows], rank=rank[rows])


def metric_names(directions: Sequence[str]) -> list[tuple[str, str]]:
    """What is compared, as (direction, metric); the direction of ``rsum`` is empty.

    Example:
        >>> metric_names(["i2t"])[-2:]
        [('i2t', 'median_rank'), ('', 'rsum')]
    """
    own = [*(f"R@{k}" for k in RECALL_AT), "median_rank"]
    return [*((direction, metric) for direction in directions for metric in own), ("", "rsum")]


def higher_is_better(metric: str) -> bool:
    """Whether more of a metric is better: not of a rank."""
    return not metric.endswith("_rank")
