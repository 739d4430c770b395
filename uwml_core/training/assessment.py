"""What a trained run retrieves on a split that it was not chosen on, whole or in folds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data import PairDataset
from uwml_core.training.batches import Corpus
from uwml_core.training.checkpoint import load_checkpoint
from uwml_core.training.config import TrainConfig
from uwml_core.training.embedding import embed_pictures, embed_texts
from uwml_core.training.encoders import TwoTower, build_model
from uwml_core.training.evaluation import Metric, Retrieval, caption_candidates, retrieve, rsum
from uwml_core.training.inputs import corpus_of
from uwml_core.training.run import load_data
from uwml_core.weighting import direction_names

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Fold:
    """Retrieval within one part of a split.

    Attributes:
        items: number of items.
        metrics: as for ``log_eval``, rsum last.
        results: ranks of both directions, by direction.
        queries: item ids of the queries of both directions, by direction.
    """

    items: int
    metrics: list[Metric]
    results: dict[str, Retrieval]
    queries: dict[str, Ints]


def assess(run: Path, *, split: str = "test", folds: int = 1, data: str | None = None) -> list[Fold]:
    """Evaluate a run's last checkpoint on a split.

    COCO's "1K" figures are the mean over five folds of 1,000 images each, its "5K" one fold of all.

    Args:
        run: folder of the run.
        split: part of the data.
        folds: how many equal, contiguous parts to rank within.
        data: where the data lie now; None where they were.

    Raises:
        ValueError: without a checkpoint, for other data than the run's, or folds that do not divide it.
    """
    checkpoint = load_checkpoint(run)
    config = TrainConfig.from_dict(checkpoint.config)
    dataset = load_data(config.data, data, decoded=config.model.image_encoder is None)
    if dataset.fingerprint != checkpoint.fingerprint:
        raise ValueError(f"data {dataset.name!r} is not what run {run.name!r} was trained on")
    rows = dataset.rows(split)
    if not 1 <= folds <= len(rows) or len(rows) % folds:
        raise ValueError(f"folds={folds} does not divide the {len(rows)} items of {split!r} equally")
    corpus = corpus_of(dataset, config.model)
    sizes, backbones = corpus.feature_sizes, corpus.backbones
    model = build_model(config.model.kind, config.model.dim, config.train.seed, sizes, backbones)
    model.load_state_dict(checkpoint.model)
    model.eval()
    directions = direction_names(dataset.modalities)
    with torch.inference_mode():
        return [_fold(model, corpus, dataset, part, directions) for part in np.split(rows, folds)]


def _fold(
    model: TwoTower, corpus: Corpus, dataset: PairDataset, rows: Ints, directions: tuple[str, str]
) -> Fold:
    candidates = caption_candidates(dataset, rows)
    results = retrieve(
        embed_pictures(model, corpus, rows),
        embed_texts(model, corpus, candidates.rows, candidates.captions),
        dataset.labels[rows].astype(np.int64),
        candidates,
    )
    found = dict(zip(directions, results, strict=True))
    metrics = [row for direction, result in found.items() for row in result.metrics(direction)]
    queries = dict(zip(directions, (dataset.item_ids[rows], dataset.item_ids[candidates.rows]), strict=True))
    return Fold(items=len(rows), metrics=[*metrics, rsum(metrics)], results=found, queries=queries)


def summary(folds: list[Fold]) -> list[tuple[str | None, str, float, float, int]]:
    """Mean and standard deviation of each metric over the folds.

    Returns:
        Direction (None for both), metric, mean, standard deviation (0 for one fold) and queries of a fold.
    """
    rows = []
    for place, (direction, metric, _, queries, _) in enumerate(folds[0].metrics):
        values = np.array([fold.metrics[place][2] for fold in folds])
        spread = float(values.std(ddof=1)) if len(folds) > 1 else 0.0
        rows.append((direction, metric, float(values.mean()), spread, queries))
    return rows
