"""The nearest wrong candidates, against nested loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from uwml_core.data import PairDataset
from uwml_core.training.neighbors import NeighborSearch, nearest_wrong


def slow(
    queries: torch.Tensor, candidates: torch.Tensor, labels: list[int], others: list[int], k: int
) -> list:
    found = []
    for query, label in zip(queries.tolist(), labels, strict=True):
        scored = [
            (sum(a * b for a, b in zip(query, candidate, strict=True)), place)
            for place, candidate in enumerate(candidates.tolist())
            if others[place] != label
        ]
        found.append(sorted(scored, reverse=True)[:k])
    return found


def unit(n: int, seed: int, dim: int = 6) -> torch.Tensor:
    values = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(values, dim=1)


def pairs_of(rows: int, labels: int) -> PairDataset:
    """Rows whose items take turns, so that every label has rows with the same first caption."""
    keys = [f"item {k % labels}" for k in range(rows)]
    return PairDataset(
        name="test",
        modality="image",
        item_ids=np.arange(rows),
        item_keys=keys,
        splits=["train"] * rows,
        groups=[f"group {k % 2}" for k in range(rows)],
        captions=[[key, f"{key} again"] for key in keys],
        encoded=[[b""]] * rows,
        pictures=torch.zeros(rows, 3, 2, 2, dtype=torch.uint8),
    )


def test_nearest_wrong_equals_nested_loops_beyond_one_chunk() -> None:
    queries, candidates = unit(700, 0), unit(60, 1)
    random = np.random.default_rng(0)
    labels, others = random.integers(0, 9, 700).tolist(), random.integers(0, 9, 60).tolist()
    place, similarity = nearest_wrong(queries, candidates, torch.tensor(labels), torch.tensor(others))
    expected = slow(queries, candidates, labels, others, 5)
    assert place.tolist() == [[p for _, p in row] for row in expected]
    np.testing.assert_allclose(similarity.numpy(), [[s for s, _ in row] for row in expected], atol=1e-12)


def test_fewer_wrong_candidates_than_asked_for_leave_nan() -> None:
    axes = torch.eye(3)
    _, similarity = nearest_wrong(axes, axes, torch.tensor([0, 0, 1]), torch.tensor([0, 0, 1]), k=5)
    assert similarity.isnan().sum(dim=1).tolist() == [4, 4, 3]


def test_candidate_that_is_not_a_number_is_none() -> None:
    candidates = torch.eye(3)
    candidates[1] = torch.nan
    place, similarity = nearest_wrong(
        torch.eye(3)[:1], candidates, torch.tensor([0]), torch.tensor([0, 1, 2]), k=2
    )
    assert place[0, 0] == 2
    assert similarity.isnan().tolist() == [[False, True]]


@pytest.mark.parametrize("size", [2, 5, 100])
def test_pool_holds_the_probes_first_and_keeps_its_size(size: int) -> None:
    dataset = pairs_of(12, 12)
    probes = np.array([3, 7], dtype=np.int64)
    search = NeighborSearch(dataset, probes, np.arange(12), size)
    assert search.pool[:2].tolist() == [3, 7]
    assert len(set(search.pool.tolist())) == len(search.pool) == min(size, 12)


def test_equal_caption_of_one_label_is_one_candidate() -> None:
    dataset = pairs_of(8, 2)
    rows = np.arange(8)
    vectors = unit(8, 3).float()
    there, back = NeighborSearch(dataset, rows, rows).search(vectors, unit(8, 4).float())
    known = ~torch.isnan(there.similarities).numpy()
    for row in range(8):
        wrong = there.negative_item_ids[row][known[row]]
        shown = [(int(dataset.labels[w]), dataset.captions[w][0]) for w in wrong]
        assert len(set(shown)) == len(shown)
        assert int(dataset.labels[row]) not in {label for label, _ in shown}
    # four pictures of the other label, but one caption
    assert (~torch.isnan(back.similarities)).sum(dim=1).tolist() == [4] * 8
    assert known.sum(axis=1).tolist() == [1] * 8
