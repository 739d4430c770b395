"""What a call of the loss brings, checked."""

from __future__ import annotations

from typing import Any

import torch

from uwml_core.losses import checks
from uwml_core.losses.measure import Batch
from uwml_core.losses.report import StepReading
from uwml_core.losses.similarity import rescaled_rows
from uwml_core.losses.state import LossState


def batch_of(
    image: torch.Tensor, text: torch.Tensor, labels: Any, item_ids: Any, *, state: LossState, rank: int
) -> Batch:
    """A batch of one process.

    Args:
        image, text: features as given.
        labels, item_ids: as given, None where unknown.
        state: what numbers the pairs where there are no labels, and the memory queue.
        rank: of the process, whose pairs follow those of the ranks below it.

    Raises:
        ValueError: naming the argument and what is expected.
    """
    checks.check_features(image, text)
    size, dim = image.shape
    checks.check_item_ids(item_ids, size)
    checks.check_memory(dim, state.memory.dim)
    if labels is None:
        known = torch.arange(size, device=image.device) + (state.next_label + rank * size)
    else:
        known = checks.check_labels(labels, size, image.device)
    features = _at_least_float32(image), _at_least_float32(text)
    return Batch(*features, known, numbered=labels is None, item_ids=item_ids)


def sound(batch: Batch, reading: StepReading) -> Batch:
    """The batch in a range in which lengths are exact.

    Raises:
        ValueError: if a value of it, or of the logits that were read, is not one to compute with.
    """
    checks.check_rows(batch.image.detach(), batch.text.detach())
    checks.check_logit_value("logit_scale", reading.scale)
    checks.check_logit_value("logit_bias", reading.bias)
    return batch._replace(image=rescaled_rows(batch.image), text=rescaled_rows(batch.text))


def _at_least_float32(features: torch.Tensor) -> torch.Tensor:
    return features if features.dtype == torch.float64 else features.to(torch.float32)
