"""What a run's log says of its data before the first step, and what observes the training."""

from __future__ import annotations

import warnings

from uwml_core.data import PairDataset
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.batches import Corpus
from uwml_core.training.config import TrainConfig
from uwml_core.training.observer import Observer


def observer_of(config: TrainConfig, dataset: PairDataset, corpus: Corpus, logger: RunLogger) -> Observer:
    """Tell the log of the data, and make what observes training on it.

    Args:
        config: of the run.
        dataset: the data.
        corpus: the same as the encoders take it.
        logger: the run log.

    Raises:
        DataError: if the split to evaluate has fewer than two different items.
    """
    if dataset.left_out is not None:
        _tell(logger, "data", dataset.left_out)
    _log_items(logger, dataset)
    rows, split = dataset.rows("train"), dataset.evaluated_split(config.data.eval_split)
    if split not in ("val", config.data.eval_split):
        _tell(logger, "data", f"there is no split 'val': {split!r} is evaluated after each epoch")
    if config.data.batch_size > len(rows):
        said = f"data.batch_size={config.data.batch_size} is more than the {len(rows)} training pairs"
        _tell(logger, "data", f"{said}: each step takes all of them")
    return Observer(corpus, rows, dataset.rows(split), logger, config.train.snapshot_items, split=split)


def _log_items(logger: RunLogger, dataset: PairDataset) -> None:
    try:
        logger.log_items(
            item_ids=dataset.item_ids.tolist(),
            item_keys=dataset.item_keys,
            labels=dataset.labels.tolist(),
            captions=dataset.captions,
            groups=dataset.groups,
            splits=dataset.splits,
            thumbnails=dataset.thumbnails(),
            fingerprint=dataset.fingerprint,
        )
    except OSError as error:
        # pictures in the app are worth less than the training
        _tell(logger, "items", f"items cannot be written: {error}")


def _tell(logger: RunLogger, kind: str, message: str) -> None:
    logger.log_event(kind, message, level="warning")
    warnings.warn(message, stacklevel=3)
