"""Which caption and which batch: pure functions of seed, epoch and item."""

from __future__ import annotations

import numpy as np
import pytest

from uwml_core.data import draw_captions, epoch_batches
from uwml_core.data.sampling import random_bits


def reference_bits(seed: int, stream: int, epoch: int, index: int) -> int:
    """SplitMix64 with plain Python integers."""
    mask = 2**64 - 1

    def mix(state: int) -> int:
        z = (state + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    state = 0
    for word in (seed % 2**64, stream, epoch, index):
        state = mix((state + word) & mask)
    return state


def test_bits_equal_plain_integer_arithmetic():
    for seed in (0, 7, 2**63, 2**64 - 1):
        got = random_bits(seed, 2, 5, np.array([0, 1, 10**9]))
        assert got.tolist() == [reference_bits(seed, 2, 5, k) for k in (0, 1, 10**9)]


def test_known_draws_never_change_between_versions():
    assert draw_captions(3, 2, np.arange(8), np.full(8, 6)).tolist() == [1, 1, 0, 1, 4, 2, 3, 4]
    assert epoch_batches(0, 1, np.arange(6), np.arange(6), 3).tolist() == [[0, 1, 3], [5, 2, 4]]


def test_a_caption_depends_on_its_row_only():
    rows, counts = np.arange(500), np.arange(500) % 8 + 1
    together = draw_captions(1, 4, rows, counts)
    order = np.random.default_rng(0).permutation(500)
    assert (draw_captions(1, 4, rows[order], counts[order]) == together[order]).all()
    assert draw_captions(1, 4, rows[123:124], counts[123:124])[0] == together[123]


def test_captions_stay_in_range_change_with_epoch_and_are_used_evenly():
    rows = np.arange(2000)
    draws = np.stack([draw_captions(0, epoch, rows, np.full(2000, 5)) for epoch in range(10)])
    assert draws.min() == 0
    assert draws.max() == 4
    assert (draws[0] != draws[1]).mean() > 0.7
    counts = np.bincount(draws.ravel(), minlength=5)
    assert np.abs(counts / 4000 - 1).max() < 0.07


def test_batches_show_each_row_once_and_differ_between_epochs_and_seeds():
    rows = np.arange(100, 203)
    labels = np.arange(103) // 2
    batches = epoch_batches(0, 0, rows, labels, 10)
    assert batches.shape == (10, 10)
    assert len(np.unique(batches)) == 100
    assert np.isin(batches, rows).all()
    assert (batches == epoch_batches(0, 0, rows, labels, 10)).all()
    assert (batches != epoch_batches(0, 1, rows, labels, 10)).any()
    assert (batches != epoch_batches(1, 0, rows, labels, 10)).any()


def test_rows_left_out_change_with_the_epoch():
    rows = np.arange(103)
    seen = {int(row) for epoch in range(12) for row in epoch_batches(0, epoch, rows, rows, 10).ravel()}
    assert seen == set(range(103))


def test_a_set_smaller_than_a_batch_is_one_batch():
    batches = epoch_batches(0, 0, np.arange(5), np.arange(5), 128)
    assert sorted(batches.ravel().tolist()) == [0, 1, 2, 3, 4]
    assert batches.shape == (1, 5)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("n", [12, 13, 40])
def test_every_batch_has_a_negative_where_that_is_possible(size, n):
    labels = np.arange(n) // (n // 3)
    for epoch in range(60):
        batches = epoch_batches(0, epoch, np.arange(n), labels, size)
        assert len(np.unique(batches)) == batches.size
        assert all(len(np.unique(labels[batch])) > 1 for batch in batches)


def test_too_few_labels_for_all_batches_is_no_crash():
    labels = np.array([0] * 11 + [1])
    batches = epoch_batches(0, 0, np.arange(12), labels, 4)
    assert sorted(batches.ravel().tolist()) == list(range(12))


def test_one_label_only_is_refused():
    with pytest.raises(ValueError, match=r"1 concept\(s\); expected at least 2"):
        epoch_batches(0, 0, np.arange(5), np.zeros(5, dtype=int), 2)


def test_a_batch_of_one_is_refused():
    with pytest.raises(ValueError, match="size=1 leaves a batch without negatives"):
        epoch_batches(0, 0, np.arange(5), np.arange(5), 1)
