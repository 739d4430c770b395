"""Wrong pairs on purpose: the captions of some training rows change places."""

from __future__ import annotations

import dataclasses

import numpy as np

from uwml_core.data.dataset import PairDataset


def swap_captions(dataset: PairDataset, share: float, seed: int = 0) -> PairDataset:
    """Pairs among which a share of the training rows has the captions of another training row.

    What studies of noisy correspondence do (Z. Huang et al., Learning with Noisy Correspondence for
    Cross-modal Matching, NeurIPS 2021). Rows of other splits stay as they are.

    Args:
        dataset: pairs that are taken to be right.
        share: of the rows of its training split, in [0, 1], rounded to whole rows.
        seed: which rows, and whose captions each gets.

    Returns:
        The same rows; the data set itself where nothing changes.

    Raises:
        ValueError: if ``share`` is no share.

    Example:
        >>> swap_captions(None, 1.5)
        Traceback (most recent call last):
        ValueError: share=1.5 is out of range; expected a number in [0, 1]
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share={share!r} is out of range; expected a number in [0, 1]")
    if not share:
        return dataset
    train = dataset.rows("train")
    wrong = np.random.default_rng([seed, 1]).permutation(train)[: round(share * len(train))]
    captions = list(dataset.captions)
    for row, other in zip(wrong, np.roll(wrong, 1), strict=True):
        captions[row] = dataset.captions[other]
    return dataclasses.replace(dataset, captions=captions)
