"""What a loss carries from one optimizer step to the next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from uwml_core.losses.memory import MemoryQueue
from uwml_core.weighting import DirectionController, UWMLConfig

_NO_GAP = (math.nan, math.nan)
_NEEDED = ("step", "next_label", "controller")


class LossState:
    """Step, label counter, direction controller and memory queue, and which call of a step comes next.

    Args:
        config: of the loss; with ``accumulate_batches`` = k, k calls are one step. The first of them feeds
            the controller, so that all are weighed by the same direction weights, those of this step's
            gap; everything else advances after the last.

    Attributes:
        step: optimizer steps done.
        next_label: number that the next unlabelled pair gets.
        controller: of the direction weights.
        memory: queue of earlier batches.
    """

    def __init__(self, config: UWMLConfig) -> None:
        self.step, self.next_label = 0, 0
        self.controller = DirectionController.from_config(config)
        self.memory = MemoryQueue(config.memory_batches, config.memory_modalities)
        self._directions = config.directions
        self._call, self._calls = 0, config.accumulate_batches

    def weights(self) -> tuple[float, float]:
        """Direction weights in force."""
        # the controller skips a gap that is not a number
        return self._fed(_NO_GAP)

    def call(self, gap: torch.Tensor, *, whole_step: bool) -> tuple[float, float]:
        """Count a call in training mode.

        Args:
            gap: of the directions, float64 ``[2]``.
            whole_step: the call is a step of its own, whatever ``accumulate_batches`` says.

        Returns:
            The direction weights that the call is weighed by.
        """
        opens = whole_step or self._call == 0
        self._call = 0 if whole_step else (self._call + 1) % self._calls
        return self._fed(gap.tolist()) if opens else self.weights()

    @property
    def step_complete(self) -> bool:
        """Whether the latest call was the last of its step."""
        return self._call == 0

    def counters(self) -> dict[str, int]:
        """What numbers the next call, by name."""
        return {"step": self.step, "call of the step": self._call, "label counter": self.next_label}

    def _fed(self, gaps: Any) -> tuple[float, float]:
        weights = self.controller.update(dict(zip(self._directions, gaps, strict=True)))
        first, second = (weights[direction] for direction in self._directions)
        return first, second

    def state_dict(self) -> dict[str, Any]:
        """What ``load_state_dict`` takes back: tensors and plain values."""
        return {
            "step": self.step,
            "call": self._call,
            "next_label": self.next_label,
            "controller": self.controller.state_dict(),
            "memory": self.memory.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a ``state_dict``, bit for bit.

        Raises:
            ValueError: if it is none, or its memory lacks what this loss takes; nothing is loaded then.
        """
        missing = (
            [key for key in _NEEDED if key not in state] if isinstance(state, Mapping) else list(_NEEDED)
        )
        if missing:
            raise ValueError(
                f"state of the loss is a {type(state).__name__} without {', '.join(missing)}; expected what "
                "get_extra_state gave"
            )
        self.memory.load_state_dict(state.get("memory", ()))
        self.step, self.next_label = int(state["step"]), int(state["next_label"])
        self._call = int(state.get("call", 0)) % self._calls
        self.controller.load_state_dict(state["controller"])
