"""From the tensors of a step to its diagnostics, with a single read from the device."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from uwml_core.losses.candidates import Both
from uwml_core.losses.diagnostics import StepDiagnostics
from uwml_core.losses.distributed import ALONE, OneProcess
from uwml_core.losses.further import FurtherPairs
from uwml_core.losses.logits import Logits
from uwml_core.losses.schedule import Stage
from uwml_core.losses.similarity import NORM_RANGE, count_negatives
from uwml_core.losses.terms import AnchorTerms
from uwml_core.losses.weigh import Weighted, direction_factors
from uwml_core.weighting import UWMLConfig


class StepTensors(NamedTuple):
    """Everything a step computed on the device; axis 0 of ``[2, B]`` is the direction.

    ``norms`` is ``[2, B]`` with the modality on axis 0; ``labels`` is ``[B]`` and ``distinct`` says that
    no two of them are equal. ``sides`` is None on the fused path. ``further`` are the candidates behind the
    batch, in order. ``whole`` is the batch of all processes, None where neither they nor a memory ask for it.
    """

    terms: AnchorTerms
    weighted: Weighted
    norms: torch.Tensor
    labels: torch.Tensor
    distinct: bool
    logits: Logits
    sides: Both | None = None
    further: tuple[FurtherPairs, ...] = ()
    whole: FurtherPairs | None = None
    peers: OneProcess = ALONE

    @property
    def batch_size(self) -> int:
        """Pairs in the batch of all processes."""
        return self.labels.shape[0] * self.peers.size

    @property
    def candidate_labels(self) -> torch.Tensor:
        """Labels of all candidates, the own batch first."""
        if not self.further:
            return self.labels
        return torch.cat((self.labels, *(pairs.labels for pairs in self.further)))


class StepReading(NamedTuple):
    """What the host learns of a step, over all processes: float64 ``[2]`` per direction, and floats."""

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
    sums, values = _sums(step), _values(step)
    (summed,) = step.peers.total(torch.cat((_counts(step).to(torch.float64), _stacked(sums))))
    anchors, correct, clamped, normal, *host = torch.cat((summed, _stacked(values))).cpu()
    read = dict(zip((*sums, *values), host, strict=True))
    scale, bias = (
        read[name][0].item() if isinstance(value, torch.Tensor) else value
        for name, value in step.logits._asdict().items()
    )
    batch = step.batch_size
    return StepReading(
        loss=read["loss"],
        gap=read["gap"] / anchors,
        ess=read["ess"],
        clamped_share=_cut_share(clamped / read.get("weighed", anchors)),
        no_negative_count=batch - anchors,
        accuracy=correct / anchors,
        negatives_per_anchor=read["negatives"].mean().item() / batch if "negatives" in read else batch - 1.0,
        masked_false_negatives=int(read["masked"].sum().item()) if "masked" in read else 0,
        margin_scale=read.get("margin_scale"),
        dead_share=read["dead"] / anchors if "dead" in read else None,
        wrong_sign_share=read["wrong_sign"] / anchors if "wrong_sign" in read else None,
        scale=scale,
        bias=bias,
        sound=anchors.sum().item() > 0 and normal.sum().item() == 2 * batch,
    )


def _cut_share(at_clamp: torch.Tensor) -> torch.Tensor:
    # Relative weights have mean 1: where all are at the clamp, it is 1, too, and cut none of them.
    return torch.where(at_clamp < 1.0, at_clamp, 0.0 * at_clamp)


def _counts(step: StepTensors) -> torch.Tensor:
    """Anchors with a negative, those of them at rank 1, weights at the clamp, sound norms: ``[4, 2]``."""
    terms, (low, high) = step.terms, NORM_RANGE
    has_negative = terms.negative_index >= 0
    correct = has_negative & (terms.positive > terms.negative)
    normal = (step.norms >= low) & (step.norms <= high) & _sound_logits(step.logits)
    counts = torch.stack((has_negative, correct, normal)).sum(-1)
    return torch.stack((counts[0], counts[1], step.weighted.clamped, counts[2]))


def _sound_logits(logits: Logits) -> torch.Tensor | bool:
    # Counted with the norms, so that all processes learn of one that has another scale.
    sound: torch.Tensor | bool = True
    if isinstance(logits.scale, torch.Tensor):
        sound = logits.scale.isfinite() & (logits.scale > 0)
    return sound & logits.bias.isfinite() if isinstance(logits.bias, torch.Tensor) else sound


def _stacked(rows: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.stack([value.detach().to(torch.float64).expand(2) for value in rows.values()])


def _sums(step: StepTensors) -> dict[str, torch.Tensor]:
    """Sums over this process's anchors beside the counts: ``[2]`` per direction, or scalars."""
    terms, weighted = step.terms, step.weighted
    # to the hardest negative, whatever the statistic
    margin = weighted.margin if terms.statistic is None else terms.positive - terms.negative
    margin = torch.where(terms.negative_index < 0, 0.0, margin)
    rows = {
        "gap": margin.sum(-1, dtype=torch.float64),
        "loss": weighted.losses,
    }
    if weighted.weighed is not None:
        rows["weighed"] = weighted.weighed
    if step.sides is not None:
        rows["negatives"] = torch.stack([(~side.excluded).sum() for side in step.sides])
        masks = [side.false_negatives for side in step.sides if side.false_negatives is not None]
        if masks:
            rows["masked"] = torch.stack([mask.sum() for mask in masks])
    elif not step.distinct:
        rows["negatives"] = count_negatives(step.labels)
    if step.terms.zones is not None:
        rows["dead"], rows["wrong_sign"] = step.terms.zones.sum(-1)
    return rows


def _values(step: StepTensors) -> dict[str, torch.Tensor]:
    """What is the same in all processes: ``[2]`` per direction, or scalars."""
    rows = {"ess": step.weighted.ess}
    if step.terms.margin_scale is not None:
        rows["margin_scale"] = step.terms.margin_scale
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
    (mass,) = step.peers.total(weighted.mass.sum(-1, keepdim=True))
    missing = terms.negative_index < 0
    statistic = terms.negative if terms.statistic is None else terms.statistic
    return StepDiagnostics(
        directions=config.directions,
        label=step.labels.expand(2, -1),
        negative_index=terms.negative_index,
        negative_label=step.candidate_labels[terms.negative_index].masked_fill_(missing, -1),
        positive_similarity=terms.positive.detach().expand(2, -1),
        negative_similarity=statistic.detach().masked_fill(missing, torch.nan),
        margin=weighted.margin.detach(),
        pair_loss=weighted.pair_loss.detach(),
        pair_weight=weighted.pair_weight.detach(),
        weight=weighted.weight.detach(),
        gradient_share=weighted.mass / mass,
        direction_loss=reading.loss,
        gap=reading.gap,
        gap_window=torch.tensor(gap_window, dtype=torch.float64),
        direction_weight=torch.tensor(direction_weight, dtype=torch.float64),
        ess=reading.ess,
        clamped_share=reading.clamped_share,
        no_negative_count=reading.no_negative_count,
        accuracy=reading.accuracy,
        loss=whole_loss(reading, config, direction_weight),
        batch_size=step.batch_size,
        progress=stage.progress,
        steepness=stage.steepness,
        stage_factor=stage.factor,
        temperature=_temperature(step, reading, stage, config),
        negatives_per_anchor=reading.negatives_per_anchor,
        masked_false_negatives=reading.masked_false_negatives,
        false_negatives=_false_negatives(step),
        further_item_ids=tuple(item for pairs in step.further for item in pairs.item_ids),
        margin_scale=reading.margin_scale,
        dead_share=reading.dead_share,
        wrong_sign_share=reading.wrong_sign_share,
    )


def whole_loss(reading: StepReading, config: UWMLConfig, direction_weight: tuple[float, float]) -> float:
    """The loss of a step over all processes."""
    first, second = direction_factors(config, direction_weight)
    return float(first) * reading.loss[0].item() + float(second) * reading.loss[1].item()


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
