"""Half precision: what the encoders compute in, and gradients scaled so that they do not vanish.

Reference: Micikevicius et al., "Mixed precision training", 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

_HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
PRECISIONS = ("float32", *_HALF)
_PROCESSOR = torch.device("cpu")
# Below it a gradient that overflows is not half precision's fault.
_LEAST_SCALE = 1.0


class Precision:
    """Runs backward passes and updates, with scaled gradients where the numbers ask for it.

    Weights, their gradients and updates, the loss and all that is logged stay in float32.

    Args:
        name: one of ``PRECISIONS``.
        device: where the encoders compute.

    Attributes:
        computes_in: what the encoders compute in, None for float32.

    Raises:
        ValueError: for fp16 on a processor, which does not calculate in it.
    """

    def __init__(self, name: str = "float32", device: torch.device = _PROCESSOR) -> None:
        if name == "fp16" and device.type != "cuda":
            raise ValueError(
                f"train.precision='fp16' needs a GPU, but train.device is {device.type}; choose bf16, or "
                "train.device=cuda"
            )
        self.computes_in = _HALF.get(name)
        self._scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")

    def backward(self, loss: torch.Tensor) -> None:
        """Leave the gradients of a loss in its leaves, scaled."""
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def update(
        self, optimizer: torch.optim.Optimizer, parameters: Sequence[nn.Parameter], most: float
    ) -> tuple[torch.Tensor, bool]:
        """Clip the gradients and take one step, unless a gradient is not finite.

        Args:
            optimizer: of the parameters.
            parameters: whose gradients count.
            most: largest norm.

        Returns:
            Norm of the gradients before clipping, and whether training may go on: after an overflow of
            scaled gradients, which leaves the weights as they are, the next step scales them by less.
        """
        self._scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(parameters, most)
        sound = bool(norm.isfinite())
        if not sound and self._scaler.get_scale() <= _LEAST_SCALE:
            return norm, False
        self._scaler.step(optimizer)
        self._scaler.update()
        return norm, True

    def state_dict(self) -> dict[str, Any]:
        """Plain values to go on from; none where nothing is scaled."""
        return dict(self._scaler.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a ``state_dict``."""
        if state:
            self._scaler.load_state_dict(state)
