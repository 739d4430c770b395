"""How far apart the two modalities lie, measured where they were embedded, never on a map.

Notation: x_i, y_i are the unit vectors of item i in the first and the second modality, N items have both.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from uwml_core.analysis.gap_intervals import (
    drawn_cosine,
    drawn_kernel,
    drawn_mean,
    drawn_skewness,
    draws,
    interval,
)
from uwml_core.analysis.hubness import occurrences, skewness
from uwml_core.analysis.separability import held_out
from uwml_core.runlog.snapshots import Snapshot, snapshots_in

Floats = NDArray[np.float64]

MEASURES = ("centroid_distance", "rmg", "alignment", "separability", "uniformity", "hubness", "cosine")
GAP_COLUMNS = ("step", "epoch", "measure", "modality", "value", "low", "high", "n")
ACROSS = "across"
# Of each modality, where one has several values.
SPLIT_MEASURES = ("uniformity", "hubness", "cosine")
# What compares all with all: this many items tell the mean of their pairs well at a bearable cost.
PAIRWISE_ITEMS = 500

Value = tuple[float, float, float]
_NONE = (float("nan"),) * 3


def gap_measures(table: pa.Table) -> pd.DataFrame:
    """All measures of the snapshots in a part of the table ``snapshots``; see the single functions.

    Args:
        table: rows of one or more snapshots.

    Returns:
        Frame ``[step, epoch, measure, modality, value, low, high, n]`` in float64, by step; ``low`` and
        ``high`` bound 95 % of the draws of a bootstrap over items; ``modality`` is null but for
        ``SPLIT_MEASURES``, where it is a modality or ``across``, of hubness the modality of the hubs; ``n``
        counts the items. A measure that is not defined is NaN. Snapshots of a single modality have its
        uniformity and its mean cosine alone.
    """
    rows = [row for snapshot in snapshots_in(table) for row in _measures(snapshot)]
    return pd.DataFrame(rows, columns=list(GAP_COLUMNS))


def merge_gaps(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Measures of all parts, by step."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return pd.DataFrame(columns=list(GAP_COLUMNS))
    return pd.concat(filled, ignore_index=True).sort_values("step", kind="stable", ignore_index=True)


def _measures(snapshot: Snapshot) -> Iterable[tuple[object, ...]]:
    where = (snapshot.step, snapshot.epoch)
    vectors = snapshot.vectors.astype(np.float64)
    for name in snapshot.modalities:
        own = vectors[_sample(snapshot.rows(name))]
        yield *where, "uniformity", name, *_uniformity(own, own), len(own)
        yield *where, "cosine", name, *_cosine(own, own), len(own)
    if len(snapshot.modalities) != 2:
        return
    first, second = snapshot.pairs((snapshot.modalities[0], snapshot.modalities[1]))
    x, y = vectors[first], vectors[second]
    for measure, function in _PAIRED.items():
        yield *where, measure, None, *function(x, y), len(x)
    few = _sample(np.arange(len(x)))
    x, y = x[few], y[few]
    yield *where, "uniformity", ACROSS, *_uniformity(x, y), len(few)
    yield *where, "cosine", ACROSS, *_cosine(x, y), len(few)
    for name, queries, hubs in zip(snapshot.modalities, (y, x), (x, y), strict=True):
        yield *where, "hubness", name, *_hubness(queries, hubs), len(few)


def _sample(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(rows) <= PAIRWISE_ITEMS:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, PAIRWISE_ITEMS, replace=False))


def centroid_distance(x: Floats, y: Floats) -> float:
    """‖mean x − mean y‖₂, 0 (same centre) to 2 (opposite poles).

    Args:
        x, y: float64 ``[N, dim]``, unit norm, row by row one item.

    Returns:
        The distance; NaN without items.

    Reference:
        Liang et al., "Mind the gap", NeurIPS 2022.

    Example:
        >>> centroid_distance(np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]]))
        2.0
    """
    return float(np.linalg.norm(x.mean(axis=0) - y.mean(axis=0))) if len(x) else float("nan")


def relative_modality_gap(x: Floats, y: Floats) -> float:
    """Distance of the pairs against that of everything: 0 aligned, 0.5 no gap beyond chance, 1 all gap.

    With d(a, b) = (1 − a·b) / 2:

        RMG = p / (p + w),  p = (1/N) Σ_i d(x_i, y_i),
        w = 1/(2 N (N − 1)) Σ_{i≠j} [d(x_i, x_j) + d(y_i, y_j)]

    Args:
        x, y: float64 ``[N, dim]``, unit norm, row by row one item.

    Returns:
        The ratio; NaN with fewer than two items, or where all vectors are the same.

    Reference:
        Schrodi et al., "Two effects, one trigger", ICLR 2025.
    """
    if len(x) < 2:
        return float("nan")
    pair = float(np.mean((1.0 - np.sum(x * y, axis=1)) / 2.0))
    within = (1.0 - (mean_cosine(x, x) + mean_cosine(y, y)) / 2.0) / 2.0
    total = pair + within
    # rounding of float16 vectors alone stays below this
    return pair / total if total > 1e-9 else float("nan")


def alignment(x: Floats, y: Floats) -> float:
    """(1/N) Σ_i ‖x_i − y_i‖₂², 0 (pairs coincide) to 4.

    Args:
        x, y: float64 ``[N, dim]``, unit norm, row by row one item.

    Returns:
        The mean; NaN without items.

    Reference:
        Wang and Isola, "Understanding contrastive representation learning through alignment and
        uniformity on the hypersphere", ICML 2020, with α = 2.
    """
    return float(np.mean(np.sum((x - y) ** 2, axis=1))) if len(x) else float("nan")


def uniformity(x: Floats) -> float:
    """Log of the mean over i ≠ j of exp(−2 ‖x_i − x_j‖₂²): 0 all in one place, about −4 evenly spread.

    Args:
        x: float64 ``[n, dim]``, unit norm.

    Returns:
        The logarithm; NaN with fewer than two vectors.

    Reference:
        Wang and Isola, ICML 2020, with t = 2.
    """
    return _log_mean_kernel(x, x)


def uniformity_across(x: Floats, y: Floats) -> float:
    """Log of the mean over i ≠ j of exp(−2 ‖x_i − y_j‖₂²), the pairs themselves left out.

    Args:
        x, y: float64 ``[N, dim]``, unit norm, row by row one item.

    Returns:
        The logarithm; NaN with fewer than two items.
    """
    return _log_mean_kernel(x, y)


def _log_mean_kernel(x: Floats, y: Floats) -> float:
    n = len(x)
    if n < 2:
        return float("nan")
    kernel = _kernel(x, y)
    return float(np.log((kernel.sum() - np.trace(kernel)) / (n * (n - 1))))


def _kernel(x: Floats, y: Floats) -> Floats:
    squares = np.sum(x * x, axis=1)[:, None] + np.sum(y * y, axis=1)[None, :] - 2.0 * (x @ y.T)
    kernel: Floats = np.exp(-2.0 * np.maximum(squares, 0.0))
    return kernel


def mean_cosine(x: Floats, y: Floats) -> float:
    """Mean of x_i · y_j over i ≠ j, the pairs themselves left out: how narrow the cone of vectors is.

    Args:
        x, y: float64 ``[N, dim]``, unit norm, row by row one item; the same array twice for one modality.

    Returns:
        The mean, −1 to 1, near 0 where items are spread evenly; NaN with fewer than two items.

    Reference:
        Liang et al., "Mind the gap", NeurIPS 2022 (the cone effect).
    """
    n = len(x)
    if n < 2:
        return float("nan")
    return float(x.sum(axis=0) @ y.sum(axis=0) - np.sum(x * y)) / (n * (n - 1))


def _centroid(x: Floats, y: Floats) -> Value:
    drawn = np.linalg.norm(drawn_mean(draws(len(x)), x - y), axis=1) if len(x) else np.empty(0)
    return centroid_distance(x, y), *interval(drawn)


def _relative_gap(x: Floats, y: Floats) -> Value:
    value = relative_modality_gap(x, y)
    if not np.isfinite(value):
        return _NONE
    weights = draws(len(x))
    pair = (1.0 - drawn_mean(weights, np.sum(x * y, axis=1))) / 2.0
    within = (1.0 - (drawn_cosine(weights, x, x) + drawn_cosine(weights, y, y)) / 2.0) / 2.0
    return value, *interval(pair / (pair + within))


def _alignment(x: Floats, y: Floats) -> Value:
    drawn = drawn_mean(draws(len(x)), np.sum((x - y) ** 2, axis=1)) if len(x) else np.empty(0)
    return alignment(x, y), *interval(drawn)


def _separability(x: Floats, y: Floats) -> Value:
    right = held_out(x, y)
    if not len(right):
        return _NONE
    return float(right.mean()), *interval(drawn_mean(draws(len(right)), right))


def _uniformity(x: Floats, y: Floats) -> Value:
    value = _log_mean_kernel(x, y)
    drawn = np.log(drawn_kernel(draws(len(x)), _kernel(x, y))) if len(x) > 1 else np.empty(0)
    return value, *interval(drawn)


def _cosine(x: Floats, y: Floats) -> Value:
    drawn = drawn_cosine(draws(len(x)), x, y) if len(x) > 1 else np.empty(0)
    return mean_cosine(x, y), *interval(drawn)


def _hubness(queries: Floats, hubs: Floats) -> Value:
    found = occurrences(queries, hubs)
    value = skewness(found)
    return (
        (value, *interval(drawn_skewness(draws(len(hubs)), found.astype(np.float64))))
        if np.isfinite(value)
        else _NONE
    )


_PAIRED = {
    "centroid_distance": _centroid,
    "rmg": _relative_gap,
    "alignment": _alignment,
    "separability": _separability,
}
