"""Unit-norm embeddings of many rows, a chunk at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from uwml_core.training.batches import Corpus
from uwml_core.training.encoders import TwoTower

_CHUNK = 256

Ints = npt.NDArray[np.int64]


def embed_pictures(model: TwoTower, corpus: Corpus, rows: Ints) -> torch.Tensor:
    """Embeddings of the pictures of some rows, unit-norm float32 ``[n, D]`` on the CPU."""
    parts = [model.pictures(corpus.pictures(rows[part]).to(model.device)) for part in slices(len(rows))]
    return F.normalize(torch.cat(parts), dim=1).cpu()


def embed_texts(model: TwoTower, corpus: Corpus, rows: Ints, captions: Ints) -> torch.Tensor:
    """Embeddings of one caption of each of these rows, unit-norm float32 ``[n, D]`` on the CPU."""
    taken = (corpus.texts(rows[part], captions[part]) for part in slices(len(rows)))
    parts = [model.texts(*(values.to(model.device) for values in texts)) for texts in taken]
    return F.normalize(torch.cat(parts), dim=1).cpu()


def slices(n: int) -> list[slice]:
    """Parts of n rows that fit in memory, the same whatever is asked of them."""
    return [slice(start, start + _CHUNK) for start in range(0, n, _CHUNK)]
