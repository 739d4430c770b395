"""From precomputed features to the shared embedding.

Shapes: B rows, D embedding size.
"""

from __future__ import annotations

import torch
from torch import nn


class FeatureProjection(nn.Module):
    """One linear map of precomputed features, and a perceptron of two layers added to it.

    Args:
        size: numbers of a feature.
        dim: size of the embedding D.

    Reference:
        Chen et al., "Learning the best pooling strategy for visual semantic embedding", 2021, section 4.1.
    """

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        self.project = nn.Linear(size, dim)
        self.residual = nn.Sequential(
            nn.Linear(size, dim // 2 or 1), nn.ReLU(), nn.Linear(dim // 2 or 1, dim)
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Embed features, each scaled to unit length first.

        Args:
            features: float32 [B, size].

        Returns:
            float32 [B, D], not normalized.
        """
        unit = nn.functional.normalize(features, dim=1)
        embedded: torch.Tensor = self.project(unit) + self.residual(unit)
        return embedded
