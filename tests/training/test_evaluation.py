"""Ranks and R@K against nested loops over explicit lists."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from uwml_core.training import evaluation
from uwml_core.training.evaluation import Retrieval, caption_candidates, retrieve, rsum, tie_aware_ranks


def slow_rank(scores: list[float], positive: list[bool]) -> tuple[float, bool]:
    best = max(s for s, p in zip(scores, positive, strict=True) if p)
    above = sum(1 for s, p in zip(scores, positive, strict=True) if not p and s > best)
    tied_negatives = sum(1 for s, p in zip(scores, positive, strict=True) if not p and s == best)
    tied_positives = sum(1 for s, p in zip(scores, positive, strict=True) if p and s == best)
    return 1 + above + tied_negatives / (1 + tied_positives), tied_negatives > 0


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_ranks_equal_nested_loops_with_ties_and_several_positives(levels):
    generator = torch.Generator().manual_seed(levels)
    similarity = torch.randint(0, levels, (60, 40), generator=generator) / levels
    positive = torch.rand(60, 40, generator=generator) < 0.1
    positive[:, 0] |= ~positive.any(dim=1)
    ranks, tied = tie_aware_ranks(similarity, positive)
    expected = [slow_rank(s, p) for s, p in zip(similarity.tolist(), positive.tolist(), strict=True)]
    assert ranks.tolist() == [rank for rank, _ in expected]
    assert tied.tolist() == [is_tied for _, is_tied in expected]


def test_a_rank_is_the_mean_over_random_orders_of_the_tied():
    rng = np.random.default_rng(0)
    for positives, negatives in ((1, 4), (2, 3), (3, 7)):
        n = positives + negatives
        similarity = torch.full((1, n), 0.5)
        positive = (torch.arange(n) < positives)[None]
        first = [1 + np.argmax(rng.permutation(n) < positives) for _ in range(20_000)]
        assert tie_aware_ranks(similarity, positive)[0][0] == pytest.approx(np.mean(first), abs=0.05)


def test_a_collapsed_model_does_not_look_perfect():
    ranks, tied = tie_aware_ranks(torch.zeros(10, 10), torch.eye(10, dtype=torch.bool))
    assert (ranks == 5.5).all()
    assert tied.all()


def test_what_is_not_a_number_is_a_miss():
    similarity = torch.tensor([[math.nan, 0.1, 0.2], [0.9, 0.1, 0.2], [0.9, math.nan, 0.2]])
    positive = torch.tensor([[True, False, False]] * 3)
    ranks, tied = tie_aware_ranks(similarity, positive)
    assert np.isnan(ranks).tolist() == [True, False, True]
    values = {m[1]: m[2] for m in Retrieval(ranks=ranks, tied=tied).metrics("i2t")}
    assert values["R@1"] == values["R@10"] == pytest.approx(100 / 3)
    assert math.isnan(values["mean_rank"])


def test_a_query_without_positive_has_no_rank():
    ranks, tied = tie_aware_ranks(torch.tensor([[0.1, 0.2]]), torch.tensor([[False, False]]))
    assert np.isnan(ranks[0])
    assert not tied[0]


def dataset(labels: list[int], captions: list[list[str]]) -> SimpleNamespace:
    return SimpleNamespace(labels=np.array(labels, dtype=np.int32), captions=captions)


DATA = dataset(
    [0, 0, 1, 2, 3],
    [["dog", "pet"], ["pet", "dog", "puppy"], ["cat", "pet"], ["car"], ["left out"]],
)


def test_candidates_are_unique_label_and_text_under_their_first_row():
    candidates = caption_candidates(DATA, np.array([0, 1, 2, 3]))
    found = list(zip(candidates.rows.tolist(), candidates.captions.tolist(), strict=True))
    assert found == [(0, 0), (0, 1), (1, 2), (2, 0), (2, 1), (3, 0)]
    assert candidates.labels.tolist() == [0, 0, 0, 1, 1, 2]


def test_a_shared_caption_is_true_for_all_its_labels():
    candidates = caption_candidates(DATA, np.array([0, 1, 2, 3]))
    positive = candidates.positives(np.array([0, 1, 2]))
    texts = ["dog", "pet", "puppy", "cat", "pet", "car"]
    owned = [{"dog", "pet", "puppy"}, {"cat", "pet"}, {"car"}]
    assert positive.tolist() == [[text in own for text in texts] for own in owned]


def slow_retrieval(pictures, texts, labels, data, rows):
    """Ranks both ways from dictionaries of texts."""
    own = {}
    for row in rows:
        own.setdefault(int(data.labels[row]), set()).update(data.captions[row])
    keys = list(dict.fromkeys((int(data.labels[row]), text) for row in rows for text in data.captions[row]))
    similarity = (pictures @ texts.T).tolist()
    there = [
        slow_rank(similarity[p], [text in own[int(labels[p])] for _, text in keys])
        for p in range(len(labels))
    ]
    back = [
        slow_rank(
            [similarity[p][c] for p in range(len(labels))],
            [keys[c][1] in own[int(label)] for label in labels],
        )
        for c in range(len(keys))
    ]
    return there, back


@pytest.mark.parametrize("chunk", [3, 7, 1024])
def test_retrieval_equals_nested_loops_for_any_chunk(monkeypatch, chunk):
    monkeypatch.setattr(evaluation, "_CHUNK", chunk)
    rng = np.random.default_rng(3)
    words = [f"w{k}" for k in range(25)]
    labels = rng.integers(0, 12, 40)
    vocabulary = {label: list(rng.choice(words, 4, replace=False)) for label in range(12)}
    data = dataset(labels.tolist(), [list(rng.permutation(vocabulary[int(label)])) for label in labels])
    rows = np.arange(5, 40)
    candidates = caption_candidates(data, rows)
    # few values in few dimensions: many exact ties
    pictures = torch.from_numpy(rng.integers(-1, 2, (35, 3))).float()
    texts = torch.from_numpy(rng.integers(-1, 2, (len(candidates.rows), 3))).float()
    got = retrieve(pictures, texts, labels[rows], candidates)
    expected = slow_retrieval(pictures, texts, labels[rows], data, rows)
    for result, slow in zip(got, expected, strict=True):
        assert result.ranks.tolist() == [rank for rank, _ in slow]
        assert result.tied.tolist() == [tied for _, tied in slow]


def test_metrics_of_ranks_written_by_hand():
    result = Retrieval(
        ranks=np.array([1.0, 1.5, 2.0, 5.0, 7.0, 11.0, 30.0, 1.0]),
        tied=np.array([False, True, False, False, False, False, False, False]),
    )
    assert result.metrics("t2i") == [
        ("t2i", "R@1", 25.0, 8, 0.125),
        ("t2i", "R@5", 62.5, 8, 0.125),
        ("t2i", "R@10", 75.0, 8, 0.125),
        ("t2i", "median_rank", 3.5, 8, 0.125),
        ("t2i", "mean_rank", 7.3125, 8, 0.125),
    ]
    both = [*result.metrics("i2t"), *result.metrics("t2i")]
    assert rsum(both) == (None, "rsum", 325.0, 16, None)
