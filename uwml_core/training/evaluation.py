"""Ranks of true partners among all candidates, and what is reported of them.

Shapes: Q queries, C candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data import CaptionedItems

RECALL_AT = (1, 5, 10)
_CHUNK = 1024

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
# Similarities of some queries, given as a slice of them, to all candidates: [Q, C].
Similar = Callable[[slice], torch.Tensor]
Metric = tuple[str | None, str, float, int, float | None]


def tie_aware_ranks(similarity: torch.Tensor, positive: torch.Tensor) -> tuple[Floats, Flags]:
    """Rank of each query's best positive: 1 + negatives above + tied negatives / (1 + tied positives).

    With one positive this is the expected rank when ties are broken at random. A query with a
    similarity that is not a number, or without any positive, has no rank.

    Args:
        similarity: floating [Q, C].
        positive: bool [Q, C], which candidates are true partners.

    Returns:
        Ranks, float64 [Q], NaN where there is none; whether a negative ties with the best positive, [Q].

    Example:
        >>> similarity, positive = torch.tensor([[0.5, 0.5, 0.9]]), torch.tensor([[True, False, False]])
        >>> ranks, tied = tie_aware_ranks(similarity, positive)
        >>> ranks.tolist(), tied.tolist()
        ([2.5], [True])
    """
    best = similarity.masked_fill(~positive, -torch.inf).amax(dim=1, keepdim=True)
    equal = similarity == best
    above = ((similarity > best) & ~positive).sum(dim=1)
    tied_negatives, tied_positives = (equal & ~positive).sum(dim=1), (equal & positive).sum(dim=1)
    ranks = 1.0 + above + tied_negatives.to(torch.float64) / (1.0 + tied_positives)
    unknown = similarity.isnan().any(dim=1) | ~positive.any(dim=1)
    ranks = ranks.masked_fill(unknown, torch.nan)
    return ranks.numpy(), ((tied_negatives > 0) & ~unknown).numpy()


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionCandidates:
    """Unique (label, caption text) of some rows, each under the first row that has it.

    Attributes:
        rows, captions: int64 [C], row of the data set and index within it.
        labels: int64 [C].
        shared: per text that several labels have, its candidates and these labels.
    """

    rows: Ints
    captions: Ints
    labels: Ints
    shared: tuple[tuple[Ints, Ints], ...]

    def positives(self, labels: Ints) -> torch.Tensor:
        """Which captions are true for pictures of these labels, bool [len(labels), C].

        A caption that several labels share is true for all of them.
        """
        positive = labels[:, None] == self.labels[None, :]
        for candidates, owners in self.shared:
            positive[np.ix_(np.isin(labels, owners), candidates)] = True
        return torch.from_numpy(positive)


def caption_candidates(dataset: CaptionedItems, rows: Ints) -> CaptionCandidates:
    """Candidates among the captions of some rows of a data set."""
    first: dict[tuple[int, str], tuple[int, int]] = {}
    by_text: dict[str, list[int]] = {}
    for row in rows:
        for caption, text in enumerate(dataset.captions[row]):
            key = (int(dataset.labels[row]), text)
            if key not in first:
                by_text.setdefault(text, []).append(len(first))
                first[key] = (int(row), caption)
    places = np.array(list(first.values()), dtype=np.int64).reshape(-1, 2)
    labels = np.array([label for label, _ in first], dtype=np.int64)
    several = [np.array(group, dtype=np.int64) for group in by_text.values() if len(group) > 1]
    shared = tuple((group, labels[group]) for group in several)
    return CaptionCandidates(rows=places[:, 0], captions=places[:, 1], labels=labels, shared=shared)


@dataclass(frozen=True, kw_only=True, eq=False)
class Retrieval:
    """Ranks of one direction: float64 [Q], and whether each is tied [Q]."""

    ranks: Floats
    tied: Flags

    def metrics(self, direction: str) -> list[Metric]:
        """Rows for ``log_eval``: (direction, metric, value, queries, tied share); R@K in percent.

        A query without a rank misses at every K.
        """
        n, tied_share = len(self.ranks), float(self.tied.mean())
        values = {f"R@{k}": 100.0 * float((self.ranks <= k).mean()) for k in RECALL_AT}
        values |= {"median_rank": float(np.median(self.ranks)), "mean_rank": float(self.ranks.mean())}
        return [(direction, metric, value, n, tied_share) for metric, value in values.items()]


def retrieve(
    pictures: torch.Tensor, texts: torch.Tensor, labels: Ints, candidates: CaptionCandidates
) -> tuple[Retrieval, Retrieval]:
    """Rank all captions for each picture and all pictures for each caption.

    Args:
        pictures: unit-norm float [P, D].
        texts: unit-norm float [C, D], one per candidate.
        labels: int64 [P], of the pictures.
        candidates: the captions.

    Returns:
        Picture to caption, and caption to picture.
    """
    return rank_both(
        lambda part: pictures[part] @ texts.T, lambda part: texts[part] @ pictures.T, labels, candidates
    )


def rank_both(
    there: Similar, back: Similar, labels: Ints, candidates: CaptionCandidates
) -> tuple[Retrieval, Retrieval]:
    """As ``retrieve``, from similarities that are asked for query by query.

    Args:
        there: of some pictures to all captions.
        back: of some captions to all pictures.
        labels: int64 [P], of the pictures.
        candidates: the captions.
    """
    pictures = [
        tie_aware_ranks(there(part), candidates.positives(labels[part])) for part in _slices(len(labels))
    ]
    captions = [
        tie_aware_ranks(back(part), _taken(candidates, part).positives(labels).T)
        for part in _slices(len(candidates.rows))
    ]
    return _joined(pictures), _joined(captions)


def rsum(metrics: list[Metric]) -> Metric:
    """Sum of R@1, R@5 and R@10 over both directions, out of 600."""
    recalls = [metric for metric in metrics if metric[1].startswith("R@")]
    queries = sum({metric[0]: metric[3] for metric in recalls}.values())
    return (None, "rsum", sum(metric[2] for metric in recalls), queries, None)


def _slices(n: int) -> list[slice]:
    return [slice(start, start + _CHUNK) for start in range(0, n, _CHUNK)]


def _taken(candidates: CaptionCandidates, part: slice) -> CaptionCandidates:
    chosen = np.arange(len(candidates.rows))[part]
    shared = ((group[np.isin(group, chosen)] - chosen[0], owners) for group, owners in candidates.shared)
    return CaptionCandidates(
        rows=candidates.rows[part],
        captions=candidates.captions[part],
        labels=candidates.labels[part],
        shared=tuple((group, owners) for group, owners in shared if len(group)),
    )


def _joined(parts: list[tuple[Floats, Flags]]) -> Retrieval:
    return Retrieval(
        ranks=np.concatenate([ranks for ranks, _ in parts]), tied=np.concatenate([tied for _, tied in parts])
    )
