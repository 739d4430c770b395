"""Rollups: what is counted of ``pairs``, and adding counts up. Counts of parts add up to those of the whole.

Everything is counted from the float32 values that ``pairs`` holds, in float64, so that a recount from the
raw rows gives the same counts and, but for the order of a sum, the same sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uwml_core.runlog import columns
from uwml_core.runlog.schema import ITEM_ROLLUPS, MARGIN_ROLLUPS
from uwml_core.runlog.tables import Table
from uwml_core.runlog.values import direction_codes, number_column

BINS = 400
BINS_PER_COSINE = 100
LOWEST, HIGHEST = -2.0, 2.0
WINDOW_EPOCHS = 10
_FLOATS = ("margin", "pair_loss", "weight", "gradient_share")
PAIR_COLUMNS = ("step", "epoch", "direction", "item_id", *_FLOATS)

# Stand for null in keys; no epoch and no bin has these numbers.
NO_EPOCH = np.iinfo(np.int32).min
_NOT_FINITE = BINS + 1
_NULLS = {"epoch": NO_EPOCH, "bin": _NOT_FINITE}

# what an int64 holds
_MOST_PLACES = 2**62

Directions = tuple[str, str]
Values = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Rollup:
    """One kind of rollup.

    Attributes:
        spec: its table.
        keys: columns by which rows are counted together.
        count: values per row of ``pairs`` to values per row that can be merged.
        merge: values, and where each group of rows begins, to values per group.
        span: epochs that are counted together.
    """

    spec: Table
    keys: tuple[str, ...]
    count: Callable[[Values], Values]
    merge: Callable[[Values, NDArray[np.intp]], Values]
    span: int


def _count_margins(pairs: Values) -> Values:
    margin, loss = pairs["margin"], pairs["pair_loss"]
    finite = np.isfinite(margin)
    place = np.floor((np.where(finite, margin, 0.0) - LOWEST) * BINS_PER_COSINE)
    place = np.clip(np.where(margin == HIGHEST, BINS - 1, place), -1, BINS)
    counted = {
        "weight": pairs["weight"],
        "weight_sq": pairs["weight"] ** 2,
        "gradient_share": pairs["gradient_share"],
        "one_minus_p": -np.expm1(-np.where(np.isfinite(loss), loss, np.nan)),
    }
    missing = {name: ~np.isfinite(pairs[name]) for name in ("weight", "gradient_share", "pair_loss")}
    return {
        "bin": np.where(finite, place, _NOT_FINITE).astype(np.int64),
        "count": np.ones(len(margin), np.int64),
        **{f"{name}_sum": np.where(finite & np.isfinite(v), v, 0.0) for name, v in counted.items()},
        **{f"no_{name}_count": absent.astype(np.int64) for name, absent in missing.items()},
    }


def _merge_margins(rows: Values, starts: NDArray[np.intp]) -> Values:
    return {
        name: np.add.reduceat(values, starts) for name, values in rows.items() if name.endswith(_ADDITIVE)
    }


_ADDITIVE = ("count", "_sum")


def _count_items(pairs: Values) -> Values:
    margin, weight = pairs["margin"], pairs["weight"]
    finite, weighed = np.isfinite(margin), np.isfinite(weight)
    return {
        "item_id": pairs["item_id"],
        "n": finite.astype(np.int64),
        "margin_mean": np.where(finite, margin, 0.0),
        "margin_min": np.where(finite, margin, np.inf),
        "margin_spread": np.zeros(len(margin)),
        "weight_mean": np.where(weighed, weight, 0.0),
        "no_margin_count": (~finite).astype(np.int64),
        "no_weight_count": (~weighed).astype(np.int64),
    }


def _merge_items(rows: Values, starts: NDArray[np.intp]) -> Values:
    sizes = np.diff(np.append(starts, len(rows["n"])))

    def total(values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.add.reduceat(values, starts))

    n, weighed = rows["n"], rows["n"] + rows["no_margin_count"] - rows["no_weight_count"]
    whole, whole_weighed = total(n), total(weighed)
    mean = total(n * rows["margin_mean"]) / np.maximum(whole, 1)
    # around the common mean, as a difference of squares would lose the digits of a small spread
    apart = rows["margin_mean"] - np.repeat(mean, sizes)
    squares = total(n * (rows["margin_spread"] ** 2 + apart**2))
    return {
        "n": whole,
        "margin_mean": mean,
        "margin_min": np.minimum.reduceat(rows["margin_min"], starts),
        "margin_spread": np.sqrt(squares / np.maximum(whole, 1)),
        "weight_mean": total(weighed * rows["weight_mean"]) / np.maximum(whole_weighed, 1),
        "no_margin_count": total(rows["no_margin_count"]),
        "no_weight_count": total(rows["no_weight_count"]),
    }


MARGINS = Rollup(
    spec=MARGIN_ROLLUPS,
    keys=("epoch", "direction", "bin"),
    count=_count_margins,
    merge=_merge_margins,
    span=1,
)
ITEM_STATISTICS = Rollup(
    spec=ITEM_ROLLUPS,
    keys=("epoch", "direction", "item_id"),
    count=_count_items,
    merge=_merge_items,
    span=WINDOW_EPOCHS,
)
ROLLUPS: Mapping[str, Rollup] = {
    "margins": MARGINS,
    "items": ITEM_STATISTICS,
}


def count(
    rollup: Rollup, pairs: pa.Table, directions: Directions, chosen: NDArray[np.intp] | None = None
) -> Values:
    """Rollup of rows of ``pairs``, sorted by its keys; rows of an unknown direction are left out.

    Args:
        rollup: what to count.
        pairs: with ``PAIR_COLUMNS``.
        directions: of the run.
        chosen: positions of the rows to count; all when None.
    """
    rows = {name: number_column(pairs, name, np.float64) for name in _FLOATS}
    rows["item_id"] = number_column(pairs, "item_id", np.int64, null=-1)
    epoch = number_column(pairs, "epoch", np.int64, null=NO_EPOCH)
    rows["epoch"] = np.where(epoch == NO_EPOCH, NO_EPOCH, epoch // rollup.span * rollup.span)
    rows["direction"] = direction_codes(pairs, directions)
    if chosen is not None:
        rows = _taken(rows, chosen)
    if rows["direction"].min(initial=0) < 0:
        rows = _taken(rows, rows["direction"] >= 0)
    keys = {name: rows[name] for name in ("epoch", "direction")}
    return merged(rollup, {**keys, **rollup.count(rows)})


def merged(rollup: Rollup, rows: Values, within: NDArray[Any] | None = None) -> Values:
    """Rows with equal keys added up, sorted by the keys; only those of equal ``within``, where given."""
    keys = [*(() if within is None else (within,)), *(rows[name] for name in rollup.keys)]
    if not len(keys[0]):
        return rows
    key = _as_one(keys)
    order = np.argsort(key, kind="stable")
    ordered, key = _taken(rows, order), key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    result = rollup.merge(ordered, starts)
    # every other column is the same within a group
    return {name: result.get(name, values[starts]) for name, values in ordered.items()}


def is_merged(rollup: Rollup, rows: Values) -> bool:
    """Whether the rows are sorted by their keys and no two have the same."""
    keys = [rows[name] for name in rollup.keys]
    if not len(keys[0]):
        return True
    key = _as_one(keys)
    return bool((key[1:] > key[:-1]).all())


def _as_one(keys: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One key that orders rows as these do, the first before the others.

    In as few bytes as it takes: two are sorted many times faster than eight.
    """
    one, span = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        low, width = int(key.min()), int(key.max()) - int(key.min()) + 1
        if span * width >= _MOST_PLACES:
            # the places of those before instead of their values
            one = np.unique(one, return_inverse=True)[1].astype(np.int64)
            span = int(one.max()) + 1
        one, span = one * width + (key - low), span * width
    return one.astype(np.min_scalar_type(span - 1))


def settled(rollup: Rollup, table: pa.Table, directions: Directions) -> pa.Table:
    """Rows of one segment and process with the stretches of each epoch (or window) added up.

    But for the last one: a resume may begin between its stretches. Where it begins earlier, the reader
    counts the steps in question again from ``pairs``.
    """
    rows = from_table(rollup, table, directions)
    rows = _taken(rows, np.argsort(rows["first_step"], kind="stable"))
    # neighbouring stretches of one epoch are a run of them
    starts = np.flatnonzero(np.diff(rows["epoch"], prepend=NO_EPOCH - 1))
    if len(starts) < 2:
        return to_table(rollup, rows, directions)
    past, rest = (_taken(rows, chosen) for chosen in (slice(starts[-1]), slice(starts[-1], None)))
    sizes = np.diff(starts)
    past["first_step"] = np.repeat(past["first_step"][starts[:-1]], sizes)
    past["step"] = np.repeat(np.maximum.reduceat(past["step"], starts[:-1]), sizes)
    runs = np.repeat(np.arange(len(sizes)), sizes)
    return to_table(rollup, joined_values([merged(rollup, past, within=runs), rest]), directions)


def joined_values(parts: Sequence[Values]) -> Values:
    """Rows of several, one or more, under each other."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _taken(rows: Values, chosen: NDArray[Any] | slice) -> Values:
    return {name: values[chosen] for name, values in rows.items()}


def to_table(rollup: Rollup, rows: Values, directions: Directions) -> pa.Table:
    """Arrow table of the rollup; a column that the rows do not have is null."""
    built = {}
    for field in rollup.spec.schema(directions):
        values = rows.get(field.name)
        if values is None:
            continue
        if field.name == "direction":
            built[field.name] = columns.labels(values, directions)
        else:
            built[field.name] = columns.numbers(values, field.type, _valid(field.name, values, rows))
    return columns.table(built, rollup.spec.schema(directions))


def _valid(name: str, values: NDArray[Any], rows: Values) -> NDArray[np.bool_] | None:
    if name in _NULLS:
        valid: NDArray[np.bool_] = values != _NULLS[name]
        return valid
    if name.startswith("margin_"):
        return np.asarray(rows["n"] > 0)
    if name == "weight_mean":
        return np.asarray(rows["n"] + rows["no_margin_count"] > rows["no_weight_count"])
    return None


def from_table(rollup: Rollup, table: pa.Table, directions: Directions) -> Values:
    """What ``to_table`` was given, without rows of unknown direction."""
    rows: Values = {}
    for field in table.schema:
        if field.name == "direction":
            rows[field.name] = direction_codes(table, directions)
        elif pa.types.is_integer(field.type):
            rows[field.name] = number_column(table, field.name, np.int64, null=_NULLS.get(field.name, 0))
        else:
            empty = np.inf if field.name == "margin_min" else 0.0
            rows[field.name] = number_column(table, field.name, np.float64, null=empty)
    unknown = rows["direction"] < 0
    return _taken(rows, ~unknown) if unknown.any() else rows
