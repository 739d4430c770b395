"""Scale and bias that turn similarities into logits: configured, learned, or given with a call."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import nn

from uwml_core.weighting import UWMLConfig

Number = torch.Tensor | float

# CLIP's cap on the learnable scale; the logarithm is rounded down, so that exp() stays below it in float32.
_LARGEST_SCALE = 100.0
_LARGEST_LOG_SCALE = 4.60517
# Where SigLIP starts: t = 10, b = -10.
_SIGMOID_SCALE = 10.0
_SIGMOID_BIAS = -10.0


class Logits(NamedTuple):
    """``scale * similarity + bias``: floats, or scalar tensors that stay in the graph."""

    scale: Number
    bias: Number


def learnable_logits(config: UWMLConfig) -> tuple[nn.Parameter | None, nn.Parameter | None]:
    """Logarithm of the scale, and bias, as far as a loss learns them.

    Reference:
        Start of the sigmoid loss: X. Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023.
    """
    if config.base == "sigmoid":
        return _parameter(math.log(_SIGMOID_SCALE)), _parameter(_SIGMOID_BIAS)
    if config.learnable_temperature:
        return _parameter(-math.log(config.temperature)), None
    return None, None


def _parameter(value: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor(value))


def scale_of(
    given: Number | None,
    learned: nn.Parameter | None,
    temperature: float,
    like: torch.Tensor,
    *,
    training: bool,
) -> Number:
    """The scale of a step.

    Args:
        given: with the call; it comes first.
        learned: logarithm of the learnable scale, at most ``ln 100``: kept there while training.
        temperature: taken where there is neither.
        like: dtype and device.
        training: whether parameters may change.
    """
    if isinstance(given, torch.Tensor):
        return given.to(like).reshape(())
    if given is not None:
        return float(given)
    if learned is None:
        return 1.0 / temperature
    if training:
        # The parameter itself is kept in range: a clamp on the value alone would end its gradient.
        with torch.no_grad():
            learned.clamp_(max=_LARGEST_LOG_SCALE)
    return learned.exp().clamp(max=_LARGEST_SCALE).to(like)


def bias_of(given: Number | None, learned: nn.Parameter | None, like: torch.Tensor) -> Number:
    """The bias of a step: the given one, the learned one, or 0; arguments as for ``scale_of``."""
    if isinstance(given, torch.Tensor):
        return given.to(like).reshape(())
    if given is not None:
        return float(given)
    return 0.0 if learned is None else learned.to(like)
