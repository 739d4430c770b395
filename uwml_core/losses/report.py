"""From the tensors of a step to its diagnostics, with a single read from the device."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

from uwml_core.losses.candidates import Both
from uwml_core.losses.diagnostics import StepDiagnostics
from uwml_core.losses.logits import Logits
from uwml_core.losses.memory import Remembered
from uwml_core.losses.schedule import Stage
from uwml_core.losses.similarity import NORM_RANGE, negatives_per_anchor
from uwml_core.losses.terms import AnchorTerms
from uwml_core.losses.weigh import Weighted, direction_factors
from uwml_core.weighting import UWMLConfig


class StepTensors(NamedTuple):
    """Everything a step computed on the device; axis 0 of ``[2, B]`` is the direction.

    ``norms`` is ``[2, B]`` with the modality on axis 0; ``labels`` is ``[B]`` and ``distinct`` says that
    no two of them are equal. ``sides`` and ``units``, the detached unit rows of both modalities, are None
    on the fused path, ``memory`` is None where there is none.
    """

    terms: AnchorTerms
    weighted: Weighted
    norms: torch.Tensor
    labels: torch.Tensor
    distinct: bool
    logits: Logits
    sides: Both | None = None
    units: tuple[torch.Tensor, torch.Tensor] | None = None
    memory: Remembered | None = None


class StepReading(NamedTuple):
    """What the host learns of a step: float64 ``[2]`` per direction, and floats."""

    loss: torch.Tensor
    gap: torch.Tensor
    ess: torch.Tensor
    clamped_share: torch.Tensor
    no_negative_count: torch.Tensor
    accuracy: torch.Tensor
    negatives_per_anchor: float
    masked_false_negatives: int
    margin_scale: torch.Tensor | None
    dead_share: torch.Tensor | None
    wrong_sign_share: torch.Tensor | None
    scale: float
    bias: float
    sound: bool


def read_step(step: StepTensors) -> StepReading:
    """Reduce a step to its scalars and bring them to the host in one transfer.

    ``sound`` is False where a norm is out of range, a scale is not positive and finite, or no anchor has
    a negative: the caller then finds out which.
    """
    counts, rows = _counts(step), _rows(step)
    floats = torch.stack([value.to(torch.float64).expand(2) for value in rows.values()])
    anchors, correct, clamped, normal, *host = torch.cat((counts.to(torch.float64), floats.detach())).cpu()
    read = dict(zip(rows, host, strict=True))
    scale, bias = (
        read[name][0].item() if isinstance(value, torch.Tensor) else value
        for name, value in step.logits._asdict().items()
    )
    batch = step.labels.shape[0]
    sound = anchors.sum().item() > 0 and normal.sum().item() == 2 * batch
    return StepReading(
        loss=read["loss"],
        gap=read["gap"] / anchors,
        ess=read["ess"],
        clamped_share=clamped / read.get("weighed", anchors),
        no_negative_count=batch - anchors,
        accuracy=correct / anchors,
        negatives_per_anchor=read["negatives"].mean().item() if "negatives" in read else batch - 1.0,
        masked_false_negatives=int(read["masked"].sum().item()) if "masked" in read else 0,
        margin_scale=read.get("margin_scale"),
        dead_share=read["dead"] / anchors if "dead" in read else None,
        wrong_sign_share=read["wrong_sign"] / anchors if "wrong_sign" in read else None,
        scale=scale,
        bias=bias,
        sound=sound and scale > 0.0 and math.isfinite(scale) and math.isfinite(bias),
    )


def _counts(step: StepTensors) -> torch.Tensor:
    """Anchors with a negative, those of them at rank 1, weights at the clamp, sound norms: ``[4, 2]``."""
    terms, (low, high) = step.terms, NORM_RANGE
    has_negative = terms.negative_index >= 0
    correct = has_negative & (terms.positive > terms.negative)
    counts = torch.stack((has_negative, correct, (step.norms >= low) & (step.norms <= high))).sum(-1)
    return torch.stack((counts[0], counts[1], step.weighted.clamped, counts[2]))


def _rows(step: StepTensors) -> dict[str, torch.Tensor]:
    """What the host reads beside the counts: ``[2]`` per direction, or scalars."""
    terms, weighted = step.terms, step.weighted
    # to the hardest negative, whatever the statistic
    margin = weighted.margin if terms.statistic is None else terms.positive - terms.negative
    margin = torch.where(terms.negative_index < 0, 0.0, margin)
    rows = {
        "gap": margin.sum(-1, dtype=torch.float64),
        "loss": weighted.losses,
        "ess": weighted.ess,
    }
    if weighted.weighed is not None:
        rows["weighed"] = weighted.weighed
    if step.sides is not None:
        rows["negatives"] = torch.stack(
            [(~s.excluded).sum(1, dtype=torch.float64).mean() for s in step.sides]
        )
        masks = [side.false_negatives for side in step.sides if side.false_negatives is not None]
        if masks:
            rows["masked"] = torch.stack([mask.sum() for mask in masks])
    elif not step.distinct:
        rows["negatives"] = negatives_per_anchor(step.labels)
    if step.terms.margin_scale is not None:
        rows["margin_scale"] = step.terms.margin_scale
    if step.terms.zones is not None:
        rows["dead"], rows["wrong_sign"] = step.terms.zones.sum(-1)
    tensors = {name: v for name, v in step.logits._asdict().items() if isinstance(v, torch.Tensor)}
    return {**rows, **tensors}


def step_diagnostics(
    step: StepTensors,
    reading: StepReading,
    stage: Stage,
    config: UWMLConfig,
    *,
    direction_weight: tuple[float, float],
    gap_window: tuple[float, float],
) -> StepDiagnostics:
    """The frozen record of a step.

    Args:
        step: tensors of the step.
        reading: their host side.
        stage: schedule values used.
        config: of the loss.
        direction_weight: weights that the controller gave, in the order of the directions.
        gap_window: mean gaps over the controller's window.
    """
    terms, weighted = step.terms, step.weighted
    mass = weighted.mass
    missing = terms.negative_index < 0
    statistic = terms.negative if terms.statistic is None else terms.statistic
    first, second = direction_factors(config, direction_weight)
    return StepDiagnostics(
        directions=config.directions,
        label=step.labels.expand(2, -1),
        negative_index=terms.negative_index,
        negative_label=_candidate_labels(step)[terms.negative_index].masked_fill_(missing, -1),
        positive_similarity=terms.positive.detach().expand(2, -1),
        negative_similarity=statistic.detach().masked_fill(missing, torch.nan),
        margin=weighted.margin.detach(),
        pair_loss=weighted.pair_loss.detach(),
        pair_weight=weighted.pair_weight.detach(),
        weight=weighted.weight.detach(),
        gradient_share=mass / mass.sum(-1, keepdim=True),
        direction_loss=reading.loss,
        gap=reading.gap,
        gap_window=torch.tensor(gap_window, dtype=torch.float64),
        direction_weight=torch.tensor(direction_weight, dtype=torch.float64),
        ess=reading.ess,
        clamped_share=reading.clamped_share,
        no_negative_count=reading.no_negative_count,
        accuracy=reading.accuracy,
        loss=float(first) * reading.loss[0].item() + float(second) * reading.loss[1].item(),
        batch_size=step.labels.shape[0],
        progress=stage.progress,
        steepness=stage.steepness,
        stage_factor=stage.factor,
        temperature=_temperature(step, reading, stage, config),
        negatives_per_anchor=reading.negatives_per_anchor,
        masked_false_negatives=reading.masked_false_negatives,
        false_negatives=_false_negatives(step),
        memory_item_ids=() if step.memory is None else step.memory.item_ids,
        margin_scale=reading.margin_scale,
        dead_share=reading.dead_share,
        wrong_sign_share=reading.wrong_sign_share,
    )


def _candidate_labels(step: StepTensors) -> torch.Tensor:
    return step.labels if step.memory is None else torch.cat((step.labels, step.memory.labels))


def _false_negatives(step: StepTensors) -> torch.Tensor | None:
    masks = [side.false_negatives for side in step.sides or () if side.false_negatives is not None]
    if not masks:
        return None
    return torch.cat([F.pad(mask.nonzero(), (1, 0), value=d) for d, mask in enumerate(masks)])


def _temperature(step: StepTensors, reading: StepReading, stage: Stage, config: UWMLConfig) -> float | None:
    if not (config.has_temperature or config.base == "sigmoid"):
        return None
    return 1.0 / reading.scale if isinstance(step.logits.scale, torch.Tensor) else stage.temperature


_PER_DIRECTION = (
    "gap",
    "gap_window",
    "direction_weight",
    "ess",
    "clamped_share",
    "no_negative_count",
    "accuracy",
    "margin_scale",
    "dead_share",
    "wrong_sign_share",
)
_PER_STEP = (
    "loss",
    "batch_size",
    "progress",
    "steepness",
    "stage_factor",
    "temperature",
    "negatives_per_anchor",
    "masked_false_negatives",
)


def flat_logs(last: StepDiagnostics) -> dict[str, float]:
    """Scalars of a step under the column names of the ``steps`` table; what does not exist is left out."""
    logs = {name: float(getattr(last, name)) for name in _PER_STEP if getattr(last, name) is not None}
    for index, direction in enumerate(last.directions):
        logs[f"loss_{direction}"] = float(last.direction_loss[index])
        for name in _PER_DIRECTION:
            if (value := getattr(last, name)) is not None:
                logs[f"{name}_{direction}"] = float(value[index])
    return logs
