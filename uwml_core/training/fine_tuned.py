"""Encoders of other libraries that learn on, each with a projection into the shared embedding.

Shapes: B rows, F frames, W numbers of a feature, D embedding size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from uwml_core.training.projection import FeatureProjection


@dataclass(frozen=True, kw_only=True)
class Backbone:
    """A model that can be trained.

    Attributes:
        module: holds the weights.
        embed: what the module makes of its inputs, features ``[B, W]``.
        example: inputs of one row or more.
    """

    module: nn.Module
    embed: Callable[..., torch.Tensor]
    example: tuple[torch.Tensor, ...]


class FineTuned(nn.Module):
    """A backbone and a projection.

    Args:
        backbone: its weights are trained in place.
        dim: size of the embedding D.
    """

    def __init__(self, backbone: Backbone, dim: int) -> None:
        super().__init__()
        self.model, self._embed = backbone.module, backbone.embed
        size, self._used = _probed(backbone)
        self.head = FeatureProjection(size, dim)
        self.let_learn(True)

    @property
    def project(self) -> nn.Linear:
        """The last linear map."""
        return self.head.project

    def let_learn(self, learning: bool) -> None:
        """Let the backbone learn or not; what its features do not depend on never does."""
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(learning and name in self._used)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Embed what the backbone takes, or float32 ``[B, W]`` as ``backbone`` gives it.

        Returns:
            ``[B, D]``, not normalized.
        """
        ready = len(inputs) == 1 and inputs[0].ndim == 2 and inputs[0].is_floating_point()
        embedded: torch.Tensor = self.head(inputs[0] if ready else self.backbone(*inputs))
        return embedded

    def backbone(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Features ``[B, W]``; of clips, pixels ``[B, F, 3, H, W]``, the mean over their frames."""
        if inputs[0].ndim == 5:
            rows, frames = inputs[0].shape[:2]
            return self._embed(inputs[0].flatten(0, 1)).view(rows, frames, -1).mean(dim=1)
        return self._embed(*inputs)


def _probed(backbone: Backbone) -> tuple[int, frozenset[str]]:
    """Numbers of a feature, and the names of the weights that it depends on.

    The text half of a dual encoder says nothing about pictures; several processes would wait for its
    gradients for ever.
    """
    module = backbone.module.eval().requires_grad_(True)
    example = backbone.example
    features = backbone.embed(*(example if example[0].ndim != 5 else (example[0].flatten(0, 1),)))
    features.sum().backward()  # type: ignore[no-untyped-call]
    used = frozenset(name for name, parameter in module.named_parameters() if parameter.grad is not None)
    module.zero_grad(set_to_none=True)
    return int(features.shape[1]), used
