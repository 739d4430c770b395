"""The losses that are compared, each as a function of unnormalised features ``image, text: [B, D]``.

All start from the same features and normalise them. With equal weights all have the same value, which
``largest_disagreement`` measures.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from pytorch_metric_learning.losses import NTXentLoss

from uwml_core.losses import UWMLLoss, weighted_loss
from uwml_core.losses.similarity import same_label_mask
from uwml_core.weighting import UWMLConfig, stage_steepness

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

TEMPERATURE = 0.07
OURS, LABELLED, ATTACHED = "UWML", "UWML, labels", "UWML, weights in it"
PLAIN, CLIP, NTXENT = "InfoNCE", "ClipLoss", "NTXentLoss"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How losses are called.

    Attributes:
        dtype: float32; or bfloat16: features of that type, losses called under autocast, as trainers
            with mixed precision do (ours computes in float32 all the same).
        compiled: through ``torch.compile``.
        learned_scale: 1 / temperature is a learnable tensor given with the call, not a number.
        attached: let gradient flow through the weights, too, for the benchmark of that choice.
        cubic: ours against NTXentLoss alone, next to whose steps those of the others are instants.
    """

    dtype: torch.dtype = torch.float32
    compiled: bool = False
    learned_scale: bool = False
    attached: bool = False
    cubic: bool = False

    def __str__(self) -> str:
        words = ["bf16 autocast" if self.dtype == torch.bfloat16 else "float32"]
        words.append("compiled" if self.compiled else "eager")
        words.extend(["learned scale"] * self.learned_scale)
        words.extend(["weights in the graph, too"] * self.attached)
        return ", ".join(words)


def some_labels(batch: int, device: torch.device) -> torch.Tensor:
    """Labels of which an eighth occurs twice, so that a mask is really needed; int64 ``[B]``."""
    return torch.arange(batch, device=device) % (batch - batch // 8)


def contestants(batch: int, setting: Setting, device: torch.device) -> dict[str, Loss]:
    """The losses of a setting by name.

    Only ours is told labels: the other two have no place for them, and NTXentLoss takes pairs of one label
    for further positives.
    """
    scale = _learnable_scale(device) if setting.learned_scale else lambda: 1 / TEMPERATURE
    if setting.cubic:
        return {OURS: uwml(None, scale, batch, device), NTXENT: ntxent(batch, device)}
    labels = some_labels(batch, device)
    ours = compilable_uwml if setting.compiled else uwml
    losses = {
        OURS: ours(None, scale, batch, device),
        LABELLED: ours(labels, scale, batch, device),
        PLAIN: plain_infonce(scale),
        CLIP: clip_loss(scale),
    }
    if setting.attached:
        losses[ATTACHED] = uwml(None, scale, batch, device, detach_weights=False)
    if setting.compiled:
        losses = {name: torch.compile(loss, dynamic=False, fullgraph=True) for name, loss in losses.items()}
    if setting.dtype == torch.bfloat16:
        losses = {name: _autocast(loss, device) for name, loss in losses.items()}
    return losses


def _learnable_scale(device: torch.device) -> Callable[[], torch.Tensor]:
    return torch.tensor(1 / TEMPERATURE, device=device).log().requires_grad_().exp


def uwml(
    labels: torch.Tensor | None, scale: Callable[[], Any], batch: int, device: torch.device, **options: Any
) -> Loss:
    """The module with its defaults: checks, direction controller, diagnostics of every anchor."""
    module = UWMLLoss(total_steps=10_000, temperature=TEMPERATURE, **options).to(device)

    def loss(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        given = scale()
        return module(image, text, given if isinstance(given, torch.Tensor) else None, labels=labels)

    return loss


def compilable_uwml(
    labels: torch.Tensor | None, scale: Callable[[], Any], batch: int, device: torch.device
) -> Loss:
    """The pure function at the middle of the training: the module reads from the device, no graph holds it.

    So no checks, no controller, no diagnostics.
    """
    config, half = UWMLConfig(), torch.tensor([0.5, 0.5], device=device)
    steepness = torch.tensor(
        stage_steepness(0.5, config.steepness_start, config.steepness_end), device=device
    )
    same = same_label_mask(torch.arange(batch, device=device) if labels is None else labels)

    def loss(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        with torch.autocast(image.device.type, enabled=False):
            similarity = F.normalize(image.float(), dim=1) @ F.normalize(text.float(), dim=1).T
            return weighted_loss(similarity, same, steepness, half, config=config, scale=scale())

    return loss


def plain_infonce(scale: Callable[[], Any]) -> Loss:
    """Symmetric InfoNCE from one matrix product, the scale on the features, as CLIP's first code has it."""

    def loss(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        logits = scale() * F.normalize(image, dim=1) @ F.normalize(text, dim=1).T
        target = torch.arange(len(logits), device=logits.device)
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2

    return loss


def clip_loss(scale: Callable[[], Any]) -> Loss:
    """open_clip's own ``ClipLoss`` (two products), behind the normalisation that its models do."""
    module = _open_clip_losses().ClipLoss()

    def loss(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = module(F.normalize(image, dim=1), F.normalize(text, dim=1), scale())
        return value

    return loss


def _open_clip_losses() -> Any:
    # The file alone, which needs torch only: the package imports torchvision, whose compiled operators
    # do not load beside every build of torch.
    package = importlib.util.find_spec("open_clip")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("open_clip is missing; pip install -r benchmarks/requirements.txt")
    spec = importlib.util.spec_from_file_location("open_clip_loss", Path(package.origin).parent / "loss.py")
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(
            "open_clip has no loss.py; install the version in benchmarks/requirements.txt"
        )
    module = importlib.util.module_from_spec(spec)
    # where the compiler looks for it
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def ntxent(batch: int, device: torch.device) -> Loss:
    """pytorch-metric-learning's ``NTXentLoss`` across modalities, both directions.

    It lays every positive pair beside every negative one: ``[B, B (B - 1)]``.
    """
    module, numbers = NTXentLoss(temperature=TEMPERATURE), torch.arange(batch, device=device)
    # a second tensor: the library takes the very same one for "no reference", and the diagonal for no pair
    partners = numbers.clone()

    def loss(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        rows = module(image, numbers, ref_emb=text, ref_labels=partners)
        columns = module(text, numbers, ref_emb=image, ref_labels=partners)
        value: torch.Tensor = (rows + columns) / 2
        return value

    return loss


def _autocast(loss: Loss, device: torch.device) -> Loss:
    def under_autocast(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            return loss(image, text)

    return under_autocast


def features(batch: int, dim: int, setting: Setting, device: torch.device) -> list[torch.Tensor]:
    """Leaves ``image, text: [B, D]``, partners alike but for noise."""
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(batch, dim, generator=generator)
    text = image + 2.0 * torch.randn(batch, dim, generator=generator)
    return [side.to(device, setting.dtype).requires_grad_() for side in (image, text)]


def largest_disagreement(device: torch.device, batch: int = 32, dim: int = 16) -> float:
    """How far the values of the losses lie apart at equal weights, relative."""
    scale = float(1 / TEMPERATURE)
    equal = UWMLLoss(curve="uniform", direction_mode="off", temperature=TEMPERATURE).to(device)
    losses = [equal, plain_infonce(lambda: scale), clip_loss(lambda: scale), ntxent(batch, device)]
    image, text = features(batch, dim, Setting(), device)
    values = [float(loss(image, text).detach()) for loss in losses]
    return (max(values) - min(values)) / min(values)
