"""Which steps a preview looks at: all of an epoch, a fixed random sample, or the rollups of all.

Weights are relative to the others of a step, so only whole steps of ``pairs`` give them exactly. What is
read and weighed anew has to be done within 150 ms at every move of a slider, however large the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from uwml_core.i18n import _, ngettext

# Weighing them anew takes some 25 ms; the mean over the steps is then known ten times better than its
# spread from step to step.
MOST_PREVIEWED = 131_072
# Of a history, such as every encounter of an item; gathering them takes some 250 ms.
MOST_GATHERED = 524_288
# A sample spread over more rows than these would have all their row groups decoded, which takes longer than
# an interaction may.
MOST_READ = 2_000_000
SIZE_COLUMNS = ("step", "epoch", "batch_size")
PREVIEW_COLUMNS = ("step", "direction", "margin", "pair_loss", "weight", "gradient_share")


@dataclass(frozen=True, kw_only=True)
class StepSelection:
    """Whole steps, so that everything that is computed per step stays exact.

    Attributes:
        steps: chosen steps, ascending int64.
        total_steps: steps there were to choose from.
        rows: rows of ``pairs`` expected in the chosen steps, both directions.
        sampled: whether steps were left out.
        pooled: whether there are too many to read; the rollups then stand for all of them.
        epoch: of which they are; None for all.
    """

    steps: np.ndarray = field(repr=False)
    total_steps: int
    rows: int
    sampled: bool
    pooled: bool = False
    epoch: int | None = None

    @property
    def note(self) -> str:
        """How many steps are looked at, and whether they are a sample or pooled."""
        if self.pooled:
            text = _(
                "Approximate, from histograms of all {total} steps pooled by epoch: weights are relative to "
                "an epoch's instead of a step's; one epoch is looked at step by step"
            )
        elif self.sampled:
            text = _("A random sample of {chosen} of {total} steps, the same at every visit")
        else:
            text = ngettext("All of {total} step", "All {total} steps", self.total_steps)
        return text.format(chosen=f"{len(self.steps):,}", total=f"{self.total_steps:,}")

    @property
    def span(self) -> tuple[int, int]:
        """First and last chosen step; (0, -1) where there is none."""
        return (int(self.steps[0]), int(self.steps[-1])) if len(self.steps) else (0, -1)

    @property
    def filter(self) -> pc.Expression:
        """Filter on ``step`` that a reader can push down to row groups."""
        step = pc.field("step")
        if not len(self.steps):
            return step < 0
        inside = (step >= int(self.steps[0])) & (step <= int(self.steps[-1]))
        contiguous = self.steps[-1] - self.steps[0] + 1 == len(self.steps)
        return inside if contiguous else inside & step.isin(self.steps.tolist())


def select_steps(
    steps: pd.DataFrame,
    epoch: int | None,
    *,
    max_rows: int = MOST_PREVIEWED,
    most_read: int = MOST_READ,
    seed: int = 0,
) -> StepSelection:
    """Choose the steps of an epoch, or of the run, for a preview.

    Args:
        steps: frame of the table ``steps`` with step, epoch and batch_size.
        epoch: which epoch; None takes all steps.
        max_rows: most rows of ``pairs`` to look at, two per pair of a batch.
        most_read: most rows to draw a sample from; where there are more, nothing is chosen and ``pooled``.
        seed: of the sample; the same steps and seed give the same sample.

    Returns:
        The selection; never fewer than one step where there are any.
    """
    rows = steps if epoch is None else steps[steps["epoch"] == epoch]
    number = rows["step"].to_numpy(dtype=np.int64)
    size = 2 * rows["batch_size"].fillna(0).to_numpy(dtype=np.int64)
    if size.sum() <= max_rows:
        return StepSelection(
            steps=np.sort(number), total_steps=len(number), rows=int(size.sum()), sampled=False
        )
    if size.sum() > most_read:
        return StepSelection(
            steps=np.empty(0, np.int64),
            total_steps=len(number),
            rows=0,
            sampled=False,
            pooled=True,
            epoch=epoch,
        )
    order = np.random.default_rng(seed).permutation(len(number))
    fitting = max(1, int(np.searchsorted(np.cumsum(size[order]), max_rows, side="right")))
    chosen = np.sort(order[:fitting])
    return StepSelection(
        steps=np.sort(number[chosen]), total_steps=len(number), rows=int(size[chosen].sum()), sampled=True
    )
