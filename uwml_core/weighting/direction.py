"""Retrieval direction: the lagging direction gets more weight."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

MODES = ("adaptive", "fixed", "off")


def direction_names(modalities: tuple[str, str]) -> tuple[str, str]:
    """Names of both retrieval directions, from the first letters of the modalities.

    Raises:
        ValueError: if there are not two modalities or their first letters are equal.

    Example:
        >>> direction_names(("video", "text"))
        ('v2t', 't2v')
    """
    if len(modalities) != 2 or not all(modalities):
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
                self._move()
        return dict(zip(names, self._weights, strict=True))

    def window_means(self) -> tuple[float, float]:
        """Mean gap of each direction over the window; NaN before the first gap."""
        first, second = (math.fsum(w) / len(w) if w else math.nan for w in self._gaps)
        return first, second

    def _move(self) -> None:
        mean = self.window_means()
        # softmax over two, written with the larger exponent shifted to 0
        low = min(mean)
        raw = [math.exp((low - gap) / self._sensitivity) for gap in mean]
        keep, low_clip = self._smoothing, self._min_weight
        moved = [keep * w + (1.0 - keep) * r / sum(raw) for w, r in zip(self._weights, raw, strict=True)]
        clipped = [min(max(w, low_clip), 1.0 - low_clip) for w in moved]
        self._weights = (clipped[0] / sum(clipped), clipped[1] / sum(clipped))

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


def replay_controller(
    gaps: Iterable[tuple[float, float]], directions: tuple[str, str], **parameters: Any
) -> list[tuple[float, float]]:
    """Weights that a controller with other parameters would have given on logged gaps (open loop).

    Args:
        gaps: one (first, second) pair per step, cosine units.
        directions: names of the two directions.
        **parameters: keyword arguments of ``DirectionController``.

    Returns:
        One (first, second) weight pair per step.
    """
    controller = DirectionController(**parameters)
    first, second = directions
    rows = (controller.update({first: a, second: b}) for a, b in gaps)
    return [(row[first], row[second]) for row in rows]
