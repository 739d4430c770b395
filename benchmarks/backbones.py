"""Picture encoders of the published sizes from torch alone, with random weights, and a text encoder.

Written here because only their cost counts: the libraries that ship them want torchvision, whose compiled
operators do not load beside every build of torch. The text encoder is next to nothing, so that what the
loss and the log cost is seen against the picture encoder only.
"""

from __future__ import annotations

import torch
from torch import nn

WORDS, LENGTH = 10_000, 12


class ViTSmall(nn.Module):
    """ViT-S/16 at 224 pixels: 21.7 million parameters, 384 numbers out."""

    width = 384

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, self.width, kernel_size=16, stride=16)
        self.first = nn.Parameter(torch.zeros(1, 1, self.width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 197, self.width))
        layer = nn.TransformerEncoderLayer(
            self.width,
            nhead=6,
            dim_feedforward=4 * self.width,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.blocks = nn.TransformerEncoder(
            layer, 12, norm=nn.LayerNorm(self.width), enable_nested_tensor=False
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(pictures).flatten(2).transpose(1, 2)
        tokens = torch.cat((self.first.expand(len(tokens), -1, -1), tokens), dim=1)
        found: torch.Tensor = self.blocks(tokens + self.places)[:, 0]
        return found


class Bottleneck(nn.Module):
    """Three convolutions around a shortcut; the stride sits on the middle one."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_convolution(inputs, width, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, 4 * width, 1),
        )
        same = stride == 1 and inputs == 4 * width
        self.shortcut = nn.Sequential(*() if same else _convolution(inputs, 4 * width, 1, stride))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(features) + self.shortcut(features))


class ResNet50(nn.Module):
    """ResNet-50 at 224 pixels without its classifier: 23.5 million parameters, 2048 numbers out."""

    width = 2048

    def __init__(self) -> None:
        super().__init__()
        blocks, inputs = [], 64
        for stage, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
            for index in range(count):
                blocks.append(Bottleneck(inputs, width, 2 if stage and not index else 1))
                inputs = 4 * width
        self.features = nn.Sequential(
            *_convolution(3, 64, 7, 2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
            *blocks,
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.features(pictures)
        return found


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    return convolution, nn.BatchNorm2d(outputs)


BACKBONES: dict[str, type[ViTSmall] | type[ResNet50]] = {"vit_small": ViTSmall, "resnet50": ResNet50}


class LargeTower(nn.Module):
    """A large picture encoder and a bag of words, both mapped to ``dim`` numbers."""

    def __init__(self, backbone: str, dim: int) -> None:
        super().__init__()
        self.pictures = BACKBONES[backbone]()
        self.project = nn.Linear(self.pictures.width, dim)
        self.words = nn.EmbeddingBag(WORDS, dim)

    def fine_tuned(self) -> set[nn.Parameter]:
        """None: all weights learn at the full rate."""
        return set()

    def forward(self, pictures: torch.Tensor, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings ``[B, dim]`` of pictures ``[B, 3, 224, 224]`` and word numbers ``[B, 12]``."""
        return self.project(self.pictures(pictures)), self.words(words)
