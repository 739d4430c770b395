"""From a batch of features to the tensors of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from uwml_core.losses.candidates import both_directions
from uwml_core.losses.distributed import Claim, OneProcess
from uwml_core.losses.functional import base_terms
from uwml_core.losses.further import FurtherPairs, further_pairs, plain_ids, similarities
from uwml_core.losses.fused import fused_infonce_terms
from uwml_core.losses.logits import Logits
from uwml_core.losses.memory import MemoryQueue
from uwml_core.losses.report import StepTensors
from uwml_core.losses.similarity import row_norms, same_label_mask, unit_rows
from uwml_core.losses.weigh import DirectionWeight, Weighing, weigh
from uwml_core.weighting import UWMLConfig


class Batch(NamedTuple):
    """What a call brings.

    Attributes:
        image, text: ``[B, D]`` features, float32 or float64, any length.
        labels: ``[B]`` int64.
        numbered: whether they are running numbers, so that no two are equal.
        item_ids: of the pairs as given, None where unknown.
    """

    image: torch.Tensor
    text: torch.Tensor
    labels: torch.Tensor
    numbered: bool
    item_ids: Any

    def claim(self, call: Mapping[str, Any]) -> Claim:
        """What other processes hear of it before they gather it; ``call`` as in ``Claim``."""
        shape, dtype = tuple(self.image.shape), str(self.image.dtype)
        return Claim(shape, dtype, self.numbered, plain_ids(self.item_ids, shape[0]), call)

    def same_label(self) -> torch.Tensor | None:
        """True where two pairs are no negatives of each other, ``[B, B]``; None where no two are."""
        return None if self.numbered else same_label_mask(self.labels)


class Measure(NamedTuple):
    """How a loss looks at a batch.

    Attributes:
        config: of the loss.
        memory: its queue.
        peers: the processes that share the batch.
        fused: whether the fused path computes this loss where nothing but the batch is a candidate.
        detach: False lets gradient flow through the weights.
    """

    config: UWMLConfig
    memory: MemoryQueue
    peers: OneProcess
    fused: bool
    detach: bool

    def step(self, batch: Batch, claims: list[Claim], logits: Logits, steepness: float) -> StepTensors:
        """Terms and weights of a batch, direction weights aside.

        Args:
            batch: of this process.
            claims: of all processes; of no use where it is alone.
            logits: scale and bias.
            steepness: of the curve at this stage.
        """
        if self.fused and self.peers.size == 1:
            terms, norms = fused_infonce_terms(batch.image, batch.text, batch.same_label(), logits.scale)
            weighted = weigh(terms, self._weighing(steepness))
            return StepTensors(terms, weighted, norms, batch.labels, batch.numbered, logits)
        units = unit_rows(batch.image), unit_rows(batch.text)
        further, whole = self._further(units, batch, claims)
        same = batch.same_label()
        if same is None:
            same = torch.eye(len(batch.labels), dtype=torch.bool, device=batch.labels.device)
        candidates = similarities(units, same, further, batch.labels, numbered=batch.numbered)
        sides = both_directions(*candidates, self.config)
        terms = base_terms(sides, self.config, *logits, detach=self.detach, peers=self.peers)
        return StepTensors(
            terms=terms,
            weighted=weigh(terms, self._weighing(steepness)),
            norms=row_norms(batch.image.detach(), batch.text.detach()),
            labels=batch.labels,
            distinct=batch.numbered,
            logits=logits,
            sides=sides,
            further=further,
            whole=whole,
            peers=self.peers,
        )

    def _further(
        self, units: tuple[torch.Tensor, torch.Tensor], batch: Batch, claims: list[Claim]
    ) -> tuple[tuple[FurtherPairs, ...], FurtherPairs | None]:
        """Candidates behind the batch, and what the memory may keep of this step."""
        memory = self.memory.remembered(batch.image)
        old = () if memory is None else (memory,)
        gathered = self.peers.gather(units, batch.labels, claims)
        if gathered is not None:
            others, whole = gathered
            return (others, *old), whole
        if not self.config.memory_batches:
            return old, None
        return old, further_pairs(units, batch.labels, batch.item_ids, numbered=batch.numbered)

    def weighed(self, step: StepTensors, steepness: float, direction_weight: DirectionWeight) -> StepTensors:
        """The step with weights that hold its direction weights."""
        return step._replace(weighted=weigh(step.terms, self._weighing(steepness, direction_weight)))

    def _weighing(self, steepness: float, direction_weight: DirectionWeight = (0.5, 0.5)) -> Weighing:
        return Weighing(self.config, steepness, direction_weight, self.detach, self.peers)
