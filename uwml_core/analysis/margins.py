"""Margin histograms over fixed bins; histograms of parts add up to the histogram of the whole."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.columns import direction_codes, direction_names_in, numbers

BINS = 400
BIN_WIDTH = 0.01
LOWEST, HIGHEST = -2.0, 2.0
# Stands for rows without an epoch, so that they are counted rather than lost.
NO_EPOCH = -1
HISTOGRAM_COLUMNS = ("epoch", "direction", "margin", "weight", "pair_loss", "gradient_share")
_KEYS = ["epoch", "direction", "bin"]
_SUMS = ["count", "weight_sum", "weight_sq_sum", "gradient_share_sum", "one_minus_p_sum"]
_DTYPES = {"epoch": np.int64, "direction": object, "bin": np.int64, "count": np.int64}


def margin_histogram(pairs: pa.Table) -> pd.DataFrame:
    """Histogram of the margins of each epoch and direction.

    Bin k of 0 .. 399 holds −2 + k / 100 <= margin < −2 + (k + 1) / 100, computed in float64 as
    floor((margin + 2) · 100), the last one its upper edge too; bin −1 lies below, bin 400 above. Margins
    that are NaN are in no bin; a weight, share or loss that is null or NaN adds nothing to its sum.

    Args:
        pairs: rows of the table ``pairs`` with ``HISTOGRAM_COLUMNS``.

    Returns:
        Frame ``[epoch, direction, bin, count, weight_sum, weight_sq_sum, gradient_share_sum,
        one_minus_p_sum]``, bins with rows only, sorted; epoch −1 where none was logged.
        ``one_minus_p_sum`` adds 1 − p = −expm1(−pair_loss).
    """
    names = direction_names_in(pairs)
    margin = numbers(pairs, "margin").astype(np.float64)
    epoch = np.nan_to_num(numbers(pairs, "epoch").astype(np.float64), nan=NO_EPOCH).astype(np.int64)
    code = direction_codes(pairs, names)
    rows = np.flatnonzero(~np.isnan(margin) & (code >= 0))
    if not len(rows):
        return _empty()
    first = int(epoch[rows].min())
    key = ((epoch[rows] - first) * len(names) + code[rows]) * (BINS + 2) + _bin(margin[rows]) + 1
    sums = _sums(pairs, rows, key)
    present = np.flatnonzero(sums["count"])
    group, bin_ = np.divmod(present, BINS + 2)
    frame = pd.DataFrame({name: values[present] for name, values in sums.items()})
    frame.insert(0, "epoch", group // len(names) + first)
    frame.insert(1, "direction", np.array(names, dtype=object)[group % len(names)])
    frame.insert(2, "bin", bin_ - 1)
    return _sorted(frame)


def _bin(margin: np.ndarray) -> np.ndarray:
    scaled = np.clip(np.floor((margin - LOWEST) * 100.0), -1, BINS).astype(np.int64)
    scaled[margin == HIGHEST] = BINS - 1
    return scaled


def _sums(pairs: pa.Table, rows: np.ndarray, key: np.ndarray) -> dict[str, np.ndarray]:
    length = int(key.max()) + 1
    weight, share, loss = (
        np.nan_to_num(numbers(pairs, name)[rows].astype(np.float64))
        for name in ("weight", "gradient_share", "pair_loss")
    )

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(key, weights=values, minlength=length)

    return {
        "count": np.bincount(key, minlength=length),
        "weight_sum": total(weight),
        "weight_sq_sum": total(weight * weight),
        "gradient_share_sum": total(share),
        "one_minus_p_sum": total(-np.expm1(-loss)),
    }


def _empty() -> pd.DataFrame:
    return pd.DataFrame({name: np.empty(0, _DTYPES.get(name, np.float64)) for name in [*_KEYS, *_SUMS]})


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"direction": object}).sort_values(_KEYS, kind="stable").reset_index(drop=True)


def merge_histograms(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Add histograms up, as if their rows had been one table."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return _empty()
    merged = pd.concat(filled, ignore_index=True).groupby(_KEYS, sort=True, as_index=False)[_SUMS].sum()
    return _sorted(merged)


def epochs_in(histogram: pd.DataFrame) -> list[int]:
    """Epochs that have rows, ascending."""
    return sorted(int(epoch) for epoch in histogram["epoch"].unique())


def select_epoch(histogram: pd.DataFrame, epoch: int | None) -> pd.DataFrame:
    """Histogram of one epoch, or of all when None, with the edges of each bin.

    Returns:
        Frame ``[direction, bin, left, right, count, ...]``; every bin between the lowest and the highest
        one with rows, empty ones with zeros, so that bars and outlines are right; the underflow and
        overflow bins, present only with rows, have infinite edges.
    """
    rows = histogram if epoch is None else histogram[histogram["epoch"] == epoch]
    merged = rows.groupby(["direction", "bin"], sort=True, as_index=False)[_SUMS].sum()
    inside = merged.loc[merged["bin"].between(0, BINS - 1), "bin"]
    bins = np.arange(inside.min(), inside.max() + 1) if len(inside) else np.empty(0, np.int64)
    full = pd.MultiIndex.from_product([merged["direction"].unique(), bins], names=["direction", "bin"])
    dense = merged.set_index(["direction", "bin"])
    dense = dense.reindex(dense.index.union(full).sort_values(), fill_value=0).reset_index()
    left = (dense["bin"] - BINS // 2) / 100.0
    right = (dense["bin"] + 1 - BINS // 2) / 100.0
    dense.insert(2, "left", left.where(dense["bin"] >= 0, -np.inf))
    dense.insert(3, "right", right.where(dense["bin"] < BINS, np.inf))
    return dense


def epoch_progress(steps: pd.DataFrame) -> pd.DataFrame:
    """Where in training each epoch lies: ``[epoch, first_step, last_step, progress, steepness]``.

    ``progress`` and ``steepness`` are those logged at the epoch's middle row; NaN where not logged.
    Steps without an epoch are left out.
    """
    columns = ["epoch", "first_step", "last_step", "progress", "steepness"]
    rows = steps.dropna(subset=["epoch"])
    if rows.empty:
        return pd.DataFrame(columns=columns).astype(float)
    epoch = rows["epoch"].to_numpy().astype(np.int64)
    starts = np.flatnonzero(np.diff(epoch, prepend=epoch[0] - 1))
    ends = np.append(starts[1:], len(rows)) - 1
    step = rows["step"].to_numpy()
    middle = rows.iloc[(starts + ends) // 2]
    values = (epoch[starts], step[starts], step[ends])
    table = dict(zip(columns, values, strict=False))
    for name in ("progress", "steepness"):
        table[name] = middle[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.DataFrame(table)
