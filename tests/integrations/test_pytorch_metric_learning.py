"""The loss among those of pytorch-metric-learning: its losses, reducers, trainers and wrappers are real."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pytorch_metric_learning import losses, reducers, regularizers, trainers
from pytorch_metric_learning.utils import loss_and_miner_utils

from tests.support import metric_learning_rank
from tests.support.processes import run_in_processes
from uwml_core.integrations.pytorch_metric_learning import UWMLMetricLoss
from uwml_core.losses import UWMLLoss

UNWEIGHTED = {"curve": "uniform", "direction_mode": "off"}
DUPLICATES = torch.tensor([3, 5, 3, 7, 5, 3, 9, 1])


def pairs(batch: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    image, text = torch.randn(2, batch, 6, dtype=torch.float64, generator=random)
    return image.requires_grad_(), text.requires_grad_()


def both_ways(theirs, image, text, labels, tuples=None) -> torch.Tensor:
    # a copy: where both are the same tensor, theirs takes the batch for its own reference
    given = {"labels": labels, "indices_tuple": tuples, "ref_labels": labels.clone()}
    return (theirs(image, ref_emb=text, **given) + theirs(text, ref_emb=image, **given)) / 2


def assert_same(got: torch.Tensor, want: torch.Tensor, image: torch.Tensor, text: torch.Tensor) -> None:
    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)
    ours = torch.autograd.grad(got, (image, text))
    theirs = torch.autograd.grad(want, (image, text))
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)
    assert theirs[0].abs().max() > 1e-3


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_unweighted_with_distinct_labels_it_is_ntxent_both_ways(temperature: float) -> None:
    image, text = pairs()
    labels = torch.arange(8)
    got = UWMLMetricLoss(temperature=temperature, **UNWEIGHTED)(
        image, labels, ref_emb=text, ref_labels=labels
    )
    assert_same(got, both_ways(losses.NTXentLoss(temperature), image, text, labels), image, text)


def test_the_call_in_the_readme_is_right_for_both_lines_of_its_diff() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (call,) = [line.strip() for line in readme.splitlines() if "ref_emb=text" in line]
    (image, text), labels = pairs(), torch.arange(8)
    names = {"image": image, "text": text, "labels": labels}
    values = {}
    for name in ("NTXentLoss", "UWMLMetricLoss"):
        loss_fn = (
            losses.NTXentLoss(0.07)
            if name == "NTXentLoss"
            else UWMLMetricLoss(temperature=0.07, **UNWEIGHTED)
        )
        exec(call, scope := {**names, "loss_fn": loss_fn})
        values[name] = scope["loss"]
    assert values["NTXentLoss"] > 0.5
    assert_same(
        values["UWMLMetricLoss"], both_ways(losses.NTXentLoss(0.07), image, text, labels), image, text
    )
    # what the copy is for
    assert losses.NTXentLoss(0.07)(image, labels, ref_emb=text, ref_labels=labels) == 0


def test_rows_of_equal_label_are_neither_positives_nor_negatives() -> None:
    image, text = pairs()
    got = UWMLMetricLoss(temperature=0.2, **UNWEIGHTED)(
        image, DUPLICATES, ref_emb=text, ref_labels=DUPLICATES
    )
    own = torch.arange(8)
    negatives = torch.where(DUPLICATES[:, None] != DUPLICATES)
    want = both_ways(losses.NTXentLoss(0.2), image, text, DUPLICATES, (own, own, *negatives))
    assert_same(got, want, image, text)
    # by labels alone theirs takes each row of the same label for a positive
    assert abs(both_ways(losses.NTXentLoss(0.2), image, text, DUPLICATES) - got) > 1e-2


def test_weighted_it_is_the_loss_itself() -> None:
    image, text = pairs()
    ours = UWMLMetricLoss(total_steps=10, center=0.05)
    value = ours(image, DUPLICATES, ref_emb=text, ref_labels=DUPLICATES)
    plain = UWMLLoss(total_steps=10, center=0.05)
    assert_same(value, plain(image, text, labels=DUPLICATES), image, text)
    assert torch.equal(ours.last.weight, plain.last.weight)
    assert ours.uwml.step == 1


def test_labels_may_be_missing() -> None:
    image, text = pairs()
    value = UWMLMetricLoss(**UNWEIGHTED)(image, ref_emb=text)
    want = UWMLMetricLoss(**UNWEIGHTED)(image, torch.arange(8), ref_emb=text)
    assert value.item() == want.item()


def test_stacked_modalities_are_taken_apart() -> None:
    image, text = pairs()
    stacked, labels = torch.cat((image, text)), torch.cat((DUPLICATES, DUPLICATES))
    value = UWMLMetricLoss(total_steps=3)(stacked, labels)
    assert_same(value, UWMLMetricLoss(total_steps=3)(image, DUPLICATES, ref_emb=text), image, text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": torch.arange(8)}, r"ref_labels differs from labels in rows 0, 1, 2, 3; expected"),
        ({}, r"ref_emb is missing, and embeddings has 8 rows; expected the other modality as ref_emb"),
        (
            {"ref_emb": torch.ones(4, 6), "ref_labels": torch.arange(4)},
            r"ref_emb has shape \(4, 6\) but embeddings has \(8, 6\); expected the same",
        ),
        (
            {
                "labels": torch.arange(8),
                "ref_emb": torch.ones(8, 6),
                "ref_labels": torch.arange(8).clamp(min=2),
            },
            r"ref_labels differs from labels in rows 0, 1; expected the same label for row k",
        ),
        (
            {"labels": DUPLICATES, "ref_emb": torch.ones(8, 6), "indices_tuple": (torch.tensor([0]),) * 3},
            r"indices_tuple was given, but this loss weighs all pairs of the batch",
        ),
    ],
    ids=["one modality", "no labels", "shape", "labels", "tuples"],
)
def test_what_is_no_pair_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UWMLMetricLoss()(torch.randn(8, 6), **given)


def test_odd_stack_is_refused() -> None:
    with pytest.raises(ValueError, match="embeddings has 7 rows"):
        UWMLMetricLoss()(torch.randn(7, 6), torch.arange(7))


def test_unknown_setting_is_refused() -> None:
    with pytest.raises(ValueError, match=r"loss.distance is not a known setting"):
        UWMLMetricLoss(distance=None)


def test_reducers_get_the_finished_number() -> None:
    image, text = (side.detach() for side in pairs())
    want = UWMLMetricLoss(total_steps=3)(image, DUPLICATES, ref_emb=text)
    for reducer in (reducers.MeanReducer(), reducers.ThresholdReducer(low=1e9)):
        assert UWMLMetricLoss(total_steps=3, reducer=reducer)(image, DUPLICATES, ref_emb=text) == want
    parts = UWMLMetricLoss(total_steps=3, reducer=reducers.DoNothingReducer())(
        image, DUPLICATES, ref_emb=text
    )
    assert parts["loss"]["losses"] == want


def test_embedding_regularizer_is_added() -> None:
    image, text = (side.detach() for side in pairs())
    plain = UWMLMetricLoss(total_steps=3)(image, DUPLICATES, ref_emb=text)
    regularized = UWMLMetricLoss(
        total_steps=3, embedding_regularizer=regularizers.LpRegularizer(), embedding_reg_weight=0.5
    )
    value = regularized(image, DUPLICATES, ref_emb=text)
    torch.testing.assert_close(value, plain + 0.5 * image.norm(dim=1).mean())


def test_statistics_are_recorded_when_collected() -> None:
    image, text = pairs()
    loss = UWMLMetricLoss(total_steps=3, collect_stats=True)
    assert "gap_t2i" in loss._record_these_stats
    loss(image, DUPLICATES, ref_emb=text)
    assert loss.gap_t2i == loss.last.gap[1].item()
    assert loss.direction_weight_i2t == loss.last.direction_weight[0].item()
    assert loss.loss == pytest.approx(loss.last.loss)
    loss.reset_stats()
    assert loss.gap_t2i == 0
    assert not hasattr(UWMLMetricLoss(total_steps=3, collect_stats=False), "gap_t2i")


def test_state_is_saved_with_the_module() -> None:
    image, text = pairs()
    loss = UWMLMetricLoss(total_steps=3)
    loss(image, DUPLICATES, ref_emb=text)
    other = UWMLMetricLoss(total_steps=3)
    other.load_state_dict(loss.state_dict())
    assert other.uwml.step == 1


class TwoViews(torch.utils.data.Dataset):
    """Two noisy views of 32 hidden vectors, as the trainer for two streams takes them."""

    def __init__(self) -> None:
        random = torch.Generator().manual_seed(0)
        hidden = torch.randn(32, 6, generator=random)
        self.views = hidden + 0.5 * torch.randn(2, 32, 6, generator=random)

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        return self.views[0, index], self.views[1, index], index


# their record of losses turns each into a float with its graph
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True to a scalar:UserWarning")
def test_their_trainer_for_two_streams_trains_with_it() -> None:
    torch.manual_seed(0)
    trunk, dataset = torch.nn.Linear(6, 4), TwoViews()
    loss = UWMLMetricLoss(total_steps=16, ignore_indices_tuple=True)

    def objective() -> float:
        with torch.no_grad():
            return UWMLLoss(**UNWEIGHTED)(*(trunk(view) for view in dataset.views)).item()

    before = objective()
    trainers.TwoStreamMetricLoss(
        models={"trunk": trunk},
        optimizers={"trunk_optimizer": torch.optim.Adam(trunk.parameters(), lr=0.02)},
        batch_size=8,
        loss_funcs={"metric_loss": loss},
        dataset=dataset,
        mining_funcs={},
        data_device=torch.device("cpu"),
        dataloader_num_workers=0,
        data_and_label_getter=lambda batch: batch,
    ).train(num_epochs=4)
    assert loss.uwml.step == 16
    assert objective() < before - 0.1


@pytest.mark.parametrize(
    "wrap", [lambda loss: losses.CrossBatchMemory(loss, 6), losses.SelfSupervisedLoss], ids=["memory", "self"]
)
def test_their_wrappers_take_only_their_own_losses(wrap) -> None:
    with pytest.raises(Exception, match="not supported for UWMLMetricLoss"):
        wrap(UWMLMetricLoss())


@pytest.mark.slow
def test_their_distributed_wrapper_gives_the_gradients_of_one_process(tmp_path) -> None:
    parts = run_in_processes(metric_learning_rank.one_of_two, 2, tmp_path)
    image, text = (side.requires_grad_() for side in metric_learning_rank.features())
    whole = UWMLMetricLoss(**metric_learning_rank.SETTINGS)
    value = whole(image, metric_learning_rank.LABELS, ref_emb=text)
    want = dict(zip(("image", "text"), torch.autograd.grad(value, (image, text)), strict=True))
    assert whole.last.direction_weight[0] != 0.5
    for name, gradient in want.items():
        # DistributedDataParallel takes the mean of the processes
        got = torch.cat([part[name] for part in parts]) / 2
        torch.testing.assert_close(got, gradient, rtol=1e-9, atol=1e-12)
    assert [part["loss"].item() / 2 for part in parts] == pytest.approx([value.item()] * 2)


def test_tuples_of_the_trainer_are_what_an_unmined_batch_gives() -> None:
    # what ignore_indices_tuple passes over without a miner: every triplet there is
    labels = torch.arange(4)
    anchors, positives, negatives = loss_and_miner_utils.get_all_triplets_indices(labels, labels.clone())
    assert len(anchors) == 4 * 3
    assert torch.equal(anchors, positives)
    assert not (anchors == negatives).any()
