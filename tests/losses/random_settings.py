"""Random settings of the loss with random batches, and what is special about each.

A setting is never skipped: one whose loss or mask bends within reach of a derivative's step is moved.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.losses import oracle
from tests.losses.oracle_gradients import kinks

# beyond what the points of a derivative change a similarity or a polynomial by
NEAR = 5e-4
BASES = ["infonce", "triplet", "sigmoid", "dcl", "hn_nce", "wei2020_max", "wei2020_calibrated"]
BASE_ODDS = [4, 4, 3, 2, 2, 2, 2]


@dataclass
class Batch:
    image: list[list[float]]
    text: list[list[float]]
    labels: list[int] | None
    progress: float | None
    ids: list[int]


@dataclass
class Setting:
    """Fields of ``UWMLConfig``, and what the calls get; the last batch is the one that is looked at."""

    config: dict[str, Any]
    batches: list[Batch]
    logits: str
    scale: float
    bias: float
    moved: int = 0
    steps: list[Any] = field(default_factory=list)

    @property
    def last(self) -> Batch:
        return self.batches[-1]


def random_setting(seed: int) -> Setting:
    rng = random.Random(seed)
    config = random_config(rng)
    dim, earlier = rng.choice([3, 4, 6]), rng.choice([0, 1, 3]) + config["memory_batches"]
    if config["direction_mode"] == "adaptive":
        earlier = max(earlier, config["update_every"])
    sizes = [rng.choice([2, 3, 4]) for _ in range(earlier)] + [rng.choice([2, 2, 3, 4, 6, 9])]
    given = config["total_steps"] is None and rng.random() < 0.9
    batches = [random_batch(rng, size, dim, given) for size in sizes]
    logits = random_logits(rng, config)
    setting = Setting(config, batches, *logits)
    make_special(rng, setting)
    move_off_kinks(rng, setting)
    return setting


def random_config(rng: random.Random) -> dict[str, Any]:
    choose = rng.choice
    kappa = choose([0.0, 0.5, 4.0, 12.0, 200.0, 200.0])
    config = {
        "base": rng.choices(BASES, BASE_ODDS)[0],
        "negative_statistic": choose(["hardest", "hardest", "topk_mean", "quantile", "mean"]),
        "topk": choose([1, 2, 3, 50]),
        "quantile": choose([0.05, 0.5, 0.95, 1.0]),
        "margin_scale": choose(["none", "negative_std"]),
        "false_negative_margin": choose([None, None, None, -0.3, 0.0, 0.1, 2.0]),
        "curve": choose(["bell", "bell", "bell", "uniform", "hard"]),
        "center": rng.uniform(-0.5, 0.5),
        "steepness_start": kappa,
        "steepness_end": choose([kappa, kappa + 5.0, 200.0, 0.0]),
        "hard_floor": choose([0.0, 0.3, 0.9]),
        "max_weight": choose([1.0, 1.3, 2.0, 5.0]),
        "normalization": choose(["l2", "l2", "sum", "rss", "none"]),
        "combination": choose(["multiply", "multiply", "add"]),
        "direction_mode": choose(["adaptive", "adaptive", "fixed", "off"]),
        "direction_fixed": choose([0.0, 0.3, 0.8, 1.0]),
        "window": choose([1, 2, 200]),
        "update_every": choose([1, 2, 3]),
        "smoothing": choose([0.0, 0.5, 0.9]),
        "sensitivity": choose([0.05, 0.3]),
        "min_weight": choose([0.0, 0.1, 0.4]),
        "temperature": choose([1.0, 0.2, 0.07, 0.025, 0.024, 0.01]),
        "temperature_end": choose([None, 0.03]),
        "learnable_temperature": False,
        "triplet_margin": choose([0.0, 0.2, 0.2, 3.0]),
        "over_negatives": "hardest",
        "hn_alpha": choose([0.0, 0.5, 1.0]),
        "hn_beta": choose([0.0, 0.25, 1.5]),
        "positive_polynomial": (0.5, -0.7, 0.2),
        "negative_polynomial": (0.03, -0.4, 0.9),
        "memory_batches": choose([0, 0, 1, 2]),
        "memory_modalities": choose(["both", "text"]),
        "total_steps": choose([None, None, 3, 10]),
    }
    return config | that_fit(rng, config)


def that_fit(rng: random.Random, config: dict[str, Any]) -> dict[str, Any]:
    """What a base loss asks of the other fields."""
    if config["base"] == "triplet":
        return {"over_negatives": rng.choice(["hardest", "sum"]), "temperature_end": None}
    if config["base"] in oracle.OWN_WEIGHTS:
        own = {"curve": "uniform", "direction_mode": "off", "margin_scale": "none", "combination": "multiply"}
        own |= {"temperature_end": None}
        if config["base"] == "wei2020_calibrated":
            own |= {"triplet_margin": rng.choice([0.1, 0.2, 0.2, 0.3, 3.0])}
        elif rng.random() < 0.3:
            own |= {"positive_polynomial": (0.4, -0.3, 0.0, 0.1), "negative_polynomial": (0.1, 0.8)}
        return own
    if config["base"] == "sigmoid":
        return {"temperature_end": None}
    if rng.random() < 0.25:
        return {"learnable_temperature": True, "temperature_end": None}
    return {}


def random_batch(rng: random.Random, size: int, dim: int, given: bool) -> Batch:
    image = [of_length(rng, [rng.gauss(0, 1) for _ in range(dim)]) for _ in range(size)]
    noise = rng.choice([0.3, 0.7, 2.0])
    text = [of_length(rng, [x + rng.gauss(0, noise) for x in row]) for row in image]
    labels = None
    if rng.random() < 0.75:
        labels = [rng.randrange(max(2, size - 1)) for _ in range(size)]
        labels[0], labels[1] = 0, 1
    progress = rng.choice([0.0, rng.random(), 1.0]) if given else None
    return Batch(image, text, labels, progress, [rng.randrange(1000) for _ in range(size)])


def of_length(rng: random.Random, row: list[float]) -> list[float]:
    factor = rng.uniform(0.3, 4.0) / math.sqrt(sum(x * x for x in row))
    return [factor * x for x in row]


def random_logits(rng: random.Random, config: dict[str, Any]) -> tuple[str, float, float]:
    """Where scale and bias come from, and what they are."""
    bias = rng.choice([-10.0, -2.0, 0.0])
    if config["learnable_temperature"]:
        return "learned", 1 / max(config["temperature"], 0.024), 0.0
    if config["base"] == "sigmoid":
        return rng.choice(["learned", "tensor", "number"]), rng.choice([1.0, 10.0, 60.0]), bias
    return rng.choice(["temperature", "temperature", "tensor", "number"]), rng.choice([5.0, 30.0, 90.0]), bias


def make_special(rng: random.Random, setting: Setting) -> None:
    """Ties, and anchors whose only negatives are in the queue, in some of the settings."""
    last, config = setting.last, setting.config
    if rng.random() < 0.25:
        last.text[-1] = list(last.text[0])
    if rng.random() < 0.05:
        last.image[-1] = list(last.image[0])
    if config["memory_batches"] and rng.random() < 0.3:
        last.labels = [1] * len(last.image)
        setting.batches[-2].labels = list(range(len(setting.batches[-2].image)))
        config["false_negative_margin"] = None


def move_off_kinks(rng: random.Random, setting: Setting) -> None:
    for _ in range(50):
        setting.steps = train(setting)
        if setting.steps[-1] is None:
            setting.config["false_negative_margin"] = None
        elif all(abs(number) > NEAR for number in kinks(setting.steps[-1])):
            return
        else:
            setting.moved += 1
            noise = 0.01 * 1.2**setting.moved
            for row in (*setting.last.image, *setting.last.text):
                row[:] = [x + rng.gauss(0, noise) for x in row]
    raise AssertionError("a setting that stays at a kink")


def train(setting: Setting) -> list[Any]:
    """All batches through the oracle, with its own queue, counter and controller."""
    p = dict(setting.config)
    if setting.logits != "temperature":
        p |= {"scale": setting.scale, "bias": setting.bias}
    steps, queue, gaps, done = [], [], (), 0
    for number, batch in enumerate(setting.batches):
        # a pair without a label has one that no other has
        labels = batch.labels or [(number, i) for i in range(len(batch.image))]
        t = batch.progress
        if t is None and p["total_steps"] is not None:
            t = min(done / p["total_steps"], 1.0)
        kept = queue[len(queue) - min(len(queue), p["memory_batches"]) :]
        at = oracle.step(batch.image, batch.text, labels, p, t=t, queue=kept, gaps=gaps)
        steps.append(at)
        if at is not None:
            at.t, at.labels, at.done = t, labels, done
            queue.append(
                oracle.SimpleNamespace(image=batch.image, text=batch.text, labels=labels, ids=batch.ids)
            )
            gaps, done = at.gaps, done + 1
    return steps


def traits(setting: Setting) -> set[str]:
    """What is special about a setting, from what came of it."""
    config, at, last = setting.config, setting.steps[-1], setting.last
    both = at.sides
    kappa, labels = at.stage.kappa, last.labels
    found = {
        f"base {config['base']}": True,
        f"statistic {config['negative_statistic']}": True,
        f"normalization {config['normalization']}": True,
        f"curve {config['curve']}": True,
        f"margin scale {config['margin_scale']}": any(side.scale != 1.0 for side in both)
        or config["margin_scale"] == "none",
        f"logits {setting.logits}": True,
        f"queue {config['memory_modalities']}": bool(at.queue),
        "triplet sum": config["over_negatives"] == "sum",
        "two pairs": len(last.image) == 2,
        "duplicate labels": labels is not None and len(set(labels)) < len(labels),
        "no labels": labels is None,
        "tie of two negatives": last.text[-1] == last.text[0] or last.image[-1] == last.image[0],
        "kappa 0": kappa == 0.0 and config["curve"] != "uniform",
        "kappa 200": kappa == 200.0 and config["curve"] != "uniform",
        "no hard floor": config["hard_floor"] == 0.0 and config["curve"] == "bell",
        "anchor without negatives": any(not N for side in both for N in side.negatives),
        "direction without negatives": any(not side.n for side in both),
        "false negatives left out": any(j for side in both for j in side.false),
        "clamped weight": any(r > config["max_weight"] + 1e-9 for side in both for r in side.before_clamp),
        "weight at the floor": any(0 < w <= 1e-6 for side in both for w in side.pair_weight),
        "fixed direction weight": config["direction_mode"] == "fixed" and at.weights[0] != 0.5,
        "adapted direction weight": config["direction_mode"] == "adaptive"
        and abs(at.weights[0] - 0.5) > 1e-3,
        "add": config["combination"] == "add",
        "add with adapted weight": config["combination"] == "add" and abs(at.weights[0] - 0.5) > 1e-3,
        "scheduled temperature": config["temperature_end"] is not None and 0 < (at.t or 0) < 1,
        "counted progress": last.progress is None and at.t is not None,
        "unknown progress": at.t is None,
        "earlier batch refused": None in setting.steps,
        "other polynomials": config["negative_polynomial"] == (0.1, 0.8),
        "moved off a kink": setting.moved > 0,
    }
    return {name for name, holds in found.items() if holds}


def distribution(settings: list[Setting]) -> Counter[str]:
    return Counter(name for setting in settings for name in traits(setting))
