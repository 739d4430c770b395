"""The module against the nested loops of ``oracle``: values, diagnostics and gradients."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from tests.losses import oracle
from uwml_core.losses import UWMLLoss

BASES = [
    "infonce",
    "infonce",
    "triplet",
    "triplet",
    "sigmoid",
    "sigmoid",
    "wei2020_max",
    "wei2020_calibrated",
]


def random_case(seed: int) -> tuple[dict, list[list[float]], list[list[float]], list[int]]:
    rng = random.Random(seed)
    batch, dim = rng.choice([2, 3, 4, 6, 8]), rng.choice([2, 3, 5])
    labels = [rng.randrange(max(2, batch - 1)) for _ in range(batch)]
    labels[0], labels[1] = 0, 1
    settings = {
        "base": rng.choice(BASES),
        "over_negatives": "hardest",
        "hn_alpha": rng.choice([0.0, 0.5, 1.0]),
        "hn_beta": rng.choice([0.0, 0.25, 1.5]),
        "t": rng.choice([1.0, 10.0, 60.0]),
        "b": rng.choice([-10.0, -2.0, 0.0]),
        "curve": rng.choice(["bell", "bell", "uniform", "hard"]),
        "center": rng.uniform(-0.5, 0.5),
        "steepness": (kappa := rng.choice([0.0, 0.5, 4.0, 12.0, 200.0])),
        "steepness_start": kappa,
        "steepness_end": rng.choice([kappa, kappa + 5.0]),
        "hard_floor": rng.choice([0.0, 0.3, 0.9]),
        "negative_statistic": rng.choice(["hardest", "hardest", "topk_mean", "quantile", "mean"]),
        "topk": rng.choice([1, 2, 3, 50]),
        "quantile": rng.choice([0.05, 0.5, 0.95, 1.0]),
        "margin_scale": rng.choice(["none", "negative_std"]),
        "false_negative_margin": rng.choice([None, None, 0.0, 0.1, 2.0]),
        "combination": rng.choice(["multiply", "multiply", "add"]),
        "memory_batches": rng.choice([0, 0, 1, 2]),
        "memory_modalities": rng.choice(["both", "text"]),
        "max_weight": rng.choice([1.0, 1.3, 2.0, 5.0]),
        "normalization": rng.choice(["l2", "sum", "rss", "none"]),
        "temperature": rng.choice([1.0, 0.2, 0.07, 0.025, 0.024, 0.01]),
        "triplet_margin": rng.choice([0.0, 0.2, 3.0]),
    }
    if settings["base"] == "triplet":
        settings["over_negatives"] = rng.choice(["hardest", "sum"])
    if settings["base"].startswith("wei2020"):
        settings |= {"curve": "uniform", "combination": "multiply", "margin_scale": "none"}
    if settings["base"] == "wei2020_calibrated":
        # the medians lie 0.2 apart, so that at this margin one anchor is on the edge but for rounding
        settings |= {"triplet_margin": rng.choice([0.1, 0.3, 3.0])}
    image = [[rng.gauss(0, 2) for _ in range(dim)] for _ in range(batch)]
    text = [[x + rng.gauss(0, 1.5) for x in row] for row in image]
    if rng.random() < 0.2:
        text[-1] = list(text[0])  # ties
        if settings["false_negative_margin"] == 0.0:
            settings["false_negative_margin"] = 0.1  # which side of it a tie falls on is rounding
    if not any(any(row) for row in oracle.negatives_left(image, text, labels, settings)):
        settings["false_negative_margin"] = None
    return settings, image, text, labels


def module(settings: dict, first: float, **more) -> UWMLLoss:
    values = {k: v for k, v in settings.items() if k not in ("steepness", "t", "b")}
    mode = "off" if settings["base"].startswith("wei2020") else "fixed"
    return UWMLLoss(**values, direction_mode=mode, direction_fixed=first, **more)


def fill_memory(loss: UWMLLoss, settings: dict, dim: int, seed: int) -> list[tuple]:
    """Train on a few batches, so that the last of them are in the queue; they are returned."""
    rng, queue = random.Random(seed), []
    for size in (3, 2, 4):
        image = [[rng.gauss(0, 2) for _ in range(dim)] for _ in range(size)]
        text = [[x + rng.gauss(0, 1) for x in row] for row in image]
        labels = [0, 2, 4, 5][:size]
        tensors = (torch.tensor(rows, dtype=torch.float64) for rows in (image, text))
        try:
            loss(*tensors, labels=labels, item_ids=labels, progress=0.0, **logits(settings))
        except ValueError:  # a false_negative_margin that leaves nothing; such a batch is not kept
            continue
        queue.append((image, text, labels))
    return queue[len(queue) - settings["memory_batches"] :] if settings["memory_batches"] else []


def logits(settings: dict) -> dict:
    sigmoid = settings["base"] == "sigmoid"
    return {"logit_scale": settings["t"], "logit_bias": settings["b"]} if sigmoid else {}


@pytest.mark.parametrize("seed", range(400))
def test_value_weights_and_diagnostics_are_those_of_the_nested_loops(seed: int) -> None:
    settings, image, text, labels = random_case(seed)
    loss = module(settings, 0.3)
    image_t, text_t = torch.tensor(image, dtype=torch.float64), torch.tensor(text, dtype=torch.float64)

    queue = fill_memory(loss, settings, len(image[0]), seed)
    value = loss(image_t, text_t, labels=labels, progress=0.0, **logits(settings))

    want, last = oracle.step(image, text, labels, settings, (0.3, 0.7), None, queue), loss.last
    known = labels + [label for batch in queue for label in batch[2]]
    assert list(last.memory_item_ids) == known[len(labels) :]
    assert last is not None
    close = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(value.item(), want["loss"], **close)
    np.testing.assert_allclose(last.loss, want["loss"], **close)
    for d, expected in enumerate(want["directions"]):
        anchors = expected["anchors"]
        for field, key in (
            ("margin", "margin"),
            ("negative_similarity", "statistic"),
            ("negative_index", "index"),
            ("pair_loss", "loss"),
            ("pair_weight", "pair_weight"),
        ):
            np.testing.assert_allclose(
                getattr(last, field)[d].numpy(), [a[key] for a in anchors], err_msg=field, **close
            )
        np.testing.assert_allclose(last.weight[d].numpy(), expected["weight"], **close)
        np.testing.assert_allclose(last.gradient_share[d].numpy(), expected["gradient_share"], **close)
        np.testing.assert_allclose(last.positive_similarity[d].numpy(), want["positive"], **close)
        np.testing.assert_array_equal(last.label[d].numpy(), labels)
        named = [known[a["index"]] if a["index"] >= 0 else -1 for a in anchors]
        np.testing.assert_array_equal(last.negative_label[d].numpy(), named)
        np.testing.assert_allclose(float(last.direction_loss[d]), expected["loss"], **close)
        if settings["margin_scale"] == "negative_std":
            np.testing.assert_allclose(float(last.margin_scale[d]), expected["margin_scale"], **close)
        if expected["negatives"]:
            clamped = float(last.clamped_share[d])
            least, most = expected["clamped_share"]
            assert least <= clamped <= most
            least, most = expected["accuracy"]
            assert least <= float(last.accuracy[d]) <= most
        if settings["base"].startswith("wei2020"):
            for field in ("dead_share", "wrong_sign_share"):
                np.testing.assert_allclose(float(getattr(last, field)[d]), expected[field], err_msg=field)
        for field in ("gap", "ess", "no_negative_count"):
            np.testing.assert_allclose(
                float(getattr(last, field)[d]), expected[field], err_msg=field, **close
            )
    assert (last.margin_scale is None) == (settings["margin_scale"] == "none")
    both = want["directions"]
    assert last.negatives_per_anchor == pytest.approx(sum(d["negatives"] for d in both) / 2)
    false = [(d, i, j) for d, side in enumerate(both) for i, j in side["false"]]
    assert last.masked_false_negatives == len(false)
    if settings["false_negative_margin"] is None:
        assert last.false_negatives is None
    else:
        assert [tuple(row) for row in last.false_negatives.tolist()] == false


@pytest.mark.parametrize("seed", range(120))
def test_gradients_are_central_differences_with_the_weights_held_fixed(seed: int) -> None:
    settings, image, text, labels = random_case(1000 + seed)
    if text[-1] == text[0]:
        text[-1][0] += 0.1  # no derivative where two negatives are equally hard
    image_t = torch.tensor(image, dtype=torch.float64, requires_grad=True)
    text_t = torch.tensor(text, dtype=torch.float64, requires_grad=True)
    loss = module(settings, 0.6)
    queue = fill_memory(loss, settings, len(image[0]), seed)
    loss(image_t, text_t, labels=labels, progress=0.0, **logits(settings)).backward()

    want = oracle.central_differences(image, text, labels, settings, (0.6, 0.4), queue)

    for got, expected in zip((image_t.grad, text_t.grad), want, strict=True):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6, atol=1e-6)


def test_the_oracle_disagrees_when_the_diagonal_alone_is_masked() -> None:
    settings, image, text, _ = random_case(5)
    labels = [0, 1] + [0] * (len(image) - 2)
    right = oracle.step(image, text, labels, settings)["loss"]
    assert right != pytest.approx(oracle.step(image, text, list(range(len(image))), settings)["loss"])


def test_gradient_share_is_the_l1_share_of_the_similarity_gradient() -> None:
    from uwml_core.losses.candidates import both_directions
    from uwml_core.losses.functional import base_terms
    from uwml_core.losses.weigh import anchor_weights, direction_losses

    torch.manual_seed(0)
    for base in ("infonce", "triplet"):
        loss = UWMLLoss(base=base, total_steps=10, triplet_margin=0.5)
        image, text = torch.randn(2, 7, 4, dtype=torch.float64)
        labels = torch.tensor([0, 1, 2, 0, 3, 3, 4])
        loss(image, text, labels=labels)
        similarity = torch.nn.functional.normalize(image) @ torch.nn.functional.normalize(text).T
        similarity.requires_grad_()
        sides = both_directions(similarity, labels[:, None] == labels, loss.config)
        terms = base_terms(sides, loss.config, 1 / 0.07)
        weight = anchor_weights(terms, loss.config, loss.last.steepness).weight
        for d, value in enumerate(direction_losses(terms.pair_loss, weight, "l2")):
            gradient = torch.autograd.grad(value, similarity, retain_graph=True)[0].abs().sum(1 - d)
            torch.testing.assert_close(loss.last.gradient_share[d], gradient / gradient.sum())
