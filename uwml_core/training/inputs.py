"""From a data set to what the encoders take: pictures and words, or the features of frozen encoders."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from uwml_core.data import PairDataset
from uwml_core.data.features import FeatureRows
from uwml_core.training.batches import BatchSource, Corpus
from uwml_core.training.config import ModelConfig, TrainConfig
from uwml_core.training.distributed import Processes
from uwml_core.training.prefetch import PrefetchedBatches
from uwml_core.training.pretrained.features import picture_features, text_features
from uwml_core.training.pretrained.learning import fine_tuned_corpus


def corpus_of(dataset: PairDataset, model: ModelConfig, *, progress: bool = False) -> Corpus:
    """The corpus of a data set, after frozen encoders or for learning ones where some are named.

    Args:
        dataset: the data.
        model: names the encoders.
        progress: show a bar on standard error while features are computed.

    Raises:
        ValueError: as ``picture_features``, ``text_features`` and ``fine_tuned_corpus``.
        OSError: if the cache folder cannot be written.
    """
    if model.fine_tune:
        return fine_tuned_corpus(dataset, model.image_encoder, model.text_encoder)
    if model.image_encoder is not None:
        values = picture_features(dataset, model.image_encoder, progress=progress)
        rows = FeatureRows([values], np.arange(len(dataset), dtype=np.int64))
        dataset = dataclasses.replace(dataset, features=rows)
    if model.text_encoder is None:
        return Corpus(dataset)
    return Corpus(dataset, partial(text_features, name=model.text_encoder, progress=progress))


def batches_of(
    dataset: PairDataset, config: TrainConfig, processes: Processes, *, progress: bool = False
) -> BatchSource | PrefetchedBatches:
    """The batches that one of the processes sees, made ahead by workers where the configuration says so.

    Args:
        dataset: the data.
        config: of the run.
        processes: those that train together.
        progress: show a bar on standard error while features are computed.

    Raises:
        ValueError: for a batch size that does not divide, and as ``corpus_of``.
        OSError: as ``corpus_of``.
    """
    source = BatchSource(
        corpus_of(dataset, config.model, progress=progress),
        dataset.rows("train"),
        batch_size=config.data.batch_size,
        seed=config.train.seed,
        rank=processes.rank,
        processes=processes.size,
        chunks=config.loss.accumulate_batches,
    )
    workers = config.data.workers
    return (
        PrefetchedBatches(source, workers, config.train.epochs * source.steps_per_epoch)
        if workers
        else source
    )
