"""What an evaluation and its probes leave in the run log, whoever embedded them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data import CaptionedItems
from uwml_core.runlog.writer import Nearest, RunLogger
from uwml_core.training.evaluation import CaptionCandidates, Metric, Retrieval, rsum

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class RetrievalLog:
    """Logs what was found about a data set at one moment of training.

    Attributes:
        logger: the run log.
        dataset: the items.
        step, epoch: last completed step and its epoch, -1 before training.
    """

    logger: RunLogger
    dataset: CaptionedItems
    step: int
    epoch: int

    def retrieval(
        self, split: str, rows: Ints, candidates: CaptionCandidates, results: tuple[Retrieval, Retrieval]
    ) -> list[Metric]:
        """Log metrics and ranks of a split.

        Args:
            split: its name.
            rows: int64 [P], the pictures.
            candidates: the captions.
            results: of both directions.

        Returns:
            The metrics, rsum last.
        """
        found = dict(zip(self.logger.directions, results, strict=True))
        metrics = [row for direction, result in found.items() for row in result.metrics(direction)]
        metrics.append(rsum(metrics))
        self.logger.log_eval(step=self.step, epoch=self.epoch, split=split, metrics=metrics)
        queries = ((rows, None), (candidates.rows, candidates.captions))
        for (direction, result), (query, captions) in zip(found.items(), queries, strict=True):
            self.logger.log_ranks(
                step=self.step,
                epoch=self.epoch,
                split=split,
                direction=direction,
                item_ids=self.dataset.item_ids[query],
                captions=captions,
                ranks=result.ranks,
            )
        return metrics

    def snapshot(
        self, probes: Ints, splits: Sequence[str], modalities: tuple[str, str], *embeddings: torch.Tensor
    ) -> None:
        """Log the probes' embeddings of both modalities, unit-norm float [P, D] each."""
        self.logger.log_snapshot(
            step=self.step,
            epoch=self.epoch,
            embeddings=dict(zip(modalities, embeddings, strict=True)),
            item_ids=self.dataset.item_ids[probes],
            labels=self.dataset.labels[probes],
            splits=splits,
        )

    def neighbors(self, probes: Ints, splits: Sequence[str], nearest: tuple[Nearest, Nearest]) -> None:
        """Log the probes' nearest wrong candidates of both directions."""
        self.logger.log_neighbors(
            step=self.step,
            epoch=self.epoch,
            nearest=dict(zip(self.logger.directions, nearest, strict=True)),
            item_ids=self.dataset.item_ids[probes],
            splits=splits,
        )
