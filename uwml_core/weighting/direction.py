"""Retrieval direction: the lagging direction gets more weight."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from uwml_core.weighting.exact import RunningSums

if TYPE_CHECKING:
    from uwml_core.weighting.config import UWMLConfig

MODES = ("adaptive", "fixed", "off")


def direction_names(modalities: Any) -> tuple[str, str]:
    """Names of both retrieval directions, from the first letters of the modalities.

    Raises:
        ValueError: if there are not two names, as a tuple or a list, or their first letters are equal.

    Example:
        >>> direction_names(("video", "text"))
        ('v2t', 't2v')
    """
    pair = isinstance(modalities, (tuple, list)) and len(modalities) == 2
    if not pair or not all(isinstance(name, str) and name for name in modalities):
        raise ValueError(f"modalities={modalities!r}: expected two non-empty names such as ('image', 'text')")
    first, second = (name[0].lower() for name in modalities)
    if first == second:
        raise ValueError(
            f"modalities={modalities!r} begin with the same letter, so the directions would be equal; "
            "rename one of them"
        )
    return f"{first}2{second}", f"{second}2{first}"


class DirectionController:
    """State machine that turns mean margins ("gaps") of two directions into two weights with sum 1.

    The gap enters first; the weights returned weigh the same step. After every ``update_every``-th gap
    the target is softmax(-mean gap / sensitivity) over the directions, the means running over the last
    ``window`` gaps; the weights move towards it by 1 - ``smoothing``, are clipped to
    [min_weight, 1 - min_weight] and renormalised. The trainer steps it live, the app replays it on
    logged gaps.

    Args:
        window: gaps per mean, steps, >= 1.
        update_every: steps between updates, >= 1.
        smoothing: share of the old weight kept at an update, in [0, 1).
        sensitivity: gap difference, cosine units, that moves the softmax by a factor e, > 0.
        min_weight: smallest weight of a direction, in [0, 0.5).
        mode: ``adaptive``, ``fixed`` (``fixed`` for the first direction) or ``off`` (0.5 each).
        fixed: weight of the first direction in mode ``fixed``, in [0, 1].

    Example:
        >>> controller = DirectionController(window=2, update_every=1, smoothing=0.0, sensitivity=0.1)
        >>> {name: round(w, 3) for name, w in controller.update({"i2t": 0.2, "t2i": 0.1}).items()}
        {'i2t': 0.269, 't2i': 0.731}
    """

    def __init__(
        self,
        *,
        window: int = 200,
        update_every: int = 10,
        smoothing: float = 0.9,
        sensitivity: float = 0.05,
        min_weight: float = 0.1,
        mode: str = "adaptive",
        fixed: float = 0.5,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode={mode!r} is unknown; choose one of {', '.join(MODES)}")
        self._update_every, self._smoothing = update_every, smoothing
        self._sensitivity, self._min_weight, self._adaptive = sensitivity, min_weight, mode == "adaptive"
        self._gaps: tuple[deque[float], deque[float]] = (deque(maxlen=window), deque(maxlen=window))
        self._names: tuple[str, ...] | None = None
        self._count = 0
        first = fixed if mode == "fixed" else 0.5
        self._weights = (first, 1.0 - first)

    @classmethod
    def from_config(cls, config: UWMLConfig) -> DirectionController:
        """A fresh controller with the parameters of a loss."""
        return cls(
            window=config.window,
            update_every=config.update_every,
            smoothing=config.smoothing,
            sensitivity=config.sensitivity,
            min_weight=config.min_weight,
            mode=config.direction_mode,
            fixed=config.direction_fixed,
        )

    def update(self, gaps: Mapping[str, float]) -> dict[str, float]:
        """Take one step's gaps, return the weights for that step.

        A gap that is not finite skips the step: nothing enters the window, nothing is counted.

        Raises:
            ValueError: if there are not two directions or their names change between calls.
        """
        names = tuple(gaps)
        if len(names) != 2 or names != (self._names or names):
            raise ValueError(f"gaps has directions {names}; expected {self._names or 'two directions'}")
        self._names = names
        if all(math.isfinite(gap) for gap in gaps.values()):
            for window, gap in zip(self._gaps, gaps.values(), strict=True):
                window.append(float(gap))
            self._count += 1
            if self._adaptive and self._count % self._update_every == 0:
                first, second = (np.array([mean]) for mean in self.window_means())
                (weight,), (other,) = self._moved(*self._pulls(first, second))
                self._weights = weight, other
        return dict(zip(names, self._weights, strict=True))

    def update_many(self, gaps: np.ndarray | LoggedGaps) -> np.ndarray:
        """Take the gaps of many steps, return the weights of each: ``update`` bit for bit, only faster.

        The time does not depend on ``window``.

        Args:
            gaps: (first, second) of each step, float64 ``[n, 2]``, cosine units; rows that are not finite are
                skipped.

        Returns:
            Weights of the directions at each step, float64 ``[n, 2]``.
        """
        taken = _looked_through(gaps)
        rows = self.update_rows(taken)
        moves = self._moves(taken, rows)
        for window, column in zip(self._gaps, taken.columns, strict=True):
            window.extend(column[-(window.maxlen or len(column)) :].tolist())
        table = [[before, *after] for before, after in zip(self._weights, moves, strict=True)]
        first, second = table
        self._count, self._weights = self._count + len(taken.columns[0]), (first[-1], second[-1])
        held = np.diff(rows, prepend=0, append=len(taken.usable))
        # a direction's weights lie beside each other
        return np.stack([np.repeat(column, held) for column in table]).T

    def update_rows(self, gaps: np.ndarray | LoggedGaps) -> np.ndarray:
        """Rows of ``gaps`` ``[n, 2]`` after whose entry ``update_many`` updates the weights, ascending."""
        if not self._adaptive:
            return np.empty(0, np.int64)
        taken = _looked_through(gaps)
        return np.flatnonzero(taken.usable & ((self._count + taken.count) % self._update_every == 0))

    def _moves(self, taken: LoggedGaps, rows: np.ndarray) -> tuple[list[float], list[float]]:
        known, sums = len(self._gaps[0]), taken.sums
        if known:
            both = zip(self._gaps, taken.columns, strict=True)
            sums = [RunningSums(np.concatenate([before, column])) for before, column in both]
        ends = known + taken.count[rows]
        starts = np.maximum(0, ends - (self._gaps[0].maxlen or known + len(taken.usable)))
        first, second = (each.over(starts, ends) / (ends - starts) for each in sums)
        return self._moved(*self._pulls(first, second))

    def window_means(self) -> tuple[float, float]:
        """Mean gap of each direction over the window; NaN before the first gap."""
        first, second = (math.fsum(w) / len(w) if w else math.nan for w in self._gaps)
        return first, second

    def _pulls(self, first_means: np.ndarray, second_means: np.ndarray) -> tuple[list[float], list[float]]:
        """What each update adds to the weights that it keeps: (1 - smoothing) target of both directions."""
        # softmax over two, written with the larger exponent shifted to 0
        with np.errstate(over="ignore"):
            below = -np.abs(first_means - second_means) / self._sensitivity
        # math.exp in training and replay: that of NumPy rounds otherwise
        smaller, lags = np.array(list(map(math.exp, below.tolist()))), first_means < second_means
        first, second = np.where(lags, 1.0, smaller), np.where(lags, smaller, 1.0)
        free, total = 1.0 - self._smoothing, first + second
        return (free * first / total).tolist(), (free * second / total).tolist()

    def _moved(self, firsts: list[float], seconds: list[float]) -> tuple[list[float], list[float]]:
        """Weights of both directions after each of these updates."""
        keep, low, high = self._smoothing, self._min_weight, 1.0 - self._min_weight
        first, second = self._weights
        moved: tuple[list[float], list[float]] = ([], [])
        add_first, add_second = (weights.append for weights in moved)
        # a replay passes here up to once a step, so without a call of ours
        for pull_first, pull_second in zip(firsts, seconds, strict=True):
            first, second = keep * first + pull_first, keep * second + pull_second
            first = low if first < low else high if first > high else first
            second = low if second < low else high if second > high else second
            total = first + second
            first, second = first / total, second / total
            add_first(first)
            add_second(second)
        return moved

    def state_dict(self) -> dict[str, Any]:
        """Everything that ``load_state_dict`` needs to continue bit for bit; plain lists and floats."""
        return {
            "gaps": [list(window) for window in self._gaps],
            "count": self._count,
            "weights": list(self._weights),
            "names": list(self._names or ()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a ``state_dict``; gaps beyond this controller's window are dropped."""
        for window, gaps in zip(self._gaps, state["gaps"], strict=True):
            window.clear()
            window.extend(gaps)
        self._count = int(state["count"])
        first, second = state["weights"]
        self._weights = (float(first), float(second))
        self._names = tuple(state["names"]) or None


def finite_rows(gaps: np.ndarray) -> np.ndarray:
    """Steps whose gaps the controller takes: both finite, bool ``[n]``."""
    usable: np.ndarray = np.isfinite(gaps[:, 0]) & np.isfinite(gaps[:, 1])
    return usable


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedGaps:
    """The gaps of many steps, looked through once for any number of replays.

    Attributes:
        usable: steps whose gaps the controller takes, bool ``[n]``.
        count: how many of them there are up to each step, ``[n]``.
        columns: their gaps, by direction.
        sums: running sums of these.
    """

    usable: np.ndarray
    count: np.ndarray
    columns: list[np.ndarray]
    sums: list[RunningSums]

    @classmethod
    def of(cls, gaps: np.ndarray) -> LoggedGaps:
        """Look through gaps.

        Args:
            gaps: (first, second) of each step, float64 ``[n, 2]``, cosine units.
        """
        usable = finite_rows(gaps)
        columns = [np.ascontiguousarray(column[usable]) for column in gaps.T]
        sums = [RunningSums(column) for column in columns]
        return cls(usable=usable, count=np.cumsum(usable), columns=columns, sums=sums)


def _looked_through(gaps: np.ndarray | LoggedGaps) -> LoggedGaps:
    return gaps if isinstance(gaps, LoggedGaps) else LoggedGaps.of(gaps)


def replay_controller(gaps: np.ndarray | LoggedGaps, config: UWMLConfig) -> np.ndarray:
    """Weights that a controller with other parameters would have given on logged gaps (open loop).

    Args:
        gaps: (first, second) of each step, float64 ``[n, 2]``, cosine units; ``LoggedGaps`` of them where
            several controllers are tried.
        config: parameters to replay with.

    Returns:
        Weights of the directions at each step, float64 ``[n, 2]``.
    """
    return DirectionController.from_config(config).update_many(gaps)
