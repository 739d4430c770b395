"""What weights do to a step: measures per step and direction, averaged over steps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.bands import BAND_NAMES, band_of
from uwml_core.analysis.intervals import block_interval
from uwml_core.analysis.replay import LoggedPairs
from uwml_core.weighting import UWMLConfig

MEASURES = ("ess_share", "clamped_share", "loss_scale", "hardest_share", "easy_rest_share")
WEIGHT_BIN = 0.05
WEIGHT_BINS = 100


def negative_terms(logged: LoggedPairs) -> tuple[np.ndarray, np.ndarray]:
    """Probability of each row's hardest negative and 1 − p of its positive under InfoNCE, ``[rows]`` each."""
    loss = logged.pair_loss
    temperature = logged.groups.spread(logged.temperature.astype(loss.dtype))
    # A probability: rounding, and logs of other losses, must not lift it above 1.
    hardest = np.exp(np.minimum(-loss - logged.margin / temperature, 0.0))
    return hardest, -np.expm1(-loss)


def measure_steps(
    logged: LoggedPairs,
    relative: np.ndarray,
    config: UWMLConfig,
    terms: tuple[np.ndarray, np.ndarray] | None,
) -> dict[str, np.ndarray]:
    """Each of ``MEASURES`` for each group.

    Args:
        logged: the rows.
        relative: relative weight of each row, > 0.
        config: whose clamp and normalization count.
        terms: as ``negative_terms`` gives them; None for another loss, whose shares are NaN.

    Returns:
        Name to float64 ``[groups]``: ESS over anchors, share of anchors that the clamp cut, Σ r over the
        loss's denominator, and of the negative gradient the hardest negatives' part and the rest.
    """
    groups = logged.groups
    denominator = groups.loss_denominator(relative, config.normalization)
    hardest = np.full(len(groups.starts), np.nan)
    if terms is not None:
        total = groups.sum(relative * terms[1])
        safe = np.where(total > 0, total, np.nan)
        hardest = np.minimum(groups.sum(relative * terms[0]) / safe, 1.0)
    return {
        "ess_share": groups.effective_sample_size(relative) / groups.counts,
        "clamped_share": _clamped_share(logged, relative, config),
        "loss_scale": groups.sum(relative) / denominator,
        "hardest_share": hardest,
        "easy_rest_share": 1.0 - hardest,
    }


def _clamped_share(logged: LoggedPairs, relative: np.ndarray, config: UWMLConfig) -> np.ndarray:
    at_clamp = logged.groups.sum(relative >= relative.dtype.type(config.max_weight)) / logged.groups.counts
    # relative weights have mean 1: where all are at the clamp, it is 1, too, and cut none of them
    share: np.ndarray = np.where(at_clamp < 1.0, at_clamp, 0.0)
    return share


def mean_and_sd(values: np.ndarray) -> tuple[float, float]:
    """Mean and sample standard deviation of the finite values; NaN below one and two of them.

    Example:
        >>> mean_and_sd(np.array([1.0, np.nan, 3.0]))
        (2.0, 1.4142135623730951)
    """
    finite = values[np.isfinite(values)]
    mean = float(finite.mean()) if len(finite) else float("nan")
    return mean, float(finite.std(ddof=1)) if len(finite) > 1 else float("nan")


def summarize(
    logged: LoggedPairs, measures: dict[str, dict[str, np.ndarray]], directions: tuple[str, str]
) -> pd.DataFrame:
    """Mean and spread over steps of what ``measure_steps`` gave before and after; see ``WhatIf.summary``."""
    rows = []
    for code, direction in enumerate(directions):
        mine = np.flatnonzero(logged.groups.direction == code)
        mine = mine[np.argsort(logged.groups.step[mine], kind="stable")]
        row = {
            "direction": direction,
            "rows": int(logged.groups.counts[mine].sum()),
            "steps": len(mine),
            "rows_without_weight": int(logged.left_out[code]),
        }
        for name in MEASURES:
            for when in ("before", "after"):
                mean, sd = mean_and_sd(measures[when][name][mine])
                row |= {f"{name}_{when}": mean, f"{name}_{when}_sd": sd}
        change = block_interval((measures["after"]["ess_share"] - measures["before"]["ess_share"])[mine])
        row |= {"ess_change": change.mean, "ess_change_low": change.low, "ess_change_high": change.high}
        rows.append(row)
    return pd.DataFrame(rows)


def band_shares(
    logged: LoggedPairs, relative: dict[str, np.ndarray], directions: tuple[str, str]
) -> pd.DataFrame:
    """Part of each direction's gradient that each band holds; see ``WhatIf.bands``.

    Args:
        logged: the rows.
        relative: ``before`` and ``after``, relative weight of each row.
        directions: the run's directions.
    """
    groups, width = logged.groups, len(BAND_NAMES)
    key = groups.spread(np.arange(len(groups.starts))) * width + band_of(logged.margin)
    counts = np.bincount(key, minlength=len(groups.starts) * width).reshape(-1, width)
    known = np.nan_to_num(logged.gradient_share)
    factor = relative["after"] / relative["before"]
    shares = {"before": _band_parts(key, known, len(groups.starts), width)}
    shares["after"] = _band_parts(key, known * factor, len(groups.starts), width)
    rows = []
    for code, direction in enumerate(directions):
        mine = groups.direction == code
        counted = int(np.isfinite(shares["before"][mine, 0]).sum())
        for band, name in enumerate(BAND_NAMES):
            row = {"direction": direction, "band": name, "n": int(counts[mine, band].sum()), "steps": counted}
            for when in ("before", "after"):
                mean, sd = mean_and_sd(shares[when][mine, band])
                row |= {f"share_{when}": mean, f"share_{when}_sd": sd}
            rows.append(row)
    return pd.DataFrame(rows)


def _band_parts(key: np.ndarray, share: np.ndarray, groups: int, width: int) -> np.ndarray:
    held = np.bincount(key, weights=share, minlength=groups * width).reshape(-1, width)
    total = held.sum(axis=1, keepdims=True)
    return held / np.where(total > 0, total, np.nan)


def weight_histogram(
    logged: LoggedPairs, relative: dict[str, np.ndarray], directions: tuple[str, str]
) -> pd.DataFrame:
    """Histogram of relative weights over fixed edges; see ``WhatIf.weights``; arguments as above."""
    bins = np.arange(WEIGHT_BINS + 1)
    code = logged.groups.spread(logged.groups.direction)
    length = len(directions) * len(bins)
    frame = {
        "direction": np.repeat(np.array(directions, dtype=object), len(bins)),
        "bin": np.tile(bins, len(directions)),
        "left": np.tile(bins * WEIGHT_BIN, len(directions)),
        "right": np.tile(np.append(bins[1:] * WEIGHT_BIN, np.inf), len(directions)),
    }
    for when, r in relative.items():
        bin_ = np.minimum(np.floor(r / r.dtype.type(WEIGHT_BIN)), WEIGHT_BINS).astype(np.int64)
        frame[f"count_{when}"] = np.bincount(code * len(bins) + bin_, minlength=length)
    return pd.DataFrame(frame)
