"""The memory queue: what it holds, when it moves, what it adds to a step."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from uwml_core.losses import UWMLLoss
from uwml_core.losses.similarity import unit_rows


def batch(seed: int, size: int = 4, dim: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(size, dim, generator=generator)
    return image, image + torch.randn(size, dim, generator=generator)


def queued(**settings) -> UWMLLoss:
    return UWMLLoss(**{"memory_batches": 2, "total_steps": 20, **settings})


def test_first_step_is_that_without_a_queue_and_later_ones_have_more_negatives() -> None:
    loss, plain = queued(), UWMLLoss(total_steps=20)
    assert loss(*batch(0)).item() == pytest.approx(plain(*batch(0)).item(), rel=1e-6)
    negatives = []
    for seed, size in ((1, 4), (2, 3), (3, 6), (4, 4)):
        loss(*batch(seed, size))
        negatives.append(loss.last.negatives_per_anchor)
    # the batch without the anchor, and the last two batches
    assert negatives == [3 + 4, 2 + 8, 5 + 7, 3 + 9]


def test_queued_embeddings_join_the_denominator_of_both_directions() -> None:
    loss = queued(curve="uniform", direction_mode="off", memory_batches=1)
    old, new = batch(0), batch(1)
    loss(*old)
    value = loss(*new)
    image, text, old_image, old_text = (unit_rows(x) for x in (*new, *old))
    target = torch.arange(4)
    rows = torch.cat((image @ text.T, image @ old_text.T), 1) / 0.07
    columns = torch.cat((text @ image.T, text @ old_image.T), 1) / 0.07
    entropy = torch.nn.functional.cross_entropy
    torch.testing.assert_close(value, (entropy(rows, target) + entropy(columns, target)) / 2)


def test_texts_alone_are_candidates_of_the_first_direction_alone() -> None:
    loss, plain = queued(memory_modalities="text"), UWMLLoss(total_steps=20)
    for seed in range(2):
        loss(*batch(seed))
        plain(*batch(seed))
    assert loss.last.negatives_per_anchor == (3 + 4 + 3) / 2
    torch.testing.assert_close(loss.last.pair_loss[1], plain.last.pair_loss[1])
    assert (loss.last.pair_loss[0] > plain.last.pair_loss[0]).all()
    assert all("image" not in kept or kept["image"] is None for kept in loss.get_extra_state()["memory"])


def test_no_gradient_flows_into_earlier_batches() -> None:
    loss = queued()
    old = [x.requires_grad_() for x in batch(0)]
    loss(*old)
    new = [x.requires_grad_() for x in batch(1)]
    loss(*new).backward()
    assert all(x.grad is None for x in old)
    assert all(x.grad.abs().sum() > 0 for x in new)


def test_equal_labels_are_masked_in_the_queue() -> None:
    loss = queued(memory_batches=1)
    loss(*batch(0), labels=[0, 1, 2, 3])
    loss(*batch(1), labels=[2, 5, 2, 6])
    assert loss.last.negatives_per_anchor == (5 + 7 + 5 + 7) / 4
    # the same batch again: its own old copies would be the hardest negatives
    loss(*batch(1), labels=[2, 5, 2, 6])
    assert not ((loss.last.negative_label == torch.tensor([2, 5, 2, 6])).any())


def test_running_labels_never_equal_given_ones() -> None:
    loss = queued(memory_batches=2)
    loss(*batch(0), labels=[0, 1, 2, 3])
    loss(*batch(1))  # numbered 0 to 3 as well
    assert loss.last.negatives_per_anchor == 3 + 4
    loss(*batch(2), labels=[0, 1, 2, 3])
    assert loss.last.negatives_per_anchor == 3 + 3 + 4


def test_negatives_of_the_queue_carry_label_and_item_id() -> None:
    loss = queued(memory_batches=1)
    text = torch.eye(4)
    loss(torch.eye(4), text, labels=[10, 11, 12, 13], item_ids=np.array([7, 8, 9, 6]))
    # pictures that look like the old ones, under other labels
    loss(torch.eye(4), text.roll(1, 0) + 0.1, labels=[20, 21, 22, 23], item_ids=["a", "b", "c", "d"])
    last = loss.last
    assert last.negative_index[0].tolist() == [4, 5, 6, 7]
    assert last.negative_label[0].tolist() == [10, 11, 12, 13]
    assert last.further_item_ids == (7, 8, 9, 6)
    loss(*batch(3, dim=4))
    assert loss.last.further_item_ids == ("a", "b", "c", "d")
    loss(*batch(4, dim=4))
    assert loss.last.further_item_ids == (None,) * 4


def test_a_single_pair_has_negatives_once_there_is_a_queue() -> None:
    loss = queued()
    with pytest.raises(ValueError, match="image_features has 1 row, so no anchor has a negative"):
        loss(*batch(0, 1))
    assert loss.get_extra_state()["memory"] == []
    loss(*batch(1))
    assert torch.isfinite(loss(*batch(2, 1)))
    assert loss.last.negatives_per_anchor == 4


def test_eval_uses_the_queue_and_leaves_it_alone() -> None:
    loss = queued()
    loss(*batch(0))
    loss.eval()
    first = loss(*batch(1))
    assert torch.equal(first, loss(*batch(1)))
    assert loss.last.negatives_per_anchor == 3 + 4


@pytest.mark.parametrize("modalities", ["both", "text"])
def test_resume_is_bit_exact_from_a_weights_only_checkpoint(modalities: str) -> None:
    def fresh() -> UWMLLoss:
        return queued(memory_modalities=modalities)

    whole, half = fresh(), fresh()
    for seed in range(4):
        ids = torch.arange(4) + seed
        whole(*batch(seed), item_ids=ids, labels=ids)
        half(*batch(seed), item_ids=ids, labels=ids)
    stream = io.BytesIO()
    torch.save(half.state_dict(), stream)
    stream.seek(0)
    resumed = fresh()
    resumed.load_state_dict(torch.load(stream, weights_only=True))
    for seed in range(4, 8):
        assert torch.equal(whole(*batch(seed)), resumed(*batch(seed)))
        assert whole.last.further_item_ids == resumed.last.further_item_ids
        assert torch.equal(whole.last.negative_label, resumed.last.negative_label)


def test_state_of_a_loss_without_memory_still_loads() -> None:
    state = UWMLLoss(total_steps=20).get_extra_state()
    del state["memory"]
    loss = queued()
    loss.set_extra_state(state)
    assert torch.isfinite(loss(*batch(0)))


def test_a_memory_of_texts_alone_is_not_taken_for_both() -> None:
    texts, both = queued(memory_modalities="text"), queued()
    texts(*batch(0))
    both(*batch(1))
    before = both.get_extra_state()
    with pytest.raises(
        ValueError, match=r"^memory_modalities='both' contradicts the state of the loss, whose"
    ):
        both.load_state_dict(texts.state_dict())
    assert both.step == 1
    assert len(before["memory"]) == len(both.get_extra_state()["memory"]) == 1
    UWMLLoss(total_steps=20).load_state_dict(texts.state_dict())
    # the other way there is more than is asked for
    texts.set_extra_state(before)
    assert texts.get_extra_state()["memory"][0]["image"] is None
    assert torch.isfinite(texts(*batch(2)))


def test_other_embeddings_are_refused_until_the_queue_is_reset() -> None:
    loss = queued()
    loss(*batch(0))
    message = "image_features has dim 3, but the memory queue holds embeddings of dim 5; expected the same"
    with pytest.raises(ValueError, match=message):
        loss(*batch(1, dim=3))
    loss.reset_memory()
    assert torch.isfinite(loss(*batch(1, dim=3)))


def test_what_is_not_a_number_is_not_kept() -> None:
    loss = queued(validate=False)
    image, text = batch(0)
    image[1] = torch.nan
    loss(image, text)
    assert torch.isfinite(loss(*batch(1)))
    assert loss.last.negatives_per_anchor == 3


def test_half_precision_and_double_share_a_queue() -> None:
    loss = queued()
    for dtype in (torch.float16, torch.float64, torch.float32):
        image, text = (x.to(dtype) for x in batch(0))
        assert torch.isfinite(loss(image, text))
