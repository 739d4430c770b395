"""Headline numbers and the headline sentence of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from uwml_core.analysis.intervals import FEWEST_STEPS, Interval, difference_interval
from uwml_core.analysis.splits import main_split
from uwml_core.analysis.text import fixed, listed, percent, sentences
from uwml_core.analysis.training import retrieval_curves
from uwml_core.i18n import _, ngettext

RECENT_STEPS = 100


@dataclass(frozen=True, kw_only=True)
class TrainingSummary:
    """Where a run stands.

    Attributes:
        last_step, last_epoch: of the newest row of ``steps``; None where there is none or no epoch.
        last_loss: loss of the newest row as logged, NaN without rows.
        loss_mean, loss_sd, loss_n: over the finite losses of the last ``RECENT_STEPS`` steps; the spread
            is the sample standard deviation, NaN below two values.
        pairs_per_s, pairs_per_s_n: pairs over time of the last ``RECENT_STEPS`` steps with a step time.
        nonfinite_loss: steps whose loss is NaN or infinite.
        last_nonfinite_step: the newest of them, None without any.
        best: best R@K of each direction, ``[direction, metric, value, n, epoch, step]``; of equal ones
            the first.
    """

    last_step: int | None
    last_epoch: int | None
    last_loss: float
    loss_mean: float
    loss_sd: float
    loss_n: int
    pairs_per_s: float
    pairs_per_s_n: int
    nonfinite_loss: int
    last_nonfinite_step: int | None
    best: pd.DataFrame

    def best_value(self, direction: str, metric: str) -> float:
        """Best value of a metric in percent, NaN where it was not evaluated."""
        return self._best.get((direction, metric), (float("nan"), 0))[0]

    def best_n(self, direction: str, metric: str) -> int:
        """Queries behind the best value, 0 where it was not evaluated."""
        return self._best.get((direction, metric), (float("nan"), 0))[1]

    @cached_property
    def _best(self) -> dict[tuple[str, str], tuple[float, int]]:
        columns = (self.best[name].tolist() for name in ("direction", "metric", "value", "n"))
        return {
            (direction, metric): (float(value), 0 if pd.isna(n) else int(n))
            for direction, metric, value, n in zip(*columns, strict=True)
        }


def training_summary(
    steps: pd.DataFrame,
    evals: pd.DataFrame,
    directions: tuple[str, str],
    split: str | None = None,
    *,
    best: pd.DataFrame | None = None,
) -> TrainingSummary:
    """Headline numbers of a run; every one is defined for empty frames.

    Args:
        steps: frame of the table ``steps`` with step, epoch, loss, batch_size and step_time_ms.
        evals: frame of the table ``evals``.
        directions: the run's directions; others are ignored.
        split: evaluated split; None takes the ``main_split``.
        best: what ``best_retrieval`` gives for these, where it is known already.
    """
    loss = steps["loss"].to_numpy(dtype=np.float64, na_value=np.nan)
    broken = steps["step"].to_numpy()[~np.isfinite(loss)]
    recent = loss[-RECENT_STEPS:][np.isfinite(loss[-RECENT_STEPS:])]
    speed, speed_n = _throughput(steps.tail(RECENT_STEPS))
    epoch = steps["epoch"].iloc[-1] if len(steps) else None
    return TrainingSummary(
        last_step=int(steps["step"].iloc[-1]) if len(steps) else None,
        last_epoch=None if epoch is None or pd.isna(epoch) else int(epoch),
        last_loss=float(loss[-1]) if len(loss) else float("nan"),
        loss_mean=float(recent.mean()) if len(recent) else float("nan"),
        loss_sd=float(recent.std(ddof=1)) if len(recent) > 1 else float("nan"),
        loss_n=len(recent),
        pairs_per_s=speed,
        pairs_per_s_n=speed_n,
        nonfinite_loss=len(broken),
        last_nonfinite_step=int(broken[-1]) if len(broken) else None,
        best=best_retrieval(evals, directions, split) if best is None else best,
    )


def best_retrieval(
    evals: pd.DataFrame, directions: tuple[str, str], split: str | None = None
) -> pd.DataFrame:
    """Best R@K of each direction, ``[direction, metric, value, n, epoch, step]``; of equal ones the first."""
    curves = retrieval_curves(evals, split).dropna(subset=["value"])
    curves = curves[curves["direction"].isin(directions)]
    best = curves.sort_values(["value", "step"], ascending=[False, True], kind="stable")
    best = best.drop_duplicates(["direction", "metric"]).sort_index()
    return best[["direction", "metric", "value", "n", "epoch", "step"]].reset_index(drop=True)


def _throughput(recent: pd.DataFrame) -> tuple[float, int]:
    pairs = recent["batch_size"].to_numpy(dtype=np.float64, na_value=np.nan)
    time_ms = recent["step_time_ms"].to_numpy(dtype=np.float64, na_value=np.nan)
    timed = np.isfinite(pairs) & (time_ms > 0)
    if not timed.any():
        return float("nan"), 0
    return float(1000.0 * pairs[timed].sum() / time_ms[timed].sum()), int(timed.sum())


def training_headline(
    steps: pd.DataFrame,
    evals: pd.DataFrame,
    directions: tuple[str, str],
    split: str | None = None,
    *,
    summary: TrainingSummary | None = None,
) -> str:
    """One or two sentences that answer "is it learning?" from the logged numbers.

    A loss that is not finite comes first, then how the loss moved between the first and the last tenth
    of the steps with its 95 % block-bootstrap interval, then the best R@1.

    Args:
        steps, evals, directions, split: as for ``training_summary``.
        summary: what that gives for these, where it is known already.
    """
    if not len(steps):
        return _("Too little data yet: no step has been logged.")
    split = split or main_split(evals)
    summary = summary or training_summary(steps, evals, directions, split)
    loss = steps["loss"].to_numpy(dtype=np.float64, na_value=np.nan)
    parts = [_broken(summary, len(loss)) if summary.nonfinite_loss else "", _trend(loss)]
    return sentences([*parts, _retrieval(summary, directions, split)])


def _broken(summary: TrainingSummary, total: int) -> str:
    if not np.isfinite(summary.last_loss):
        text = ngettext(
            "The loss is not finite at the newest step ({count} of {total} step).",
            "The loss is not finite at the newest step ({count} of {total} steps).",
            total,
        )
    else:
        text = _("The loss was not finite at {count} of {total} steps, last at step {step}.")
    return text.format(
        count=f"{summary.nonfinite_loss:,}", total=f"{total:,}", step=f"{summary.last_nonfinite_step:,}"
    )


def _trend(loss: np.ndarray) -> str:
    window = max(FEWEST_STEPS, len(loss) // 10)
    if len(loss) < 2 * window:
        return ngettext(
            "Too little data yet: {count} step logged, {needed} needed for a trend.",
            "Too little data yet: {count} steps logged, {needed} needed for a trend.",
            len(loss),
        ).format(count=len(loss), needed=2 * window)
    first, last = loss[:window], loss[-window:]
    change = difference_interval(first, last)
    if not np.isfinite(change.half_width):
        return ""
    return _verdict(change).format(
        change=fixed(abs(change.mean), 3),
        spread=fixed(change.half_width, 3),
        first=fixed(float(first[np.isfinite(first)].mean()), 3),
        last=fixed(float(last[np.isfinite(last)].mean()), 3),
        n=f"{window:,}",
    )


def _verdict(change: Interval) -> str:
    if change.high < 0:
        return _("The loss fell by {change} ± {spread}, from {first} to {last} (first and last {n} steps).")
    if change.low > 0:
        return _("The loss rose by {change} ± {spread}, from {first} to {last} (first and last {n} steps).")
    return _(
        "The loss has not moved beyond its noise: {first} to {last}, ± {spread} (first and last {n} steps)."
    )


def _retrieval(summary: TrainingSummary, directions: tuple[str, str], split: str) -> str:
    known = [d for d in directions if np.isfinite(summary.best_value(d, "R@1"))]
    if not known:
        return _("No evaluation on {split} yet.").format(split=split)
    parts = [
        _("{value} {direction} (n = {n})").format(
            value=percent(summary.best_value(d, "R@1") / 100.0, 1),
            direction=d,
            n=f"{summary.best_n(d, 'R@1'):,}",
        )
        for d in known
    ]
    return _("Best {split} R@1: {parts}.").format(split=split, parts=listed(parts))
