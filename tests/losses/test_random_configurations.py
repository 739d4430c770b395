"""Thousands of random configurations: a valid one never gives a number that is not finite."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from uwml_core.losses import UWMLLoss

CHOICES: dict[str, list[Any]] = {
    "base": ["infonce", "triplet", "sigmoid", "dcl", "hn_nce", "wei2020_max", "wei2020_calibrated"],
    "negative_statistic": ["hardest", "topk_mean", "quantile", "mean"],
    "topk": [1, 3, 100],
    "quantile": [1e-9, 0.5, 1.0],
    "margin_scale": ["none", "negative_std"],
    "false_negative_margin": [None, None, -2.0, 0.0, 0.3],
    "curve": ["bell", "uniform", "hard"],
    "center": [-2.0, 0.0, 0.15, 2.0],
    "steepness_start": [0, 2.0, 200.0],
    "steepness_end": [0.0, 12, 200.0],
    "hard_floor": [0.0, 0.3, 0.999],
    "max_weight": [1.0, 2.0, 1e6],
    "normalization": ["l2", "sum", "rss", "none"],
    "combination": ["multiply", "add"],
    "direction_mode": ["adaptive", "fixed", "off"],
    "direction_fixed": [0.0, 0.3, 1.0],
    "window": [1, 200],
    "update_every": [1, 10],
    "smoothing": [0.0, 0.999],
    "sensitivity": [1e-6, 0.05, 10.0],
    "min_weight": [0.0, 0.1, 0.499],
    "temperature": [1e-3, 0.01, 0.025, 0.07, 5.0],
    "temperature_end": [None, None, 0.02],
    "learnable_temperature": [False, False, True],
    "triplet_margin": [0.0, 0.2, 3.0],
    "over_negatives": ["hardest", "hardest", "sum"],
    "hn_alpha": [0.0, 1e-3, 1.0],
    "hn_beta": [0.0, 0.25, 3.0],
    "memory_batches": [0, 0, 1, 2],
    "memory_modalities": ["both", "text"],
    "accumulate_batches": [1, 2, 4],
}
# times ten blocks and three batches each: ten thousand
PER_BLOCK = 340
OUTCOMES = {"fine", "refused", "without negatives"}
REFUSALS = ("is impossible with base=", "has no effect with base=", "temperature_end cannot be scheduled")


def features(rng: random.Random, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(rng.randrange(1 << 30))
    image = torch.randn(size, 3)
    kind = rng.choice(["random", "near", "equal", "opposite", "one point", "poles"])
    if kind == "random":
        return image, torch.randn(size, 3)
    if kind == "near":
        return image, image + 0.01 * torch.randn(size, 3)
    if kind == "one point":
        image = torch.ones(size, 3)
    if kind == "poles":
        image = torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]).repeat(size, 1)[:size]
    return image, -image if kind == "opposite" else image.clone()


def run_one(seed: int) -> str:
    """What became of one random configuration: one of ``OUTCOMES``, or what it raised."""
    rng = random.Random(seed)
    chosen = rng.sample(list(CHOICES), rng.randint(0, 9))
    try:
        loss = UWMLLoss({name: rng.choice(CHOICES[name]) for name in chosen})
    except ValueError as error:
        return "refused" if any(words in str(error) for words in REFUSALS) else f"raised {error}"
    for step in range(3):
        image, text = (x.requires_grad_() for x in features(rng, rng.choice([2, 3, 8])))
        labels = [rng.randrange(6) for _ in image] if rng.random() < 0.5 else None
        try:
            value = loss(image, text, labels=labels, progress=step / 2)
        except ValueError as error:
            return "without negatives" if "a negative" in str(error) else f"raised {error}"
        value.backward()
        for number in (value, image.grad, text.grad, *(p.grad for p in loss.parameters())):
            assert torch.isfinite(number).all(), (seed, loss.config)
        last = loss.last
        assert (torch.nan_to_num(last.weight) <= loss.config.max_weight * (1 + 1e-6)).all(), seed
        assert float(last.direction_weight.sum()) == pytest.approx(1.0)
        assert last.loss == pytest.approx(value.item(), rel=1e-5, abs=1e-6)
    return "fine"


@pytest.mark.parametrize("block", range(10))
def test_a_valid_configuration_never_gives_a_number_that_is_not_finite(block: int) -> None:
    outcomes = [run_one(seed) for seed in range(PER_BLOCK * block, PER_BLOCK * (block + 1))]
    assert set(outcomes) <= OUTCOMES
    assert outcomes.count("fine") > PER_BLOCK / 2
    assert outcomes.count("refused") > PER_BLOCK / 50
