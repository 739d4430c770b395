"""Which pairs count, and what other parameters would have done on the logged margins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.analysis.bands import BAND_NAMES, band_of
from uwml_core.analysis.intervals import block_interval
from uwml_core.analysis.replay import LoggedPairs, logged_pairs, replayed_weight
from uwml_core.weighting import UWMLConfig

MEASURES = ("ess_share", "clamped_share", "loss_scale", "hardest_share", "easy_rest_share")
WEIGHT_BIN = 0.05
WEIGHT_BINS = 100


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """Before and after, everything computed per step and then averaged over steps.

    Attributes:
        summary: one row per direction: direction, rows, steps, rows_without_weight; for each of
            ``MEASURES`` its mean over steps ``_before`` and ``_after`` and their sample standard
            deviations ``_before_sd`` and ``_after_sd``; ess_change with the 95 % block-bootstrap bounds
            ess_change_low and ess_change_high of its mean over steps.
        bands: direction, band, n, steps, share_before, share_after, share_before_sd, share_after_sd:
            the part of the direction's gradient that the band holds.
        weights: direction, bin, left, right, count_before, count_after: relative weights in bins of
            0.05 on [0, 5), the last bin open.
        unchanged: whether both sets of parameters are equal.
    """

    summary: pd.DataFrame
    bands: pd.DataFrame
    weights: pd.DataFrame
    unchanged: bool


def preview(
    pairs: pa.Table,
    steps: pd.DataFrame,
    before: UWMLConfig,
    after: UWMLConfig,
    directions: tuple[str, str],
) -> WhatIf:
    """Replay logged margins with other parameters.

    ``before`` are the logged weights r. ``after`` are the weights r' of the other parameters; a row's
    share of the gradient becomes proportional to gradient_share · r' / r, renormalised per step. Of the
    negative gradient of InfoNCE, the hardest negatives hold Σ r exp(−l − margin / τ) / Σ r (1 − p) in a
    step; the easy rest holds what is left.

    Args:
        pairs, steps, directions: as for ``replay.logged_pairs``.
        before: the parameters in use.
        after: the parameters to try.

    Returns:
        The comparison. A mean over no step is NaN: nothing logged, a step whose gradient is 0, or the
        negative gradient of a loss that is not InfoNCE.
    """
    logged = logged_pairs(pairs, steps, directions)
    relative = {"before": logged.weight, "after": replayed_weight(logged, after)}
    configs = {"before": before, "after": after}
    terms = _negative_terms(logged) if before.base == "infonce" else None
    measures = {when: _measures(logged, r, configs[when], terms) for when, r in relative.items()}
    return WhatIf(
        summary=_summary(logged, measures, directions),
        bands=_bands(logged, relative, directions),
        weights=_weights(logged, relative, directions),
        unchanged=before == after,
    )


def _negative_terms(logged: LoggedPairs) -> tuple[np.ndarray, np.ndarray]:
    loss = logged.pair_loss
    temperature = logged.groups.spread(logged.temperature.astype(loss.dtype))
    # A probability: rounding, and logs of other losses, must not lift it above 1.
    hardest = np.exp(np.minimum(-loss - logged.margin / temperature, 0.0))
    return hardest, -np.expm1(-loss)


def _measures(
    logged: LoggedPairs,
    relative: np.ndarray,
    config: UWMLConfig,
    terms: tuple[np.ndarray, np.ndarray] | None,
) -> dict[str, np.ndarray]:
    groups = logged.groups
    denominator = groups.loss_denominator(relative, config.normalization)
    hardest = np.full(len(groups.starts), np.nan)
    if terms is not None:
        total = groups.sum(relative * terms[1])
        safe = np.where(total > 0, total, np.nan)
        hardest = np.minimum(groups.sum(relative * terms[0]) / safe, 1.0)
    return {
        "ess_share": groups.effective_sample_size(relative) / groups.counts,
        "clamped_share": groups.sum(relative >= np.float32(config.max_weight)) / groups.counts,
        "loss_scale": groups.sum(relative) / denominator,
        "hardest_share": hardest,
        "easy_rest_share": 1.0 - hardest,
    }


def mean_and_sd(values: np.ndarray) -> tuple[float, float]:
    """Mean and sample standard deviation of the finite values; NaN below one and two of them.

    Example:
        >>> mean_and_sd(np.array([1.0, np.nan, 3.0]))
        (2.0, 1.4142135623730951)
    """
    finite = values[np.isfinite(values)]
    mean = float(finite.mean()) if len(finite) else float("nan")
    return mean, float(finite.std(ddof=1)) if len(finite) > 1 else float("nan")


def _summary(
    logged: LoggedPairs, measures: dict[str, dict[str, np.ndarray]], directions: tuple[str, str]
) -> pd.DataFrame:
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


def _bands(logged: LoggedPairs, relative: dict[str, np.ndarray], directions: tuple[str, str]) -> pd.DataFrame:
    groups, width = logged.groups, len(BAND_NAMES)
    key = groups.spread(np.arange(len(groups.starts))) * width + band_of(logged.margin)
    counts = np.bincount(key, minlength=len(groups.starts) * width).reshape(-1, width)
    known = np.nan_to_num(logged.gradient_share)
    factor = relative["after"] / relative["before"]
    shares = {"before": _shares(key, known, len(groups.starts), width)}
    shares["after"] = _shares(key, known * factor, len(groups.starts), width)
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


def _shares(key: np.ndarray, share: np.ndarray, groups: int, width: int) -> np.ndarray:
    held = np.bincount(key, weights=share, minlength=groups * width).reshape(-1, width)
    total = held.sum(axis=1, keepdims=True)
    return held / np.where(total > 0, total, np.nan)


def _weights(
    logged: LoggedPairs, relative: dict[str, np.ndarray], directions: tuple[str, str]
) -> pd.DataFrame:
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
