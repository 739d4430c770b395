"""Margin histograms over fixed bins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from uwml_core.runlog.rollups import BINS

# Stands for rows without an epoch, so that they are counted rather than lost.
NO_EPOCH = -1
_KEYS = ["epoch", "direction", "bin"]
_SUMS = ["count", "weight_sum", "weight_sq_sum", "gradient_share_sum", "one_minus_p_sum"]
_TYPES = {"epoch": np.int64, "direction": object, "bin": np.int64, "count": np.int64}


def margin_histogram(rollup: pa.Table) -> pd.DataFrame:
    """Histogram of the margins of each epoch and direction.

    Bin k of 0 .. 399 holds −2 + k / 100 <= margin < −2 + (k + 1) / 100, computed in float64 as
    floor((margin + 2) · 100), the last one its upper edge too; bin −1 lies below, bin 400 above. Margins
    that are not finite are in no bin; a weight, share or loss that is none either adds nothing to its sum.

    Args:
        rollup: what ``Run.rollup("margins")`` gives.

    Returns:
        Frame ``[epoch, direction, bin, count, weight_sum, weight_sq_sum, gradient_share_sum,
        one_minus_p_sum]``, bins with rows only, sorted; epoch −1 where none was logged.
        ``one_minus_p_sum`` adds 1 − p = −expm1(−pair_loss).
    """
    rows = rollup.filter(pc.field("bin").is_valid()).select([*_KEYS, *_SUMS])
    direction = rows["direction"].cast(pa.string())
    frame = rows.set_column(1, "direction", direction).to_pandas()
    frame["epoch"] = frame["epoch"].fillna(NO_EPOCH)
    frame = frame.astype(_TYPES)
    tidy: pd.DataFrame = frame.sort_values(_KEYS, kind="stable").reset_index(drop=True)
    return tidy


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
    if epoch is None:
        rows = rows.groupby(["direction", "bin"], sort=True, as_index=False)[_SUMS].sum()
    code, names = pd.factorize(rows["direction"], sort=True)
    # a row per direction and bin, as arrays: to have pandas align them takes ten times as long
    own, wide = rows["bin"].to_numpy(np.int64), BINS + 2
    inside = own[(own >= 0) & (own < BINS)]
    bins = np.arange(inside.min(), inside.max() + 1) if len(inside) else np.empty(0, np.int64)
    keys, full = code * wide + own + 1, (np.arange(len(names))[:, None] * wide + bins + 1).ravel()
    dense = np.union1d(keys, full)
    place, bin_ = np.searchsorted(dense, keys), dense % wide - 1
    columns = {name: rows[name].to_numpy() for name in _SUMS}
    sums = {name: np.zeros(len(dense), values.dtype) for name, values in columns.items()}
    for name, values in columns.items():
        sums[name][place] = values
    left, right = (bin_ - BINS // 2) / 100.0, (bin_ + 1 - BINS // 2) / 100.0
    edges = {"left": np.where(bin_ >= 0, left, -np.inf), "right": np.where(bin_ < BINS, right, np.inf)}
    return pd.DataFrame({"direction": names.to_numpy()[dense // wide], "bin": bin_, **edges, **sums})


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
