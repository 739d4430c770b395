"""Small run folders with many illnesses at once, by hand: no model, no training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.steps import a_step
from uwml_core.runlog.writer import Nearest, RunLogger
from uwml_core.weighting import UWMLConfig

STEPS, PER_EPOCH, BATCH, ITEMS = 80, 20, 8, 40


def anchors(random: np.random.Generator, low: float = -0.9, high: float = 0.9) -> dict[str, Any]:
    """Similarities of a step, all over a range, and what follows from them."""
    positive, negative = random.uniform(low, high, (2, 2, BATCH)).astype(np.float32)
    return {
        "positive_similarity": positive,
        "negative_similarity": negative,
        "margin": positive - negative,
        "pair_loss": np.full((2, BATCH), 3.0, np.float32),
        "weight": random.uniform(0.5, 1.5, (2, BATCH)).astype(np.float32),
    }


def log_all(log: RunLogger, of_step: Callable[[int, np.random.Generator], dict[str, Any]]) -> None:
    """Log every step; what is no field of ``a_step`` is a scalar of the log."""
    for step in range(STEPS):
        given = of_step(step, np.random.default_rng(step))
        scalars = {name: given.pop(name) for name in SCALARS if name in given}
        ids = given.pop("item_ids", np.arange(BATCH))
        log.log_step(a_step(step, BATCH, **given), item_ids=ids, epoch=step // PER_EPOCH, **scalars)


SCALARS = ("gradient_norm", "step_time_ms", "effective_batch_size")


def both(first: float, second: float) -> np.ndarray:
    """A number of each direction."""
    return np.array([first, second])


def broken_steps(root: Path) -> Path:
    """Numbers that are not finite, gradients that jump, slow steps, one direction, no negatives."""

    def of_step(step: int, random: np.random.Generator) -> dict[str, Any]:
        return {
            **anchors(random, -3.0, 3.0),
            "loss": float("nan") if step in (30, 31) else 1.0 + 0.01 * step,
            "gradient_norm": 40.0 + step if step % 8 == 0 else 1.0,
            "step_time_ms": 1e-3 if step < 40 else 1e-2 + 1e-5 * step,
            "effective_batch_size": 64.0,
            "temperature": 0.003,
            "negatives_per_anchor": 7.0,
            "accuracy": both(0.01, 0.02 + 1e-4 * step),
            "no_negative_count": both(4.0, step % 3),
            "direction_weight": both(0.999, 0.001),
            "dead_share": both(0.6, 0.7),
            "wrong_sign_share": both(0.1, 0.2 + 1e-3 * step),
            "ess": both(0.5 + 0.01 * step, 6.0),
        }

    with RunLogger(root, "broken") as log:
        log_all(log, of_step)
        for epoch, recall in enumerate((10.0, 30.0, 20.0, 45.0)):
            rows = [(d, "R@1", recall + k, 100, 0.0) for k, d in enumerate(log.directions)]
            log.log_eval(split="val", metrics=rows, step=PER_EPOCH * (epoch + 1) - 1, epoch=epoch)
    return log.path


def ill_curves(root: Path, **described: Any) -> Path:
    """A gradient that vanishes, a lag, jitter, a falling scale, easy negatives, ties; learned by heart."""

    def of_step(step: int, random: np.random.Generator) -> dict[str, Any]:
        drawn = anchors(random)
        drawn["margin"] = random.uniform(0.05, 0.3, (2, BATCH)).astype(np.float32)
        return {
            **drawn,
            "loss": 3.0 - 0.001 * step,
            "gradient_norm": 10.0 + step if step < 2 else 0.1 + 1e-4 * step,
            "gap": both(0.3 + random.normal(0.0, 0.01), 0.0),
            "direction_weight": both(0.3, 0.7) if step % 2 else both(0.71, 0.29),
            "temperature": 0.07 * 1.02**step,
            "accuracy": both(0.94, 0.96),
            "negatives_per_anchor": 7.0,
            "ess": both(6.0, 6.0),
            "no_negative_count": both(0.0, 0.0),
        }

    with RunLogger(root, "curves", **described) as log:
        log_all(log, of_step)
        for epoch in range(STEPS // PER_EPOCH):
            _learned_by_heart(log, epoch, np.random.default_rng(100 + epoch))
    return log.path


def _learned_by_heart(log: RunLogger, epoch: int, random: np.random.Generator) -> None:
    step = PER_EPOCH * (epoch + 1) - 1
    metrics = [
        (direction, f"R@{k}", (60.0 + k + 2 * side) / (epoch + 1), 1000 + side, 0.02 + 0.01 * side)
        for side, direction in enumerate(log.directions)
        for k in (1, 5, 10)
    ]
    log.log_eval(split="val", metrics=metrics, step=step, epoch=epoch)
    ids, nearest = np.arange(ITEMS), {}
    for direction in log.directions:
        negative = np.stack([np.resize(random.permutation(np.delete(ids, k)), 5) for k in ids])
        margin = random.normal(0.05 * epoch, 0.05, ITEMS)
        nearest[direction] = Nearest(
            negative, 0.5 - margin[:, None] - 0.02 * np.arange(5), np.full(ITEMS, 0.5)
        )
    splits = ["val" if k % 4 == 3 else "train" for k in ids]
    log.log_neighbors(nearest=nearest, item_ids=ids, splits=splits, step=step, epoch=epoch)


def collapsed(root: Path) -> Path:
    """Similarities that hardly differ."""
    with RunLogger(root, "collapsed") as log:
        log_all(log, lambda step, random: {**anchors(random, 0.5, 0.503), "loss": 0.2 + 1e-4 * step})
    return log.path


def bad_data(root: Path) -> Path:
    """Every seventh item is never right, and captions are shared by items of several labels."""
    base = np.random.default_rng(0).normal(0.2, 0.05, ITEMS)
    base[::7] -= 0.6

    def of_step(step: int, random: np.random.Generator) -> dict[str, Any]:
        ids = random.choice(ITEMS, BATCH, replace=False)
        margin = (base[ids] + random.normal(0.0, 0.02, (2, BATCH))).astype(np.float32)
        return {**anchors(random), "margin": margin, "item_ids": ids}

    captions = [[f"thing {k // 3}", " Thing 1" if k % 5 == 0 else f"only {k}"] for k in range(ITEMS)]
    with RunLogger(root, "data") as log:
        log.log_items(
            item_ids=list(range(ITEMS)),
            item_keys=[f"key {k}" for k in range(ITEMS)],
            labels=[k // 2 for k in range(ITEMS)],
            captions=captions,
            splits=["train" if k < ITEMS - 5 else "val" for k in range(ITEMS)],
        )
        log_all(log, of_step)
    return log.path


def moving(root: Path) -> Path:
    """A text encoder that stands still, pictures that move, and a queue of three epochs."""
    config = {"loss": UWMLConfig(memory_batches=3 * PER_EPOCH).to_dict()}
    texts = np.random.default_rng(1).normal(size=(ITEMS, 8))
    with RunLogger(root, "moving", config=config) as log:
        log_all(log, lambda step, random: anchors(random))
        for epoch in range(-1, STEPS // PER_EPOCH):
            pictures = texts + np.random.default_rng(epoch + 5).normal(0.0, 1.0, texts.shape)
            vectors = {"image": pictures, "text": texts}
            log.log_snapshot(
                embeddings={k: v / np.linalg.norm(v, axis=1, keepdims=True) for k, v in vectors.items()},
                item_ids=np.arange(ITEMS),
                labels=np.arange(ITEMS),
                splits="train",
                step=PER_EPOCH * (epoch + 1) - 1,
                epoch=epoch,
            )
    return log.path


ILL_RUNS = {
    "broken": broken_steps,
    "curves": ill_curves,
    "collapsed": collapsed,
    "data": bad_data,
    "moving": moving,
}
