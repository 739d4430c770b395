"""Wrong pairs on purpose: what changes, and what does not."""

from __future__ import annotations

import pytest

from uwml_core.data import open_data, swap_captions
from uwml_core.data.dataset import PairDataset
from uwml_core.training.sick.data import small


@pytest.fixture(scope="module")
def pairs() -> PairDataset:
    return small(open_data("emoji_pairs", only="source=noto"))


@pytest.mark.parametrize("share", [0.2, 0.4, 1.0])
def test_a_share_of_the_training_rows_gets_the_captions_of_others(pairs: PairDataset, share: float) -> None:
    swapped = swap_captions(pairs, share)
    changed = [row for row in range(len(pairs)) if swapped.captions[row] is not pairs.captions[row]]
    assert len(changed) == round(share * len(pairs.rows("train")))
    assert set(changed) <= set(pairs.rows("train"))
    assert sorted(map(tuple, swapped.captions)) == sorted(map(tuple, pairs.captions))
    assert swapped.item_keys == pairs.item_keys


def test_the_same_rows_are_swapped_each_time_and_others_with_another_seed(pairs: PairDataset) -> None:
    first, again, other = (swap_captions(pairs, 0.3, seed).captions for seed in (0, 0, 1))
    assert first == again != other


def test_no_share_leaves_the_data_and_its_fingerprint(pairs: PairDataset) -> None:
    assert swap_captions(pairs, 0.0) is pairs
    assert swap_captions(pairs, 0.4).fingerprint != pairs.fingerprint


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_what_is_no_share_is_refused(pairs: PairDataset, share: float) -> None:
    with pytest.raises(ValueError, match=r"share=.* is out of range; expected a number in \[0, 1\]"):
        swap_captions(pairs, share)
