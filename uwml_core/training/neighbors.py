"""The nearest wrong candidates of the probes, exact and among a pool that stays the same.

Shapes: Q queries, C candidates, D dimensions, P probes, k candidates kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data import PairDataset
from uwml_core.runlog.writer import Nearest
from uwml_core.training.probes import probe_rows

NEAREST = 5
# Embedding more pictures than this would take a noticeable share of an epoch on one processor.
POOL = 4_000
_CHUNK = 512

Ints = npt.NDArray[np.int64]


def nearest_wrong(
    queries: torch.Tensor,
    candidates: torch.Tensor,
    query_labels: torch.Tensor,
    candidate_labels: torch.Tensor,
    k: int = NEAREST,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Most similar candidates of another label, by a full comparison.

    Args:
        queries, candidates: unit-norm float [Q, D] and [C, D].
        query_labels, candidate_labels: int64 [Q] and [C].
        k: how many.

    Returns:
        Positions int64 [Q, k] and similarities [Q, k], descending; similarity NaN, and position of no
        meaning, where there are fewer, a similarity that is not a number counting as none.

    Example:
        >>> axes, labels = torch.eye(3), torch.tensor([0, 1, 2])
        >>> place, similarity = nearest_wrong(axes[:1], axes + axes[1], labels[:1], labels, k=1)
        >>> place.item(), similarity.item()
        (1, 0.0)
    """
    parts = [
        _nearest(queries[part], candidates, query_labels[part, None] == candidate_labels, k)
        for part in (slice(start, start + _CHUNK) for start in range(0, max(len(queries), 1), _CHUNK))
    ]
    places, similarities = zip(*parts, strict=True)
    return torch.cat(places), torch.cat(similarities)


def _nearest(
    queries: torch.Tensor, candidates: torch.Tensor, same: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    similarity = torch.where(same, -torch.inf, queries @ candidates.T).nan_to_num_(
        -torch.inf, torch.inf, -torch.inf
    )
    values, places = similarity.topk(min(k, len(candidates)), dim=1)
    missing = k - values.shape[1]
    values = torch.nn.functional.pad(values, (0, missing), value=-torch.inf)
    return torch.nn.functional.pad(places, (0, missing)), values.masked_fill(values == -torch.inf, torch.nan)


class NeighborSearch:
    """Finds each probe's nearest wrong captions and pictures in a pool.

    A caption that several rows of one label share is one candidate, under the first of them. The first
    caption stands for each item.

    Args:
        dataset: the data.
        probes: int64 [P], rows whose candidates are sought.
        rows: int64, further rows that may be candidates.
        size: most rows in the pool; the probes are in it, the others a fixed sample.

    Attributes:
        pool: int64 rows of the pool, the probes first.
    """

    def __init__(self, dataset: PairDataset, probes: Ints, rows: Ints, size: int = POOL) -> None:
        others = np.setdiff1d(rows, probes)
        room = max(size - len(probes), 0)
        chosen = probe_rows(dataset, others, room) if room and len(others) else others[:0]
        self._probes = len(probes)
        self.pool: Ints = np.concatenate([probes, chosen])
        self._item_ids = dataset.item_ids[self.pool]
        self._labels = torch.from_numpy(dataset.labels[self.pool].astype(np.int64))
        first: dict[tuple[int, str], int] = {}
        for place, row in enumerate(self.pool):
            first.setdefault((int(dataset.labels[row]), dataset.captions[row][0]), place)
        self._texts = torch.tensor(list(first.values()), dtype=torch.int64)

    def search(self, pictures: torch.Tensor, texts: torch.Tensor) -> tuple[Nearest, Nearest]:
        """Nearest wrong captions of each probe's picture, nearest wrong pictures of its caption.

        Args:
            pictures, texts: unit-norm float [len(pool), D], of the pool in its order.
        """
        n, every = self._probes, torch.arange(len(self.pool))
        positive = (pictures[:n] * texts[:n]).sum(dim=1)
        return (
            self._found(pictures[:n], texts, self._texts, positive),
            self._found(texts[:n], pictures, every, positive),
        )

    def _found(
        self, queries: torch.Tensor, pool: torch.Tensor, allowed: torch.Tensor, positive: torch.Tensor
    ) -> Nearest:
        labels = self._labels[: self._probes], self._labels[allowed]
        place, similarity = nearest_wrong(queries, pool[allowed], *labels)
        return Nearest(self._item_ids[allowed[place].numpy()], similarity, positive)
