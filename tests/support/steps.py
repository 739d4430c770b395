"""Hand-made steps for tests of the log, and a child process that logs until it is killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

ANCHOR_FLOATS = (
    "positive_similarity",
    "negative_similarity",
    "margin",
    "pair_loss",
    "pair_weight",
    "weight",
    "gradient_share",
)
PER_DIRECTION = (
    "direction_loss",
    "gap",
    "gap_window",
    "direction_weight",
    "ess",
    "clamped_share",
    "no_negative_count",
    "accuracy",
)


def a_step(step: int = 0, batch: int = 2, **changes: Any) -> SimpleNamespace:
    """Diagnostics whose numbers tell where they came from: step + field / 10 + direction + anchor."""
    place = np.arange(2)[:, None] * 100 + np.arange(batch)[None, :]
    anchors = {
        name: (step + k / 10 + place).astype(np.float32) for k, name in enumerate(ANCHOR_FLOATS, start=1)
    }
    both = {name: np.array([step + k / 10, step - k / 10]) for k, name in enumerate(PER_DIRECTION, start=1)}
    values = {
        "directions": ("i2t", "t2i"),
        "negative_index": np.broadcast_to((np.arange(batch) + 1) % batch, (2, batch)),
        "loss": step + 0.5,
        "batch_size": batch,
        "progress": step / 100,
        "steepness": 2.0,
        "stage_factor": 0.25,
        "temperature": 0.07,
        "negatives_per_anchor": batch - 1.0,
        "masked_false_negatives": 0,
        **anchors,
        **both,
    }
    return SimpleNamespace(**{**values, **changes})


def log_steps(log: Any, steps: Any, batch: int = 2, **changes: Any) -> None:
    """Log ``a_step`` for each step number."""
    ids = np.arange(10, 10 + batch)
    for step in steps:
        log.log_step(a_step(step, batch), item_ids=ids, step=step, **changes)


def a_batch(step: int, batch: int = 8, **changes: Any) -> SimpleNamespace:
    """A step with margins all over the place; each step draws for itself."""
    random = np.random.default_rng(step)

    def draw(low: float, high: float) -> np.ndarray:
        return random.uniform(low, high, (2, batch)).astype(np.float32)

    drawn = {
        "margin": draw(-0.5, 0.8),
        "weight": draw(0.0, 2.0),
        "pair_loss": draw(0.0, 9.0),
        "gradient_share": draw(0.0, 1.0 / batch),
    }
    return a_step(step, batch, **{**drawn, **changes})


def log_batches(log: Any, steps: Any, per_epoch: int = 5, items: int = 12, batch: int = 8) -> None:
    """Log ``a_batch`` for each step number, with items that the step and the process draw."""
    for step in steps:
        ids = np.random.default_rng(1000 + step + 10_000 * log.rank).integers(0, items, batch)
        log.log_step(a_batch(step, batch), item_ids=ids, step=step, epoch=step // per_epoch)


def eventually(holds: Callable[[], bool], patience_s: float = 60.0) -> bool:
    """Whether a condition comes true; waits long, because a busy machine is no error."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.01)
    return holds()


CHILD = """
import sys, time
import numpy as np
from tests.support.steps import a_step
from uwml_core.runlog.writer import RunLogger

root, first, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
log = RunLogger(root, "killed", resume_from_step=first or None, flush_seconds=seconds, flush_steps=20)
for step in range(first, 100_000):
    log.log_step(a_step(step, 16), item_ids=np.arange(16), step=step, epoch=step // 50, phase="train")
    print(step, time.monotonic(), flush=True)
    if step % 50 == 49:
        log.log_eval(split="val", metrics=[("i2t", "R@1", 1.0 * step, 16, 0.0)], epoch=step // 50)
        log.log_ranks(split="val", direction="i2t", item_ids=[1, 2], captions=None, ranks=[1.0, 2.5])
    time.sleep(0.002)
"""
