"""Small encoders trained from scratch, and the pair of them that shares one embedding.

Shapes: B rows, F frames, S picture size, D embedding size.
"""

from __future__ import annotations

import math
from typing import Self, TypeVar

import torch
from torch import nn

from uwml_core.training.fine_tuned import Backbone, FineTuned
from uwml_core.training.projection import FeatureProjection
from uwml_core.training.text import BUCKETS

KINDS = ("small",)

_WIDTH = 16
_TEXT_WIDTH = 128


class SmallCNN(nn.Module):
    """Four 3x3-like convolutions at 32 px, then one linear map of the 4x4 map that remains.

    Args:
        dim: size of the embedding D.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        w = _WIDTH
        self.features = nn.Sequential(
            *_block(3, w, kernel=4, stride=2),
            *_block(w, 2 * w),
            nn.MaxPool2d(2),
            *_block(2 * w, 4 * w),
            nn.MaxPool2d(2),
            *_block(4 * w, 4 * w),
            nn.AdaptiveAvgPool2d(4),
        ).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.project = nn.Linear(4 * w * 16, dim)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Embed pictures, or clips as the mean over their frames.

        Args:
            pictures: uint8 [B, 3, S, S] or [B, F, 3, S, S]; or float32 [B, W], as ``backbone`` gives it.

        Returns:
            float32 [B, D], not normalized.
        """
        if pictures.ndim == 5:
            rows, frames = pictures.shape[:2]
            return self.forward(pictures.flatten(0, 1)).view(rows, frames, -1).mean(dim=1)
        projected: torch.Tensor = self.project(pictures if pictures.ndim == 2 else self.backbone(pictures))
        return projected

    def backbone(self, pictures: torch.Tensor) -> torch.Tensor:
        """What the last linear map takes, float32 [B, W]; of clips the mean over their frames."""
        if pictures.ndim == 5:
            rows, frames = pictures.shape[:2]
            return self.backbone(pictures.flatten(0, 1)).view(rows, frames, -1).mean(dim=1)
        scaled = pictures.to(torch.float32).div_(127.5).sub_(1.0)
        features: torch.Tensor = self.features(scaled.contiguous(memory_format=torch.channels_last))
        return features.flatten(1)


def _block(inputs: int, outputs: int, *, kernel: int = 3, stride: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


class BagOfNgrams(nn.Module):
    """Sum of the embeddings of hashed words and n-grams, divided by the root of their number.

    Args:
        dim: size of the embedding D.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, _TEXT_WIDTH, mode="sum")
        nn.init.normal_(self.bag.weight, std=1 / math.sqrt(_TEXT_WIDTH))
        self.project = nn.Linear(_TEXT_WIDTH, dim)

    def forward(self, *texts: torch.Tensor) -> torch.Tensor:
        """Embed texts given as ``TextTable.take`` returns them.

        Args:
            *texts: buckets int64 [total], features of all texts one after the other, and offsets int64 [B],
                where each text begins; or float32 [B, W] alone, as ``backbone`` gives it.

        Returns:
            float32 [B, D], not normalized.
        """
        projected: torch.Tensor = self.project(texts[0] if len(texts) == 1 else self.backbone(*texts))
        return projected

    def backbone(self, buckets: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """What the last linear map takes, float32 [B, W]."""
        ends = torch.cat([offsets[1:], offsets.new_tensor([len(buckets)])])
        summed: torch.Tensor = self.bag(buckets, offsets)
        return summed / (ends - offsets).sqrt()[:, None]


T = TypeVar("T", "SmallCNN", "BagOfNgrams")
Tower = FineTuned | FeatureProjection
Sizes = tuple[int | None, int | None]
Backbones = tuple[Backbone | None, Backbone | None]


class TwoTower(nn.Module):
    """A picture encoder and a text encoder with one embedding size.

    Args:
        dim: size of the embedding D.
        sizes: numbers of a precomputed feature of a picture and of a text; None where there are none.
        backbones: of other libraries, for pictures and texts, that learn on; None where there are none.

    Attributes:
        computes_in: what both compute in when they are called together, None for float32.
        frozen: whether only the last linear maps learn.
    """

    computes_in: torch.dtype | None = None
    frozen = False

    def __init__(self, dim: int, sizes: Sizes = (None, None), backbones: Backbones = (None, None)) -> None:
        super().__init__()
        self.pictures = _tower(SmallCNN, dim, sizes[0], backbones[0])
        self.texts = _tower(BagOfNgrams, dim, sizes[1], backbones[1])

    def freeze(self, frozen: bool) -> None:
        """Let only the last linear maps learn, or everything again.

        What lies before them then keeps its weights, and its batch normalization its statistics.
        """
        self.frozen = frozen
        for tower in (self.pictures, self.texts):
            if isinstance(tower, FineTuned):
                tower.let_learn(not frozen)
            else:
                _backbone_of(tower).requires_grad_(not frozen)
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """As in ``nn.Module``; what is frozen stays as in evaluation."""
        super().train(mode)
        for tower in (self.pictures, self.texts):
            _backbone_of(tower).train(mode and not self.frozen)
        return self

    def fine_tuned(self) -> set[nn.Parameter]:
        """Weights of backbones of other libraries."""
        towers = (tower for tower in (self.pictures, self.texts) if isinstance(tower, FineTuned))
        return {parameter for tower in towers for parameter in tower.model.parameters()}

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.pictures.project.weight.device

    def forward(self, pictures: torch.Tensor, *texts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings of both sides, each float32 [B, D], not normalized."""
        if self.computes_in is None:
            return self.pictures(pictures), self.texts(*texts)
        with torch.autocast(pictures.device.type, self.computes_in):
            return self.pictures(pictures).float(), self.texts(*texts).float()


def _tower(own: type[T], dim: int, size: int | None, backbone: Backbone | None) -> Tower | T:
    if backbone is not None:
        return FineTuned(backbone, dim)
    return own(dim) if size is None else FeatureProjection(size, dim)


def _backbone_of(tower: Tower | SmallCNN | BagOfNgrams) -> nn.Module:
    """What of a tower may be frozen; precomputed features are a backbone's already."""
    if isinstance(tower, SmallCNN):
        features: nn.Module = tower.features
        return features
    if isinstance(tower, BagOfNgrams):
        return tower.bag
    if isinstance(tower, FineTuned):
        return tower.model
    return nn.Identity()


def build_model(
    kind: str,
    dim: int,
    seed: int,
    sizes: Sizes = (None, None),
    backbones: Backbones = (None, None),
) -> TwoTower:
    """Encoders with initial weights that depend on the seed only.

    Args:
        kind: one of ``KINDS``.
        dim: size of the embedding.
        seed: seed of the initial weights.
        sizes, backbones: as for ``TwoTower``.

    Raises:
        ValueError: for an unknown kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is unknown; choose one of {', '.join(KINDS)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TwoTower(dim, sizes, backbones)
