"""Which steps a preview looks at: all of an epoch, or a fixed random sample where there are too many."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from uwml_core.i18n import _, ngettext

PREVIEW_COLUMNS = ("step", "direction", "margin", "pair_loss", "weight", "gradient_share")


@dataclass(frozen=True, kw_only=True)
class StepSelection:
    """Whole steps, so that everything that is computed per step stays exact.

    Attributes:
        steps: chosen steps, ascending int64.
        total_steps: steps there were to choose from.
        rows: rows of ``pairs`` expected in the chosen steps, both directions.
        sampled: whether steps were left out.
    """

    steps: np.ndarray = field(repr=False)
    total_steps: int
    rows: int
    sampled: bool

    @property
    def note(self) -> str:
        """How many steps are looked at, and whether they are a sample."""
        if self.sampled:
            text = _("a random sample of {chosen} of {total} steps, the same at every visit")
        else:
            text = ngettext("all of {total} step", "all {total} steps", self.total_steps)
        return text.format(chosen=f"{len(self.steps):,}", total=f"{self.total_steps:,}")

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
    steps: pd.DataFrame, epoch: int | None, *, max_rows: int = 500_000, seed: int = 0
) -> StepSelection:
    """Choose the steps of an epoch, or of the run, for a preview.

    Args:
        steps: frame of the table ``steps`` with step, epoch and batch_size.
        epoch: which epoch; None takes all steps.
        max_rows: most rows of ``pairs`` to read, two per pair of a batch.
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
    order = np.random.default_rng(seed).permutation(len(number))
    fitting = max(1, int(np.searchsorted(np.cumsum(size[order]), max_rows, side="right")))
    chosen = np.sort(order[:fitting])
    return StepSelection(
        steps=np.sort(number[chosen]), total_steps=len(number), rows=int(size[chosen].sum()), sampled=True
    )
