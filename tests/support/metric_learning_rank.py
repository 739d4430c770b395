"""One of two processes that compute a loss of pytorch-metric-learning under its own distributed wrapper."""

from __future__ import annotations

import torch
from pytorch_metric_learning.utils.distributed import DistributedLossWrapper

from uwml_core.integrations.pytorch_metric_learning import UWMLMetricLoss

LABELS = torch.tensor([3, 5, 3, 7, 5, 4, 9, 1])
SETTINGS = {"total_steps": 3, "update_every": 1, "smoothing": 0.2}


def features() -> tuple[torch.Tensor, torch.Tensor]:
    """A batch of eight pairs."""
    image, text = torch.randn(2, 8, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return image, text


def one_of_two() -> dict[str, torch.Tensor]:
    """Loss, and gradients of this process's four pairs."""
    rank = torch.distributed.get_rank()
    own = slice(4 * rank, 4 * rank + 4)
    image, text = (side[own].clone().requires_grad_() for side in features())
    loss = DistributedLossWrapper(UWMLMetricLoss(**SETTINGS))
    value = loss(image, LABELS[own], ref_emb=text, ref_labels=LABELS[own])
    value.backward()
    return {"image": image.grad, "text": text.grad, "loss": value.detach()}
