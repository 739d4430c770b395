"""Differences between methods over the seeds that both have, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.study.configuration import Configuration
from uwml_core.analysis.compare.seeds import SeedInterval, t_interval

MEASURES = {
    "R@1": ("there_r1", "back_r1"),
    "R@5": ("there_r5", "back_r5"),
    "R@10": ("there_r10", "back_r10"),
}
# by how many points the two directions differ at R@1
LEAN = "R@1 apart"


@dataclass(frozen=True)
class Results:
    """The table of all results.

    Attributes:
        table: as ``Store.merge`` gives it.
    """

    table: pd.DataFrame

    def rows(self, configuration: Configuration) -> pd.DataFrame:
        """Runs of a configuration, by seed."""
        if not len(self.table):
            return self.table
        found = self.table[self.table["key"] == configuration.key]
        return found.drop_duplicates("seed").set_index("seed").sort_index()

    def measure(self, configuration: Configuration, measure: str, split: str = "test") -> pd.Series:
        """A measure of each seed: a column, or a recall in percent as the mean over both directions.

        Empty where nothing was trained.
        """
        rows = self.rows(configuration)
        if not len(rows):
            return pd.Series(dtype=np.float64)
        if measure == LEAN:
            return (rows[f"{split}_there_r1"] - rows[f"{split}_back_r1"]).abs()
        if measure in MEASURES:
            return rows[[f"{split}_{name}" for name in MEASURES[measure]]].mean(axis=1)
        return rows[measure]

    def mean(self, configuration: Configuration, measure: str, split: str = "test") -> SeedInterval:
        """Mean over seeds with its 95 % t interval."""
        return t_interval(self.measure(configuration, measure, split).to_numpy(np.float64))

    def contrast(
        self, terms: Sequence[tuple[float, Configuration]], measure: str, split: str = "test"
    ) -> SeedInterval:
        """Weighted sum over configurations of the seeds that all have, with a 95 % t interval.

        Args:
            terms: factor and configuration; 1 and -1 make a paired difference.
            measure: as for ``measure``.
            split: which recalls.
        """
        values = [factor * self.measure(which, measure, split) for factor, which in terms]
        together = pd.concat(values, axis=1, join="inner").to_numpy(np.float64)
        return t_interval(together.sum(axis=1))

    def difference(
        self, first: Configuration, second: Configuration, measure: str, split: str = "test"
    ) -> SeedInterval:
        """First minus second, see ``contrast``."""
        return self.contrast([(1.0, first), (-1.0, second)], measure, split)

    def best(self, configurations: Sequence[Configuration]) -> Configuration:
        """The configuration whose mean of the validation split's rsum over seeds is highest.

        Raises:
            ValueError: if one of them has no result.
        """
        means = [self.mean(which, "val_rsum").mean for which in configurations]
        if not np.isfinite(means).all():
            lacking = next(c for c, mean in zip(configurations, means, strict=True) if not np.isfinite(mean))
            raise ValueError(f"{lacking.key} has no result; run the tuning first")
        return configurations[int(np.argmax(means))]


def told(interval: SeedInterval, *, signed: bool = False, digits: int = 1) -> str:
    """A mean with half the width of its interval; one that excludes 0 is marked when signed.

    Example:
        >>> told(SeedInterval(1.0, 0.5, 1.5, 10), signed=True)
        '**+1.0 ± 0.5**'
    """
    if not interval.n:
        return "not trained"
    sign = "+" if signed else ""
    text = f"{interval.mean:{sign}.{digits}f}"
    if np.isfinite(interval.low):
        text += f" ± {(interval.high - interval.low) / 2:.{digits}f}"
    return f"**{text}**" if signed and (interval.low > 0 or interval.high < 0) else text
