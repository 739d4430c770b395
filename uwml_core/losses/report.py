"""From the tensors of a step to its diagnostics, with a single read from the device."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from uwml_core.losses.diagnostics import StepDiagnostics
from uwml_core.losses.functional import AnchorWeights
from uwml_core.losses.schedule import Stage
from uwml_core.losses.similarity import NORM_RANGE, negatives_per_anchor
from uwml_core.losses.terms import AnchorTerms
from uwml_core.weighting import UWMLConfig, effective_sample_size


class StepTensors(NamedTuple):
    """Everything a step computed on the device; axis 0 of ``[2, B]`` is the direction.

    ``norms`` is ``[2, B]`` with the modality on axis 0; ``losses`` is ``[2]``; ``labels`` is ``[B]`` and
    ``distinct`` says that no two of them are equal.
    """

    terms: AnchorTerms
    weights: AnchorWeights
    losses: torch.Tensor
    norms: torch.Tensor
    labels: torch.Tensor
    distinct: bool
    scale: float | torch.Tensor


class StepReading(NamedTuple):
    """What the host learns of a step: float64 ``[2]`` per direction, and floats."""

    loss: torch.Tensor
    gap: torch.Tensor
    ess: torch.Tensor
    clamped_share: torch.Tensor
    no_negative_count: torch.Tensor
    accuracy: torch.Tensor
    negatives_per_anchor: float
    scale: float
    sound: bool


def read_step(step: StepTensors, config: UWMLConfig) -> StepReading:
    """Reduce a step to its scalars and bring them to the host in one transfer.

    ``sound`` is False where a norm is out of range, a scale is not positive and finite, or no anchor has
    a negative: the caller then finds out which.
    """
    margin, weight = step.weights.margin, step.weights.weight
    low, high = NORM_RANGE
    has_negative = step.terms.negative_index >= 0
    counts = torch.stack(
        (
            has_negative,
            (margin > 0) & has_negative,
            weight >= config.max_weight,
            (step.norms >= low) & (step.norms <= high),
        )
    ).sum(-1)
    batch = step.labels.shape[0]
    floats = [
        torch.where(has_negative, margin, 0.0).sum(-1, dtype=torch.float64),
        effective_sample_size(weight.to(torch.float64)),
        step.losses.to(torch.float64),
    ]
    if not step.distinct:
        floats.append(negatives_per_anchor(step.labels).expand(2))
    if isinstance(step.scale, torch.Tensor):
        floats.append(step.scale.to(torch.float64).expand(2))
    host = torch.cat((counts.to(torch.float64), torch.stack(floats).detach())).cpu()
    anchors, correct, clamped, normal, gap, ess, losses, *rest = host
    scale = rest.pop()[0].item() if isinstance(step.scale, torch.Tensor) else step.scale
    negatives = batch - 1.0 if step.distinct else rest.pop()[0].item()
    sound = anchors.sum().item() > 0 and normal.sum().item() == 2 * batch
    return StepReading(
        loss=losses,
        gap=gap / anchors,
        ess=ess,
        clamped_share=clamped / anchors,
        no_negative_count=batch - anchors,
        accuracy=correct / anchors,
        negatives_per_anchor=negatives,
        scale=scale,
        sound=sound and scale > 0.0 and math.isfinite(scale),
    )


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
    terms, weights = step.terms, step.weights
    weight = weights.weight.detach()
    mass = weight * terms.gradient_mass
    missing = terms.negative_index < 0
    negative = terms.negative.detach()
    first, second = direction_weight
    return StepDiagnostics(
        directions=config.directions,
        label=step.labels.expand(2, -1),
        negative_index=terms.negative_index,
        negative_label=step.labels[terms.negative_index].masked_fill_(missing, -1),
        positive_similarity=terms.positive.detach().expand(2, -1),
        negative_similarity=negative.masked_fill(missing, torch.nan),
        margin=weights.margin.detach(),
        pair_loss=terms.pair_loss.detach(),
        pair_weight=weights.pair_weight.detach(),
        weight=weight,
        gradient_share=mass / mass.sum(-1, keepdim=True),
        direction_loss=reading.loss,
        gap=reading.gap,
        gap_window=torch.tensor(gap_window, dtype=torch.float64),
        direction_weight=torch.tensor(direction_weight, dtype=torch.float64),
        ess=reading.ess,
        clamped_share=reading.clamped_share,
        no_negative_count=reading.no_negative_count,
        accuracy=reading.accuracy,
        loss=first * reading.loss[0].item() + second * reading.loss[1].item(),
        batch_size=step.labels.shape[0],
        progress=stage.progress,
        steepness=stage.steepness,
        stage_factor=stage.factor,
        temperature=_temperature(step, reading, stage, config),
        negatives_per_anchor=reading.negatives_per_anchor,
        masked_false_negatives=0,
    )


def _temperature(step: StepTensors, reading: StepReading, stage: Stage, config: UWMLConfig) -> float | None:
    if config.base != "infonce":
        return None
    return 1.0 / reading.scale if isinstance(step.scale, torch.Tensor) else stage.temperature


_PER_DIRECTION = (
    "gap",
    "gap_window",
    "direction_weight",
    "ess",
    "clamped_share",
    "no_negative_count",
    "accuracy",
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
            logs[f"{name}_{direction}"] = float(getattr(last, name)[index])
    return logs
