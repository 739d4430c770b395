"""Data that make a run ill: captions of other items, captions without labels, too few items."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data import PairDataset, swap_captions

TRAIN_ITEMS, VAL_ITEMS, SIZE, CAPTIONS = 960, 240, 16, 3
ALIKE = 8

Ints = npt.NDArray[np.int64]
DataFault = Callable[[PairDataset, int], PairDataset]


def small(dataset: PairDataset, train: int = TRAIN_ITEMS, val: int = VAL_ITEMS) -> PairDataset:
    """The same few rows for every seed, pictures at 16 px and three captions: a run takes seconds.

    Args:
        dataset: pictures, not clips.
        train, val: rows of each split at most.
    """
    order = np.random.default_rng(0).permutation(len(dataset))
    parts = [order[np.isin(order, dataset.rows(split))][:n] for split, n in (("train", train), ("val", val))]
    return chosen(dataset, np.sort(np.concatenate(parts)))


def whole(dataset: PairDataset) -> PairDataset:
    """All training rows and few others, reduced as in ``small``."""
    return small(dataset, train=len(dataset))


def few(dataset: PairDataset) -> PairDataset:
    """So few training rows that all of them are probes, and many others, reduced as in ``small``."""
    return small(dataset, train=128, val=4 * VAL_ITEMS)


def several(dataset: PairDataset) -> PairDataset:
    """All training rows of a few labels, and few others, reduced as in ``small``."""
    train = dataset.rows("train")
    labels = np.random.default_rng(0).permutation(np.unique(dataset.labels[train]))[: TRAIN_ITEMS // 3]
    kept = np.isin(dataset.labels, labels) & np.isin(np.arange(len(dataset)), train)
    others = np.random.default_rng(0).permutation(dataset.rows("val"))[:VAL_ITEMS]
    return chosen(dataset, np.sort(np.concatenate([np.flatnonzero(kept), others])))


def chosen(dataset: PairDataset, rows: Ints) -> PairDataset:
    """Some rows of a data set, their pictures at 16 px, with three captions at most."""
    pictures = dataset.pictures[torch.from_numpy(rows)]
    factor = max(1, pictures.shape[-1] // SIZE)
    if factor > 1:
        pictures = torch.nn.functional.avg_pool2d(pictures.float(), factor).round().to(torch.uint8)
    lists: dict[str, Any] = {
        name: _taken(getattr(dataset, name), rows) for name in ("item_keys", "splits", "groups", "captions")
    }
    lists["captions"] = [captions[:CAPTIONS] for captions in lists["captions"]]
    encoded = None if dataset.encoded is None else _taken(dataset.encoded, rows)
    return dataclasses.replace(
        dataset, item_ids=dataset.item_ids[rows], encoded=encoded, pictures=pictures, **lists
    )


def _taken(values: Sequence[Any], rows: Ints) -> list[Any]:
    return [values[row] for row in rows]


def shuffled(share: float) -> DataFault:
    """Captions of this share of the training rows change places among them."""
    return lambda dataset, seed: swap_captions(dataset, share, seed)


def duplicated(dataset: PairDataset, seed: int) -> PairDataset:
    """Half of the training rows get the captions of another, eight rows each time, and keep their labels."""
    train = np.random.default_rng([seed, 2]).permutation(dataset.rows("train"))
    captions = list(dataset.captions)
    for start in range(0, len(train) // 2 // ALIKE * ALIKE, ALIKE):
        for row in train[start : start + ALIKE]:
            captions[row] = dataset.captions[train[start]]
    return dataclasses.replace(dataset, captions=captions)


def unlabelled(dataset: PairDataset, seed: int) -> PairDataset:
    """Every row gets a label of its own, also where several rows show the same thing."""
    keys = [f"{key}#{number}" for number, key in enumerate(dataset.item_keys)]
    return dataclasses.replace(dataset, item_keys=keys)
