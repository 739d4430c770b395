"""Which direction lags, by how much, and since when."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from uwml_core.analysis.controller_log import ControllerLog
from uwml_core.analysis.intervals import FEWEST_STEPS, Interval, block_interval
from uwml_core.runlog.cache import BoundedCache

# Of epochs that are over, which a run that goes on asks for again and again.
_intervals = BoundedCache[Interval](limit=10_000)


@dataclass(frozen=True, kw_only=True)
class Lag:
    """The gap of one direction against that of the other.

    Attributes:
        lagging: position of the direction with the smaller gap, None where neither lags beyond the noise.
        behind: gap of the other direction minus gap of the lagging one, cosine units; of the second minus
            the first where neither lags. Without bounds where there are too few steps.
        first_step: step from which ``behind`` is taken, None without any gap.
        first_epoch: its epoch, None where epochs were not logged.
        from_start: whether that is the first step with a gap.
    """

    lagging: int | None
    behind: Interval
    first_step: int | None
    first_epoch: int | None
    from_start: bool


def find_lag(log: ControllerLog) -> Lag:
    """Find the lagging direction and the epoch since which it lags.

    Epochs are taken from the newest back as long as the 95 % block-bootstrap interval of the mean
    difference lies on the same side of 0; epochs with fewer than ``FEWEST_STEPS`` steps are taken
    together with their neighbours. The interval returned is that over all steps since then; where the
    newest stretch straddles 0, its own.
    """
    rows = np.flatnonzero(log.usable)
    ahead = log.gap[rows, 0] - log.gap[rows, 1]
    starts = stretches(log.epoch[rows])
    newest = block_interval(ahead[starts[-1] :] if starts else ahead)
    side = _side(newest)
    start = starts[-1] if starts else 0
    if side:
        for earlier, later in zip(starts[-2::-1], starts[:0:-1], strict=True):
            if _side(_kept_interval(ahead[earlier:later])) != side:
                break
            start = earlier
    lagging = {1: 1, -1: 0, 0: None}[side]
    behind = block_interval(ahead[start:] if lagging == 1 else -ahead[start:])
    epoch = log.epoch[rows[start]] if len(rows) else np.nan
    return Lag(
        lagging=lagging,
        behind=behind,
        first_step=int(log.step[rows[start]]) if len(rows) else None,
        first_epoch=int(epoch) if np.isfinite(epoch) else None,
        from_start=start == 0,
    )


def may_lag(log: ControllerLog, limit: float) -> bool:
    """Whether ``find_lag`` may find one behind by more than a limit: it needs no resampling to say no."""
    rows = np.flatnonzero(log.usable)
    ahead = log.gap[rows, 0] - log.gap[rows, 1]
    starts = np.array(stretches(log.epoch[rows]), dtype=np.int64)
    since = np.cumsum(ahead[::-1])[::-1][starts] / (len(ahead) - starts)
    return bool((np.abs(since) > limit).any())


def _kept_interval(values: np.ndarray) -> Interval:
    key = hashlib.blake2b(values.tobytes(), digest_size=16).digest()
    return _intervals.get_or_make(key, lambda: block_interval(values))


def _side(interval: Interval) -> int:
    # NaN bounds compare False: too few steps are on neither side.
    return int(interval.low > 0) - int(interval.high < 0)


def stretches(epoch: np.ndarray) -> list[int]:
    """First rows of epochs, or of neighbouring epochs together where one is too short for an interval.

    Args:
        epoch: epoch of each row ``[n]``, NaN where not logged.

    Returns:
        Ascending rows that begin with 0; from each to the next there are at least ``FEWEST_STEPS`` rows.
        Empty where there are fewer rows than that.

    Example:
        >>> stretches(np.repeat([0.0, 1.0, 2.0], [30, 25, 5]))
        [0, 30]
    """
    known = np.where(np.isnan(epoch), -1.0, epoch)
    begins = np.flatnonzero(np.diff(known, prepend=np.nan) != 0)
    starts: list[int] = []
    end = len(epoch)
    for begin in begins[::-1].tolist():
        if end - begin >= FEWEST_STEPS:
            starts.append(begin)
            end = begin
    if starts:
        # What is left over before the first stretch joins it.
        starts[-1] = 0
    return starts[::-1]
