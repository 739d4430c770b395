"""Evaluation, snapshots and nearest wrong candidates of a model while it trains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.runlog.writer import RunLogger
from uwml_core.training.batches import Corpus
from uwml_core.training.embedding import embed_pictures, embed_texts
from uwml_core.training.encoders import TwoTower
from uwml_core.training.evaluation import caption_candidates, retrieve
from uwml_core.training.neighbors import NeighborSearch
from uwml_core.training.probes import PROBES_PER_SPLIT, probe_rows
from uwml_core.training.retrieval_log import RetrievalLog

Ints = npt.NDArray[np.int64]


class Observer:
    """Logs retrieval on one split, embeddings of the probes and what they are confused with.

    Args:
        corpus: the data.
        train_rows, rows: int64 rows of the training split and of the one that is evaluated.
        logger: the run log.
        snapshot_items: probes of each split.
        split: name of the evaluated one.
    """

    def __init__(
        self,
        corpus: Corpus,
        train_rows: Ints,
        rows: Ints,
        logger: RunLogger,
        snapshot_items: int = PROBES_PER_SPLIT,
        *,
        split: str = "val",
    ) -> None:
        self._corpus, self._rows, self._logger, self._split = corpus, rows, logger, split
        self._candidates = caption_candidates(corpus.dataset, rows)
        # what is evaluated may be what is trained on, for want of anything else
        others = rows if split != "train" else rows[:0]
        train, held = (
            probe_rows(corpus.dataset, part, snapshot_items) if len(part) else part
            for part in (train_rows, others)
        )
        self._probes = np.concatenate([train, held])
        self._probe_splits = ["train"] * len(train) + [split] * len(held)
        self._search = NeighborSearch(corpus.dataset, self._probes, np.concatenate([train_rows, others]))

    def observe(self, model: TwoTower, *, step: int, epoch: int) -> dict[str, float]:
        """Log one evaluation, and one snapshot with its neighbors.

        Args:
            model: the encoders; put in training mode afterwards.
            step: last completed step, -1 before training.
            epoch: epoch just completed, -1 before training.

        Returns:
            R@1 in percent by direction.
        """
        model.eval()
        with torch.inference_mode():
            recalls = self._evaluate(model, step, epoch)
            self._snapshot(model, step, epoch)
        model.train()
        return recalls

    def _evaluate(self, model: TwoTower, step: int, epoch: int) -> dict[str, float]:
        labels = self._corpus.dataset.labels[self._rows].astype(np.int64)
        pictures = embed_pictures(model, self._corpus, self._rows)
        texts = embed_texts(model, self._corpus, self._candidates.rows, self._candidates.captions)
        log = RetrievalLog(logger=self._logger, dataset=self._corpus.dataset, step=step, epoch=epoch)
        results = retrieve(pictures, texts, labels, self._candidates)
        metrics = log.retrieval(self._split, self._rows, self._candidates, results)
        return {str(direction): value for direction, metric, value, _, _ in metrics if metric == "R@1"}

    def _snapshot(self, model: TwoTower, step: int, epoch: int) -> None:
        pool, n = self._search.pool, len(self._probes)
        pictures = embed_pictures(model, self._corpus, pool)
        texts = embed_texts(model, self._corpus, pool, np.zeros_like(pool))
        dataset = self._corpus.dataset
        log = RetrievalLog(logger=self._logger, dataset=dataset, step=step, epoch=epoch)
        log.snapshot(self._probes, self._probe_splits, dataset.modalities, pictures[:n], texts[:n])
        log.neighbors(self._probes, self._probe_splits, self._search.search(pictures, texts))


class Bystander:
    """Stands where an ``Observer`` does in the processes that leave observing to the first one."""

    def observe(self, model: TwoTower, *, step: int, epoch: int) -> dict[str, float]:
        """Do nothing; return no recall."""
        return {}
