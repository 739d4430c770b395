"""Thousands of random configurations: a valid one never gives a number that is not finite.

``python -m tests.losses.test_random_configurations 10000`` tries as many as it is told and counts what came.
"""

from __future__ import annotations

import math
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import torch

from uwml_core.losses import UWMLLoss
from uwml_core.weighting import PARAMETERS, UWMLConfig

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
    "positive_polynomial": [(0.5, -0.7, 0.2), (0.0,), (1.0, -1.0, 0.0, 5.0)],
    "negative_polynomial": [(0.03, -0.4, 0.9), (0.0, 0.0, 0.0, 1.0), (-1.0,)],
    "memory_batches": [0, 0, 1, 2],
    "memory_modalities": ["both", "text"],
    "accumulate_batches": [1, 1, 2],
    "modalities": [("image", "text"), ["video", "audio"]],
    "total_steps": [None, 1, 3, 1000],
}
# one of these in place of a valid value: the message begins with the field and its value, or names both
INVALID: dict[str, list[Any]] = {
    name: [math.nan, math.inf, True, "5", [1.0]] for name, p in PARAMETERS.items() if not p.choices
} | {name: ["", "none of them", 3, None] for name, p in PARAMETERS.items() if p.choices}
INVALID |= {
    "learnable_temperature": [1, "yes", None],
    "positive_polynomial": [(), (math.nan,), 1.0],
    "negative_polynomial": [[], ("a",), None],
    "modalities": [("text", "thermal"), ("image",), ("", "text")],
}
REFUSALS = re.compile(
    r"^(\w+)=.* (is impossible with base='wei2020_|has no effect with base=)"
    r"|^(temperature_end) cannot be scheduled while learnable_temperature is true"
)
WITHOUT_NEGATIVES = re.compile(r"^false_negative_margin=.* leaves no anchor|^labels are all ")
DTYPES = [torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16]

# ten thousand take minutes: they are run by hand, these in every run
PER_BLOCK = 120


def features(rng: random.Random, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(rng.randrange(1 << 30))
    image = torch.randn(size, 3)
    kind = rng.choice(["random", "near", "equal", "opposite", "one point", "poles", "small", "large"])
    if kind == "random":
        return image, torch.randn(size, 3)
    if kind == "near":
        return image, image + 0.01 * torch.randn(size, 3)
    if kind in ("small", "large"):  # as far as half precision goes
        factor = 1e-3 if kind == "small" else 1e4
        return factor * image, torch.randn(size, 3)
    if kind == "one point":
        image = torch.ones(size, 3)
    if kind == "poles":
        image = torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]).repeat(size, 1)[:size]
    return image, -image if kind == "opposite" else image.clone()


def configuration(rng: random.Random) -> dict[str, Any]:
    """Up to nine fields of it; half of those with a base loss of its own weights leave its fields alone."""
    chosen = {name: rng.choice(CHOICES[name]) for name in rng.sample(list(CHOICES), rng.randint(0, 9))}
    if rng.random() < 0.5 and str(chosen.get("base")).startswith("wei2020"):
        for name in ("curve", "direction_mode", "margin_scale", "combination"):
            chosen.pop(name, None)
    return chosen


def refusal(config: dict[str, Any]) -> str | None:
    """The field that the page says cannot be together with the others; None where there is none."""
    base, learnable = config.get("base", "infonce"), config.get("learnable_temperature", False)
    if learnable and config.get("temperature_end") is not None:
        return "temperature_end"
    for name in ("learnable_temperature", "temperature_end"):
        if config.get(name) and base not in ("infonce", "dcl", "hn_nce"):
            return name
    if config.get("over_negatives", "hardest") == "sum" and base != "triplet":
        return "over_negatives"
    own = {"curve": "uniform", "direction_mode": "off", "margin_scale": "none", "combination": "multiply"}
    for name, only in own.items() if base.startswith("wei2020") else ():
        if config.get(name, only) != only:
            return name
    return None


def run_one(seed: int) -> Iterator[str]:
    """What became of a random configuration and of the batches that it was given."""
    rng = random.Random(seed)
    config = configuration(rng)
    wrong = refusal(config)
    if wrong is not None:
        with pytest.raises(ValueError, match=REFUSALS) as error:
            UWMLLoss(config)
        assert wrong in REFUSALS.match(str(error.value)).groups(), (seed, config)
        yield "refused configuration"
        return
    loss = UWMLLoss(config)
    yield "valid configuration"
    dtype, autocast = rng.choice(DTYPES), rng.random() < 0.3
    for step in range(3):
        yield from run_step(loss, rng, step, seed, dtype=dtype, autocast=autocast)


def run_step(
    loss: UWMLLoss, rng: random.Random, step: int, seed: int, *, dtype: torch.dtype, autocast: bool
) -> Iterator[str]:
    image, text = features(rng, rng.choice([2, 3, 8]))
    if dtype == torch.float16:  # the gradient by a short row is a large number, too large for it
        image, text = (x / x.norm(dim=1, keepdim=True).clamp(max=1.0) for x in (image, text))
    image, text = (x.to(dtype).requires_grad_() for x in (image, text))
    labels = [rng.randrange(6) for _ in image] if rng.random() < 0.5 else None
    given = {}
    if rng.random() < 0.2:
        given = {
            "logit_scale": torch.tensor(rng.choice([0.1, 14.0, 100.0]), requires_grad=True),
            "logit_bias": rng.choice([None, -10.0, torch.tensor(3.0, requires_grad=True)]),
        }
    progress = step / 2 if rng.random() < 0.8 or loss.config.total_steps is None else None
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            value = loss(image, text, labels=labels, progress=progress, **given)
    except ValueError as error:
        if not WITHOUT_NEGATIVES.match(str(error)):
            raise
        yield "batch without negatives"
        return
    value.backward()
    leaves = (image, text, *(x for x in given.values() if isinstance(x, torch.Tensor)), *loss.parameters())
    for number in (value, *(leaf.grad for leaf in leaves)):
        assert torch.isfinite(number).all(), (seed, step, loss.config)
    check_diagnostics(loss, value, seed)
    yield f"finite in {str(dtype).removeprefix('torch.')}{' under autocast' if autocast else ''}"


def check_diagnostics(loss: UWMLLoss, value: torch.Tensor, seed: int) -> None:
    last, config = loss.last, loss.config
    assert (torch.nan_to_num(last.weight) <= config.max_weight * (1 + 1e-6)).all(), seed
    assert (torch.nan_to_num(last.weight) >= 0).all(), seed
    if not config.weighs_pairs:
        assert torch.isfinite(last.weight).all(), seed
    assert float(last.direction_weight.sum()) == pytest.approx(1.0), seed
    assert last.loss == pytest.approx(value.item(), rel=1e-5, abs=1e-6), seed
    assert (torch.isnan(last.margin) == (last.negative_index < 0)).all(), seed
    assert torch.isfinite(last.pair_loss).all(), seed
    counts = (last.negative_index >= 0).sum(1)
    most = counts if not config.weighs_pairs else counts * 100
    assert ((last.ess.cpu() >= (counts > 0) * (1 - 1e-6)) & (last.ess <= most * (1 + 1e-6))).all(), seed


def run_invalid(seed: int) -> Iterator[str]:
    """A configuration with one invalid field: the error names the field and what it is."""
    rng = random.Random(seed)
    name = rng.choice(sorted(INVALID))
    value = rng.choice(INVALID[name])
    others = {other: v for other, v in configuration(rng).items() if other != name and other != "base"}
    with pytest.raises(ValueError, match=rf"^{name}=") as error:
        UWMLLoss({**others, name: value})
    assert repr(value) in str(error.value), (seed, name, value)
    yield "invalid configuration"


def outcomes(seeds: range) -> Counter[str]:
    """Every seed with a random configuration, and every fourth with an invalid one."""
    found: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in seeds:
            found.update(run_one(seed))
            if seed % 4 == 0:
                found.update(run_invalid(seed))
    return found


def test_every_field_is_drawn_and_every_number_also_invalid() -> None:
    assert set(CHOICES) == {field.name for field in fields(UWMLConfig)}
    assert set(INVALID) == set(CHOICES)


@pytest.mark.parametrize("block", range(5))
def test_a_valid_configuration_never_gives_a_number_that_is_not_finite(block: int) -> None:
    found = outcomes(range(PER_BLOCK * block, PER_BLOCK * (block + 1)))
    assert found["valid configuration"] > 0.7 * PER_BLOCK
    assert found["refused configuration"] >= 0.01 * PER_BLOCK
    assert found["invalid configuration"] == PER_BLOCK / 4
    for words in ("in float32", "in float64", "in bfloat16", "in float16", "under autocast"):
        assert sum(times for name, times in found.items() if words in name) > 0.1 * PER_BLOCK


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_the_check_sees_a_number_that_is_not_finite(bad: float, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = UWMLLoss.forward
    monkeypatch.setattr(UWMLLoss, "forward", lambda *given, **named: forward(*given, **named) * bad)
    with pytest.raises(AssertionError):
        outcomes(range(8))


if __name__ == "__main__":
    for outcome, times in sorted(outcomes(range(int(sys.argv[1]))).items()):
        print(f"{times:6d} {outcome}")
