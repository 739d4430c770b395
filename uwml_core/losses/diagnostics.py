"""What one training step can tell, detached from the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, kw_only=True)
class StepDiagnostics:
    """Diagnostics of one step. ``d`` indexes ``directions``; all tensors are detached.

    Per anchor of this process, ``[2, batch]`` on the device of the features, float32 (float64 for float64
    input) or int64. ``negative_index`` points into the candidates; it, ``negative_label`` (-1) and the NaN
    of the float fields mark anchors without negatives.

    ``further_item_ids`` are the ids of the candidates behind the batch, those of other processes in rank
    order, then those of the memory queue; None for an id that was not given.

    What is not per anchor is over the anchors of all processes that share a batch, ``batch_size`` pairs.

    Per direction, float64 ``[2]`` on the host. Per step, Python floats and ints; None where a quantity
    does not exist for the loss in use (it becomes null in the log, not NaN).

    ``false_negatives`` names the negatives that ``false_negative_margin`` left out: int64
    ``[n, 3]`` of direction, anchor and candidate, on the device; None without it.

    The names are those of the ``pairs`` and ``steps`` tables in ``uwml_core.runlog.schema``;
    ``direction_loss`` is the ``loss`` of a direction.
    """

    directions: tuple[str, str]

    label: torch.Tensor
    negative_index: torch.Tensor
    negative_label: torch.Tensor
    positive_similarity: torch.Tensor
    negative_similarity: torch.Tensor
    margin: torch.Tensor
    pair_loss: torch.Tensor
    pair_weight: torch.Tensor
    weight: torch.Tensor
    gradient_share: torch.Tensor

    direction_loss: torch.Tensor
    gap: torch.Tensor
    gap_window: torch.Tensor
    direction_weight: torch.Tensor
    ess: torch.Tensor
    clamped_share: torch.Tensor
    no_negative_count: torch.Tensor
    accuracy: torch.Tensor

    loss: float
    batch_size: int
    progress: float | None
    steepness: float
    stage_factor: float
    temperature: float | None
    negatives_per_anchor: float
    masked_false_negatives: int
    false_negatives: torch.Tensor | None = None
    further_item_ids: tuple[Any, ...] = ()
    margin_scale: torch.Tensor | None = None
    dead_share: torch.Tensor | None = None
    wrong_sign_share: torch.Tensor | None = None
