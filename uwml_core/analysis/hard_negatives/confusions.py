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
        Frame, one row per direction, item and negative, sorted by them: ``direction`` (category),
        ``item_id``, ``negative_item_id``, ``caption`` and ``negative_caption`` of the encounter with the
        lowest margin (the first of equal ones, −1 where not logged), ``n`` encounters, ``below`` of them
        with a margin < 0, ``above`` of them with the negative more than 0.1 above the positive, ``margin``
        (mean), ``lowest`` (margin), ``weight`` (mean relative weight, NaN where not logged), ``first_epoch``
        and ``last_epoch`` (−1 where not logged).
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
    head = rows[starts]
    return pd.DataFrame(
        {
            # codes are compared many times as fast as texts
            "direction": pd.Categorical.from_codes(code[head].astype(np.int8), pd.Index(directions)),
            "item_id": columns["item_id"][head].astype(np.int64),
            "negative_item_id": columns["negative_item_id"][head].astype(np.int64),
            **_gathered(columns, rows, starts),
        },
        copy=False,
    )


def _key(code: np.ndarray, item: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """One int64 per row that sorts by direction, item and negative; ids are below 2³¹."""
    ids = (item.astype(np.int64) << 31) | negative.astype(np.int64)
    return (code.astype(np.int64) << 62) | ids


def _gathered(columns: dict[str, np.ndarray], rows: np.ndarray, starts: np.ndarray) -> dict[str, np.ndarray]:
    """What a group's rows come to; nearly all are met once, so that only the others are added up."""
    count = np.diff(np.append(starts, len(rows)))
    gathered = _of_single({name: values[rows[starts]] for name, values in columns.items()})
    several = count > 1
    if several.any():
        mine = rows[np.repeat(several, count)]
        begins = np.cumsum(count[several]) - count[several]
        several_rows = {"row": mine, **{name: values[mine] for name, values in columns.items()}}
        for name, values in _of_several(several_rows, begins, len(mine)).items():
            gathered[name][several] = values
    return gathered


def _of_single(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    margin, weight = (columns[name].astype(np.float64) for name in ("margin", "weight"))
    epoch = _whole(columns["epoch"])
    return {
        "caption": _whole(columns["caption"]),
        "negative_caption": _whole(columns["negative_caption"]),
        "n": np.ones(len(margin), np.int64),
        "below": (margin < 0).astype(np.int64),
        "above": _above(columns).astype(np.int64),
        "margin": margin,
        "lowest": margin.copy(),
        "weight": weight,
        "first_epoch": epoch,
        "last_epoch": epoch.copy(),
    }


def _of_several(columns: dict[str, np.ndarray], starts: np.ndarray, rows: int) -> dict[str, np.ndarray]:
    count = np.diff(np.append(starts, rows))
    margin = columns["margin"].astype(np.float64)
    lowest = np.minimum.reduceat(margin, starts)
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
        "above": _sum(_above(columns), starts).astype(np.int64),
        "margin": _sum(margin, starts) / count,
        "lowest": lowest,
        "weight": mean_weight,
        "first_epoch": np.minimum.reduceat(epoch, starts),
        "last_epoch": np.maximum.reduceat(epoch, starts),
    }


def _whole(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    return np.nan_to_num(values.astype(np.float64), nan=UNKNOWN).astype(np.int64)


def _above(columns: dict[str, np.ndarray]) -> np.ndarray:
    return np.nan_to_num(columns["suspected_false_negative"].astype(np.float64))


def _sum(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, starts, dtype=np.float64)


def _first_of(chosen: np.ndarray, row: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Position in each group of its chosen row that was logged first; every group has one."""
    first = np.minimum.reduceat(np.where(chosen, row, np.iinfo(np.int64).max), starts)
    position = np.empty(int(row.max()) + 1, np.int64)
    position[row] = np.arange(len(row))
    return np.asarray(position[first])
