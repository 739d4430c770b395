"""Paired bootstrap over queries, whose unit is the item: its captions and its picture are not independent.

Shapes: R resamples, I items, Q queries of a direction, M methods, K metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uwml_core.analysis.compare.outcomes import RECALL_AT, Outcome, Ranks, metric_names

DRAWS = 2000
# Below this a resampled interval says more about the resampling than about the runs.
FEWEST_ITEMS = 20
_CHUNK = 2_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Resampled:
    """Metrics of methods, and of the same resamples of the queries for all of them.

    Attributes:
        names: (direction, metric) of each metric, as ``metric_names`` gives them.
        value: [M, K], as counted; R@K in percent, the mean over a method's runs.
        draws: [R, M, K], the same of each resample; R is 0 with fewer than ``FEWEST_ITEMS`` items.
        items: items that the resamples draw from.
    """

    names: list[tuple[str, str]]
    value: np.ndarray
    draws: np.ndarray
    items: int

    def interval(self, method: int, baseline: int | None = None) -> np.ndarray:
        """95 % percentile interval of a method's metrics, or of their difference to a baseline.

        Returns:
            [2, K]: lower and upper bounds, NaN where there are no resamples.
        """
        if not len(self.draws):
            return np.full((2, len(self.names)), np.nan)
        sample = self.draws[:, method]
        if baseline is not None:
            sample = sample - self.draws[:, baseline]
        return np.asarray(np.quantile(sample, [0.025, 0.975], axis=0))


def resample(
    methods: Sequence[Sequence[Outcome]], directions: Sequence[str], *, draws: int = DRAWS, seed: int = 0
) -> Resampled:
    """Metrics of methods with paired resamples.

    Items are drawn with replacement, as many as there are; all queries of a drawn item, of both directions,
    come with it, and every method is given the same draw.

    Args:
        methods: outcomes of each method's runs; all of them answered the same queries.
        directions: names of the directions.
        draws: resamples.
        seed: of the resampling; the same outcomes always give the same intervals.

    Reference:
        P. Koehn, Statistical significance tests for machine translation evaluation, 2004; A. C. Davison and
        D. V. Hinkley, Bootstrap methods and their application, 1997, section 3.8 (resampling of clusters).
    """
    first = methods[0][0].ranks
    directions = [direction for direction in directions if direction in first]
    items = np.unique(np.concatenate([first[direction].item for direction in directions]))
    places = {d: np.searchsorted(items, first[d].item) for d in directions}
    columns = [
        _Columns([run.ranks[d] for run in runs], places[d], len(items))
        for runs in methods
        for d in directions
    ]
    alone = np.ones((1, len(items)), dtype=np.float32)
    shape = (len(methods), len(directions))
    value = _metrics(columns, alone, shape)[0]
    sampled = []
    if len(items) >= FEWEST_ITEMS:
        sampled = [_metrics(columns, counts, shape) for counts in _counts(len(items), draws, seed)]
    empty = np.empty((0, *value.shape))
    return Resampled(
        names=metric_names(directions),
        value=value,
        draws=np.concatenate(sampled) if sampled else empty,
        items=len(items),
    )


def _counts(items: int, draws: int, seed: int) -> Iterator[np.ndarray]:
    """How often each item is drawn, float32 [some R, I], a bounded number of resamples at a time."""
    random = np.random.default_rng(seed)
    at_once = max(1, _CHUNK // items)
    for start in range(0, draws, at_once):
        n = min(at_once, draws - start)
        drawn = random.integers(0, items, size=(n, items), dtype=np.int64)
        drawn += items * np.arange(n)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=n * items)
        yield counts.reshape(n, items).astype(np.float32)


def _metrics(columns: Sequence[_Columns], counts: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """[R, M, K] from columns of each method and direction."""
    own = np.stack([column.metrics(counts) for column in columns], axis=1)
    own = own.reshape(len(counts), *shape, len(RECALL_AT) + 1)
    rsum = own[..., : len(RECALL_AT)].sum(axis=(2, 3))
    return np.concatenate([own.reshape(len(counts), shape[0], -1), rsum[..., None]], axis=2)


class _Columns:
    """What is summed over the drawn items for one method and direction."""

    def __init__(self, runs: Sequence[Ranks], place: np.ndarray, items: int) -> None:
        hits = np.stack([np.mean([run.rank <= k for run in runs], axis=0) for k in RECALL_AT], axis=1)
        summed = [np.bincount(place, weights=column, minlength=items) for column in hits.T]
        self._sums = np.stack([*summed, np.bincount(place, minlength=items)], axis=1)
        self._medians = [_Median(run.rank, place, items) for run in runs]

    def metrics(self, counts: np.ndarray) -> np.ndarray:
        """R@K and median rank of each resample, [R, 4]."""
        sums = counts @ self._sums
        medians = np.mean([median.of(counts) for median in self._medians], axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.column_stack([100.0 * sums[:, :-1] / sums[:, -1:], medians])


class _Median:
    """Median rank of resamples, looked for where it can lie instead of among all queries."""

    def __init__(self, rank: np.ndarray, place: np.ndarray, items: int) -> None:
        order = np.argsort(np.where(np.isnan(rank), np.inf, rank), kind="stable")
        self._rank, self._place, self._items = rank[order], place[order], items
        # six standard errors, were all queries of an item one
        reach = 6 * 0.5 / np.sqrt(items)
        n = len(rank)
        self._window = (max(0, int(n * (0.5 - reach))), min(n, int(n * (0.5 + reach)) + 1))

    def of(self, counts: np.ndarray) -> np.ndarray:
        """[R], as ``np.median`` of the drawn queries' ranks; those without a rank count as last."""
        median, found = self._within(counts, *self._window)
        return median if found else self._within(counts, 0, len(self._rank))[0]

    def _within(self, counts: np.ndarray, start: int, end: int) -> tuple[np.ndarray, bool]:
        before, all_of_it = (
            counts @ np.bincount(self._place[:n], minlength=self._items).astype(np.float32)
            for n in (start, len(self._rank))
        )
        cumulated = before[:, None] + np.cumsum(counts[:, self._place[start:end]], axis=1)
        half = 0.5 * all_of_it[:, None]
        # the two middle ones, or the middle one twice
        lower, upper = (cumulated < half).sum(axis=1), (cumulated <= half).sum(axis=1)
        found = (start == 0 or np.all(before <= half[:, 0])) and np.all(upper < end - start)
        last = end - start - 1
        pair = [self._rank[start + np.minimum(place, last)] for place in (lower, upper)]
        return 0.5 * (pair[0] + pair[1]), bool(found)
