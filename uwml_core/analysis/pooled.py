"""What other parameters would have done, from margin histograms instead of pairs: fast, and approximate.

Notation of shapes: G an epoch and direction each, B bins, T moments of an epoch. What training does step
by step (weights relative to their mean, the clamp, the effective sample size) is done here for a few moments
of an epoch, as the steepness changes within it. So the tried weight of a bin is its logged one times a ratio,
that of the tried to the replayed weight, both for the middle of the bin, and so for its square: equal
parameters change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.bands import BAND_NAMES, band_of
from uwml_core.analysis.columns import direction_codes, numbers
from uwml_core.analysis.curves import curve_weight, steepness_at
from uwml_core.analysis.margins import NO_EPOCH
from uwml_core.analysis.step_measures import MEASURES, WEIGHT_BIN, WEIGHT_BINS
from uwml_core.analysis.validity import replay_obstacle
from uwml_core.analysis.what_if import WhatIf
from uwml_core.runlog.rollups import BINS, BINS_PER_COSINE, LOWEST
from uwml_core.weighting import (
    UWMLConfig,
    combined_weight,
    effective_sample_size,
    loss_denominator,
    relative_weight,
    stage_factor,
)

# The under- and the overflow bin come first and last.
MIDDLE_B = LOWEST + (np.arange(-1, BINS + 1) + 0.5) / BINS_PER_COSINE
_SUMS = ("count", "weight_sum", "weight_sq_sum", "gradient_share_sum", "no_weight_count")
# Moments of all epochs together at which the curve is taken: many where epochs are few, and long.
_MOMENTS, _MOMENTS_OF_EPOCH = 32, 8


@dataclass(frozen=True, kw_only=True)
class PooledMargins:
    """Histograms of some epochs, and what their steps have in common.

    Attributes:
        sums: of ``rollups/margins``, each ``[G, B]``.
        epoch, direction: of each group, ``[G]``.
        steps: logged steps of each group's epoch, ``[G]``.
        progress: moments of the epoch with as many steps around each, ``[G, T]``; NaN where not logged.
        direction_weight, margin_scale: means over these steps, ``[G]``; NaN where not logged.
        config: the parameters in use.
        directions: the run's directions.
    """

    sums: dict[str, np.ndarray] = field(repr=False)
    epoch: np.ndarray
    direction: np.ndarray
    steps: np.ndarray
    progress: np.ndarray
    direction_weight: np.ndarray
    margin_scale: np.ndarray
    config: UWMLConfig
    directions: tuple[str, str]
    weighed: bool


def pooled_margins(
    rollup: pa.Table,
    steps: pd.DataFrame,
    epoch: int | None,
    config: UWMLConfig,
    directions: tuple[str, str],
) -> PooledMargins:
    """Take what a replay needs from the rollup.

    Args:
        rollup: what ``Run.rollup("margins")`` gives.
        steps: frame of the table ``steps``.
        epoch: which epoch to look at; None for all.
        config: the parameters in use.
        directions: the run's directions.
    """
    bin_, code = numbers(rollup, "bin"), direction_codes(rollup, directions)
    of_row = np.nan_to_num(numbers(rollup, "epoch"), nan=NO_EPOCH).astype(np.int64)
    rows = np.flatnonzero(np.isfinite(bin_) & (code >= 0) & ((epoch is None) | (of_row == epoch)))
    keys, group = np.unique(np.stack([of_row[rows], code[rows]]), axis=1, return_inverse=True)
    place = (group.ravel(), bin_[rows].astype(np.int64) + 1)
    sums = {name: np.zeros((keys.shape[1], BINS + 2)) for name in _SUMS}
    for name, values in sums.items():
        values[place] = numbers(rollup, name)[rows]
    weighed = bool(sums["count"].sum() > sums["no_weight_count"].sum())
    if not weighed:
        # a log without weights starts from pairs that all count alike
        sums |= {"weight_sum": sums["count"], "weight_sq_sum": sums["count"]}
        sums["no_weight_count"] = np.zeros_like(sums["count"])
    means = _means(steps, directions)
    of_direction = [_picked(means, name, keys, directions) for name in ("direction_weight", "margin_scale")]
    counted = steps.groupby(_epochs(steps)).size()
    return PooledMargins(
        sums=sums,
        epoch=keys[0],
        direction=keys[1],
        steps=counted.reindex(keys[0], fill_value=0).to_numpy(),
        progress=_moments(steps, keys[0]),
        direction_weight=of_direction[0],
        margin_scale=of_direction[1],
        config=config,
        directions=directions,
        weighed=weighed,
    )


def _epochs(steps: pd.DataFrame) -> np.ndarray:
    epoch = steps["epoch"].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(np.nan_to_num(epoch, nan=NO_EPOCH), dtype=np.int64)


def _means(steps: pd.DataFrame, directions: tuple[str, str]) -> pd.DataFrame:
    names = [f"{name}_{d}" for name in ("direction_weight", "margin_scale") for d in directions]
    values = steps.reindex(columns=names).astype(np.float64)
    means: pd.DataFrame = values.groupby(_epochs(steps)).mean()
    return means


def _moments(steps: pd.DataFrame, epoch_G: np.ndarray) -> np.ndarray:
    count = max(1, min(_MOMENTS_OF_EPOCH, _MOMENTS // max(len(np.unique(epoch_G)), 1)))
    progress = steps["progress"].astype(np.float64).groupby(_epochs(steps))
    parts = [progress.quantile((moment + 0.5) / count) for moment in range(count)]
    return np.stack([part.reindex(epoch_G).to_numpy(np.float64) for part in parts], axis=1)


def _picked(means: pd.DataFrame, name: str, keys: np.ndarray, directions: tuple[str, str]) -> np.ndarray:
    first, second = (means[f"{name}_{direction}"].reindex(keys[0]).to_numpy() for direction in directions)
    return np.asarray(np.where(keys[1] == 0, first, second))


def compare_pooled(before: PooledMargins, after: UWMLConfig) -> WhatIf:
    """As ``what_if.compare``, pooled by epoch; means over epochs count each epoch by its steps.

    Without spreads and intervals, and without the shares of clamped anchors and of the hardest negatives,
    which no histogram tells.
    """
    in_use = _relative(before, before.config)
    tried = in_use if replay_obstacle(before.config) else _relative(before, after)
    ratio = np.where(in_use > 0, tried / np.where(in_use > 0, in_use, 1.0), 1.0)
    ratios = {"before": np.ones_like(ratio), "after": ratio}
    configs = {"before": before.config, "after": after}
    measures = {
        when: _measures(before, ratios[when][0], ratios[when][1], config) for when, config in configs.items()
    }
    own = {when: ratio[0] for when, ratio in ratios.items()}
    return WhatIf(
        summary=_summary(before, measures),
        bands=_bands(before, own),
        weights=_weights(before, own),
        unchanged=before.config == after,
        weighed=before.weighed,
    )


def _relative(pooled: PooledMargins, config: UWMLConfig) -> np.ndarray:
    """Weight that ``config`` gives the middle of each bin and its square, both over moments ``[2, G, B]``."""
    of_moments = np.stack([_at(pooled, config, progress_G) for progress_G in pooled.progress.T])
    return np.stack([of_moments.mean(axis=0), (of_moments**2).mean(axis=0)])


def _at(pooled: PooledMargins, config: UWMLConfig, progress_G: np.ndarray) -> np.ndarray:
    """Relative weight that ``config`` gives the middle of each bin at a moment of each epoch, ``[G, B]``."""
    margin_GB = np.broadcast_to(MIDDLE_B, pooled.sums["count"].shape)
    if config.margin_scale != "none":
        margin_GB = margin_GB / pooled.margin_scale[:, None]
    steepness_G = np.broadcast_to(steepness_at(progress_G, config), progress_G.shape)
    weight_GB = curve_weight(margin_GB, steepness_G[:, None], config)
    if config.combination == "add":
        factor = stage_factor(steepness_G, config.steepness_start, config.steepness_end)
        own = pooled.direction_weight[:, None]
        weight_GB = combined_weight(weight_GB, own, np.broadcast_to(factor, own.shape[:1])[:, None])
    n_GB = _weighed(pooled)

    def total(*_of_bins: Any) -> tuple[np.ndarray, np.ndarray]:
        return (n_GB * weight_GB).sum(axis=-1, keepdims=True), n_GB.sum(axis=-1, keepdims=True)

    return np.asarray(relative_weight(weight_GB, config.max_weight, total=total))


def _weighed(pooled: PooledMargins) -> np.ndarray:
    return np.asarray(pooled.sums["count"] - pooled.sums["no_weight_count"])


def _measures(
    pooled: PooledMargins, ratio: np.ndarray, ratio_of_squares: np.ndarray, config: UWMLConfig
) -> dict[str, np.ndarray]:
    n_G = np.maximum(_weighed(pooled).sum(axis=1), 1.0)
    summed_G = (pooled.sums["weight_sum"] * ratio).sum(axis=1)
    squares_G = (pooled.sums["weight_sq_sum"] * ratio_of_squares).sum(axis=1)
    steps_G, one_G = np.maximum(pooled.steps, 1), np.ones((len(n_G), 1))

    def of_a_step(*sums: Any) -> tuple[np.ndarray, ...]:
        known = {"l2": (n_G, squares_G), "sum": (summed_G,), "rss": (squares_G,), "none": (n_G,)}
        return tuple(values / steps_G for values in known[config.normalization][: len(sums)])

    ess_G = effective_sample_size(one_G, total=lambda *_: (summed_G, squares_G))
    known = {
        "ess_share": ess_G / n_G,
        "loss_scale": summed_G / steps_G / loss_denominator(one_G, config.normalization, total=of_a_step),
    }
    return {name: known.get(name, np.full(len(n_G), np.nan)) for name in MEASURES}


def _mean(values: np.ndarray, weight: np.ndarray) -> float:
    known = np.isfinite(values) & (weight > 0)
    return float(np.average(values[known], weights=weight[known])) if known.any() else float("nan")


def _summary(pooled: PooledMargins, measures: dict[str, dict[str, np.ndarray]]) -> pd.DataFrame:
    rows = []
    for code, direction in enumerate(pooled.directions):
        mine = pooled.direction == code
        row: dict[str, Any] = {
            "direction": direction,
            "rows": int(_weighed(pooled)[mine].sum()),
            "steps": int(pooled.steps[mine].sum()),
            "rows_without_weight": int(pooled.sums["no_weight_count"][mine].sum()),
        }
        for name in MEASURES:
            for when, values in measures.items():
                mean = _mean(values[name][mine], pooled.steps[mine])
                row |= {f"{name}_{when}": mean, f"{name}_{when}_sd": np.nan}
        row["ess_change"] = row["ess_share_after"] - row["ess_share_before"]
        rows.append({**row, "ess_change_low": np.nan, "ess_change_high": np.nan})
    return pd.DataFrame(rows)


def _bands(pooled: PooledMargins, ratios: dict[str, np.ndarray]) -> pd.DataFrame:
    band_B, rows = band_of(MIDDLE_B), []
    held = {when: pooled.sums["gradient_share_sum"] * ratio for when, ratio in ratios.items()}
    totals = {when: values.sum(axis=1) for when, values in held.items()}
    for code, direction in enumerate(pooled.directions):
        mine = pooled.direction == code
        for band, name in enumerate(BAND_NAMES):
            inside = np.ix_(mine, band_B == band)
            row = {"direction": direction, "band": name, "n": int(pooled.sums["count"][inside].sum())}
            row["steps"] = int(pooled.steps[mine].sum())
            for when, values in held.items():
                total = totals[when][mine]
                share = values[inside].sum(axis=1) / np.where(total > 0, total, np.nan)
                row |= {f"share_{when}": _mean(share, pooled.steps[mine]), f"share_{when}_sd": np.nan}
            rows.append(row)
    return pd.DataFrame(rows)


def _weights(pooled: PooledMargins, ratios: dict[str, np.ndarray]) -> pd.DataFrame:
    bins, n_GB = np.arange(WEIGHT_BINS + 1), _weighed(pooled)
    mean_GB = pooled.sums["weight_sum"] / np.where(n_GB > 0, n_GB, np.nan)
    frame = {
        "direction": np.repeat(np.array(pooled.directions, dtype=object), len(bins)),
        "bin": np.tile(bins, len(pooled.directions)),
        "left": np.tile(bins * WEIGHT_BIN, len(pooled.directions)),
        "right": np.tile(np.append(bins[1:] * WEIGHT_BIN, np.inf), len(pooled.directions)),
    }
    for when, ratio in ratios.items():
        place = np.minimum(np.floor(np.nan_to_num(mean_GB * ratio) / WEIGHT_BIN), WEIGHT_BINS).astype(
            np.int64
        )
        key = pooled.direction[:, None] * len(bins) + place
        counts = np.bincount(key.ravel(), n_GB.ravel(), minlength=len(frame["bin"]))
        frame[f"count_{when}"] = np.round(counts).astype(np.int64)
    return pd.DataFrame(frame)
