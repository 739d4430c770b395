"""The nearest wrong candidates of the probes, exact and among a pool that stays the same.

Shapes: Q queries, C candidates, D dimensions, P probes, k candidates kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data import CaptionedItems
from uwml_core.runlog.writer import Nearest
from uwml_core.training.probes import probe_rows

NEAREST = 5
# Embedding more pictures than this would take a noticeable share of an epoch on one processor.
POOL = 4_000
_CHUNK = 512

Ints = npt.NDArray[np.int64]
# Similarities of some probes, given as a slice of them, to these places of the pool: [Q, C].
Similar = Callable[[slice, torch.Tensor], torch.Tensor]


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
    return _nearest_of(lambda part: queries[part] @ candidates.T, query_labels, candidate_labels, k)


def _nearest_of(
    similar: Callable[[slice], torch.Tensor],
    query_labels: torch.Tensor,
    candidate_labels: torch.Tensor,
    k: int = NEAREST,
) -> tuple[torch.Tensor, torch.Tensor]:
    parts = [
        _nearest(similar(part), query_labels[part, None] == candidate_labels, k)
        for part in (slice(start, start + _CHUNK) for start in range(0, max(len(query_labels), 1), _CHUNK))
    ]
    places, similarities = zip(*parts, strict=True)
    return torch.cat(places), torch.cat(similarities)


def _nearest(similarity: torch.Tensor, same: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    similarity = torch.where(same, -torch.inf, similarity).nan_to_num_(-torch.inf, torch.inf, -torch.inf)
    values, places = similarity.topk(min(k, similarity.shape[1]), dim=1)
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

    def __init__(self, dataset: CaptionedItems, probes: Ints, rows: Ints, size: int = POOL) -> None:
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
        n = self._probes
        return self.find(
            lambda part, places: pictures[:n][part] @ texts[places].T,
            lambda part, places: texts[:n][part] @ pictures[places].T,
            (pictures[:n] * texts[:n]).sum(dim=1),
        )

    def find(self, there: Similar, back: Similar, positive: torch.Tensor) -> tuple[Nearest, Nearest]:
        """As ``search``, from similarities that are asked for probe by probe.

        Args:
            there: of some probes' pictures to the captions at these places of the pool.
            back: of some probes' captions to the pictures there.
            positive: of each probe's picture to its caption, [P].
        """
        return (
            self._found(there, self._texts, positive),
            self._found(back, torch.arange(len(self.pool)), positive),
        )

    def _found(self, similar: Similar, allowed: torch.Tensor, positive: torch.Tensor) -> Nearest:
        labels = self._labels[: self._probes], self._labels[allowed]
        place, similarity = _nearest_of(lambda part: similar(part, allowed), *labels)
        return Nearest(self._item_ids[allowed[place].numpy()], similarity, positive)
