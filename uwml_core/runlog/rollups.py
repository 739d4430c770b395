"""Rollups: what is counted of ``pairs``, and adding counts up. Counts of parts add up to those of the whole.

Everything is counted from the float32 values that ``pairs`` holds, in float64, so that a recount from the
raw rows gives the same counts and, but for the order of a sum, the same sums.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uwml_core.runlog import columns
from uwml_core.runlog.grouping import Groups
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

Directions = tuple[str, str]
Values = dict[str, NDArray[Any]]
_Function = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Rollup:
    """One kind of rollup.

    Attributes:
        spec: its table.
        keys: columns by which rows are counted together, the last one beside epoch and direction.
        place: the last key of each row of ``pairs``.
        count: rows of ``pairs`` to values per group, which can be merged.
        merge: values to values per group.
        span: epochs that are counted together.
        needs: of columns that cannot be merged alone, those that are read with them.
    """

    spec: Table
    keys: tuple[str, str, str]
    place: Callable[[Values], NDArray[Any]]
    count: Callable[[Values, Groups], Values]
    merge: Callable[[Values, Groups], Values]
    span: int
    needs: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def columns(self, wanted: Sequence[str]) -> list[str]:
        """Columns that have to be read for some, the keys included, in the order of the schema."""
        chosen = {*self.keys, *wanted}
        chosen |= {name for column in chosen for name in self.needs.get(column, ())}
        return [column.name for column in self.spec.columns if column.name in chosen]


def _bins(pairs: Values) -> NDArray[np.int64]:
    margin = pairs["margin"]
    finite = np.isfinite(margin)
    place = (_or_zero(margin, finite) - LOWEST) * BINS_PER_COSINE
    bins = np.clip(place, -1, BINS).astype(np.int64)
    # that was towards zero; numpy's floor takes longer than all of this
    bins[place < 0] = -1
    # the last bin holds its upper edge
    bins[margin == HIGHEST] = BINS - 1
    bins[~finite] = _NOT_FINITE
    return bins


def _count_margins(pairs: Values, groups: Groups) -> Values:
    finite = np.isfinite(pairs["margin"])
    given = {name: np.isfinite(pairs[name]) for name in ("weight", "gradient_share", "pair_loss")}
    counted: dict[str, tuple[str, _Function]] = {
        "weight_sum": ("weight", _itself),
        "weight_sq_sum": ("weight", np.square),
        "gradient_share_sum": ("gradient_share", _itself),
        "one_minus_p_sum": ("pair_loss", lambda loss: -np.expm1(-loss)),
    }
    return {
        "count": groups.rows(),
        **{
            total: _total(groups, function, pairs[name], finite & given[name])
            for total, (name, function) in counted.items()
        },
        **{f"no_{name}_count": groups.rows(~known) for name, known in given.items()},
    }


def _itself(values: NDArray[Any]) -> NDArray[Any]:
    return values


def _total(
    groups: Groups,
    function: _Function,
    values: NDArray[Any],
    chosen: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Sum in each group of a function of the chosen values, which is 0 at 0."""
    if not chosen.any():
        return np.zeros(groups.number)
    return groups.total(function(_or_zero(values, chosen)))


def _or_zero(values: NDArray[Any], chosen: NDArray[np.bool_], other: float = 0.0) -> NDArray[Any]:
    return values if chosen.all() else np.where(chosen, values, other)


def _merge_margins(rows: Values, groups: Groups) -> Values:
    return {name: groups.total(values) for name, values in rows.items() if name.endswith(_ADDITIVE)}


_ADDITIVE = ("count", "_sum")


def _count_items(pairs: Values, groups: Groups) -> Values:
    finite, weighed = np.isfinite(pairs["margin"]), np.isfinite(pairs["weight"])
    margin = _or_zero(pairs["margin"], finite)
    n, rows, weights = groups.rows(finite), groups.rows(), groups.rows(weighed)
    mean = groups.total(margin) / np.maximum(n, 1)
    squares = groups.total(_or_zero((margin - groups.spread(mean)) ** 2, finite))
    return {
        "n": n,
        "margin_mean": mean,
        "margin_min": groups.least(_or_zero(margin, finite, np.inf)),
        "margin_spread": np.sqrt(squares / np.maximum(n, 1)),
        "weight_mean": groups.total(_or_zero(pairs["weight"], weighed)) / np.maximum(weights, 1),
        "no_margin_count": rows - n,
        "no_weight_count": rows - weights,
    }


def _merge_items(rows: Values, groups: Groups) -> Values:
    counts = {name: groups.total(rows[name]) for name in _COUNTS if name in rows}
    n, whole = rows["n"], counts["n"]
    merged = {**counts}
    if "margin_min" in rows:
        merged["margin_min"] = groups.least(rows["margin_min"])
    if "margin_mean" in rows:
        mean = groups.total(n * rows["margin_mean"]) / np.maximum(whole, 1)
        merged["margin_mean"] = mean
    if "margin_spread" in rows:
        # around the common mean, as a difference of squares would lose the digits of a small spread
        apart = rows["margin_mean"] - groups.spread(mean)
        squares = groups.total(n * (rows["margin_spread"] ** 2 + apart**2))
        merged["margin_spread"] = np.sqrt(squares / np.maximum(whole, 1))
    if "weight_mean" in rows:
        weighed = n + rows["no_margin_count"] - rows["no_weight_count"]
        mean_weight = groups.total(weighed * rows["weight_mean"]) / np.maximum(groups.total(weighed), 1)
        merged["weight_mean"] = mean_weight
    return merged


_COUNTS = ("n", "no_margin_count", "no_weight_count")


MARGINS = Rollup(
    spec=MARGIN_ROLLUPS,
    keys=("epoch", "direction", "bin"),
    place=_bins,
    count=_count_margins,
    merge=_merge_margins,
    span=1,
)
ITEM_STATISTICS = Rollup(
    spec=ITEM_ROLLUPS,
    keys=("epoch", "direction", "item_id"),
    place=lambda pairs: pairs["item_id"],
    count=_count_items,
    merge=_merge_items,
    span=WINDOW_EPOCHS,
    needs={
        "item_id": ("n",),
        "margin_spread": ("margin_mean",),
        "weight_mean": _COUNTS,
    },
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
    return count_values(rollup, pair_values(pairs, directions, chosen))


def pair_values(pairs: pa.Table, directions: Directions, chosen: NDArray[np.intp] | None = None) -> Values:
    """What ``count_values`` counts, for both rollups; arguments as of ``count``."""
    rows = {name: number_column(pairs, name, np.float64) for name in _FLOATS}
    rows["item_id"] = number_column(pairs, "item_id", np.int64, null=-1)
    rows["epoch"] = number_column(pairs, "epoch", np.int64, null=NO_EPOCH)
    rows["direction"] = direction_codes(pairs, directions)
    if chosen is not None:
        rows = taken(rows, chosen)
    if rows["direction"].min(initial=0) < 0:
        rows = taken(rows, rows["direction"] >= 0)
    return rows


def count_values(rollup: Rollup, rows: Values) -> Values:
    """Rollup of the rows that ``pair_values`` gave, sorted by its keys."""
    groups = Groups([_window(rows["epoch"], rollup.span), rows["direction"], rollup.place(rows)])
    return dict(zip(rollup.keys, groups.key_columns(), strict=True)) | rollup.count(rows, groups)


def _window(epoch: NDArray[np.int64], span: int) -> NDArray[np.int64]:
    """The first epoch of the window that each is in."""
    if span == 1:
        return epoch
    # to divide takes longer than to count, and nearly always there is one epoch
    one = (epoch == epoch[:1]).all()
    known = epoch[:1] if one else epoch
    windows = np.where(known == NO_EPOCH, NO_EPOCH, known // span * span)
    return np.repeat(windows, len(epoch)) if one else windows


def merged(rollup: Rollup, rows: Values, within: NDArray[Any] | None = None) -> Values:
    """Rows with equal keys added up, sorted by the keys; only those of equal ``within``, where given."""
    keys = [*(() if within is None else (within,)), *(rows[name] for name in rollup.keys)]
    groups = Groups(keys)
    result = rollup.merge(rows, groups)
    # every other column is the same within a group
    return {name: result[name] if name in result else values[groups.shown] for name, values in rows.items()}


def joined_values(parts: Sequence[Values]) -> Values:
    """Rows of several, one or more, under each other."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def taken(rows: Values, chosen: NDArray[Any] | slice) -> Values:
    """Some of the rows."""
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
    return taken(rows, ~unknown) if unknown.any() else rows
