"""Rows of ``pairs`` gathered by anchor and hardest negative."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.columns import direction_codes, numbers

PAIR_COLUMNS = (
    "epoch",
    "direction",
    "item_id",
    "caption",
    "negative_item_id",
    "negative_caption",
    "margin",
    "weight",
    "suspected_false_negative",
)
# Stands for rows without an epoch or caption, as no whole number is missing in NumPy.
UNKNOWN = -1


def confusions(pairs: pa.Table, directions: tuple[str, str]) -> pd.DataFrame:
    """Gather pairs by direction, item and hardest negative.

    Rows without a negative, with a margin that is NaN or with another direction are left out.

    Args:
        pairs: rows of the table ``pairs`` with ``PAIR_COLUMNS``.
        directions: the run's directions.

    Returns:
        Frame, one row per direction, item and negative, sorted by them: ``direction`` (text), ``item_id``,
        ``negative_item_id``, ``caption`` and ``negative_caption`` of the encounter with the lowest margin
        (the first of equal ones, −1 where not logged), ``n`` encounters, ``below`` of them with a margin
        < 0, ``above`` of them with the negative more than 0.1 above the positive, ``margin`` (mean),
        ``lowest`` (margin), ``weight`` (mean relative weight, NaN where not logged), ``first_epoch`` and
        ``last_epoch`` (−1 where not logged).
    """
    columns = {name: numbers(pairs, name) for name in PAIR_COLUMNS if name != "direction"}
    code = direction_codes(pairs, directions)
    usable = ~(np.isnan(columns["margin"]) | np.isnan(columns["negative_item_id"]) | (code < 0))
    rows = np.flatnonzero(usable & ~np.isnan(columns["item_id"]))
    key = _key(code[rows], columns["item_id"][rows], columns["negative_item_id"][rows])
    # five times as fast as a stable sort; what stands first in a group is looked for below
    order = np.argsort(key)
    rows, key = rows[order], key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1)) if len(key) else np.empty(0, np.int64)
    sorted_columns = {"row": rows, **{name: values[rows] for name, values in columns.items()}}
    gathered = _gather(sorted_columns, starts, len(rows))
    head = rows[starts]
    frame = pd.DataFrame(
        {
            # many times as fast as having pandas look at each text
            "direction": pd.Series(list(directions)).array.take(code[head]),
            "item_id": columns["item_id"][head].astype(np.int64),
            "negative_item_id": columns["negative_item_id"][head].astype(np.int64),
            **gathered,
        },
        copy=False,
    )
    return frame


def _key(code: np.ndarray, item: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """One int64 per row that sorts by direction, item and negative; ids are below 2³¹."""
    ids = (item.astype(np.int64) << 31) | negative.astype(np.int64)
    return (code.astype(np.int64) << 62) | ids


def _gather(columns: dict[str, np.ndarray], starts: np.ndarray, rows: int) -> dict[str, np.ndarray]:
    count = np.diff(np.append(starts, rows))
    margin = columns["margin"].astype(np.float64)
    lowest = _reduce(np.minimum, margin, starts)
    at_lowest = _first_of(margin == np.repeat(lowest, count), columns["row"], starts)
    weight = columns["weight"].astype(np.float64)
    weighed = _sum(~np.isnan(weight), starts)
    with np.errstate(invalid="ignore"):
        mean_weight = _sum(np.nan_to_num(weight), starts) / np.where(weighed > 0, weighed, np.nan)
    epoch = _whole(columns["epoch"])
    return {
        "caption": _whole(columns["caption"])[at_lowest],
        "negative_caption": _whole(columns["negative_caption"])[at_lowest],
        "n": count,
        "below": _sum(margin < 0, starts).astype(np.int64),
        "above": _sum(np.nan_to_num(columns["suspected_false_negative"].astype(float)), starts).astype(int),
        "margin": _sum(margin, starts) / np.maximum(count, 1),
        "lowest": lowest,
        "weight": mean_weight,
        "first_epoch": _reduce(np.minimum, epoch, starts),
        "last_epoch": _reduce(np.maximum, epoch, starts),
    }


def _whole(values: np.ndarray) -> np.ndarray:
    return np.nan_to_num(values.astype(np.float64), nan=UNKNOWN).astype(np.int64)


def _sum(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, starts, dtype=np.float64) if len(starts) else np.empty(0)


def _reduce(function: np.ufunc, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.asarray(function.reduceat(values, starts)) if len(starts) else values[:0]


def _first_of(chosen: np.ndarray, row: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Position in each group of its chosen row that was logged first; every group has one."""
    if not len(starts):
        return np.empty(0, np.int64)
    first = np.minimum.reduceat(np.where(chosen, row, np.iinfo(np.int64).max), starts)
    position = np.empty(int(row.max()) + 1, np.int64)
    position[row] = np.arange(len(row))
    return np.asarray(position[first])
