"""What frozen backbones make of the data, computed once: then warm-up epochs cost their last maps alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.training.batches import Corpus
from uwml_core.training.embedding import slices
from uwml_core.training.encoders import BagOfNgrams, SmallCNN, TwoTower
from uwml_core.training.fine_tuned import FineTuned
from uwml_core.training.text import FeatureTable

Ints = npt.NDArray[np.int64]


@torch.no_grad()
def frozen_corpus(model: TwoTower, corpus: Corpus, rows: Ints) -> Corpus:
    """The corpus as the last linear maps see it: features of the backbones, in memory.

    A row takes 4 kB at 1,024 numbers. The features do not depend on the order of training, so that a
    resumed run computes the same.

    Args:
        model: its backbones frozen, in training mode or not.
        corpus: the data.
        rows: int64, rows that are trained on.
    """
    pictures, texts = model.pictures, model.texts
    if isinstance(pictures, SmallCNN | FineTuned):
        parts = [
            pictures.backbone(corpus.pictures(rows[part]).to(model.device)) for part in slices(len(rows))
        ]
        corpus = corpus.with_pictures(rows, torch.cat(parts).cpu())
    if isinstance(texts, BagOfNgrams | FineTuned):
        corpus = corpus.with_texts(FeatureTable(_text_features(texts, corpus, model.device)))
    return corpus


def _text_features(
    texts: BagOfNgrams | FineTuned, corpus: Corpus, device: torch.device
) -> npt.NDArray[np.float32]:
    numbers = np.arange(corpus.text_count, dtype=np.int64)
    taken: Sequence[tuple[torch.Tensor, ...]] = [corpus.taken(numbers[part]) for part in slices(len(numbers))]
    features = [texts.backbone(*(values.to(device) for values in part)) for part in taken]
    return torch.cat(features).cpu().numpy()
