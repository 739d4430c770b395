"""Cost of the run log: time of ``log_step``, bytes per row, processor time of the writer thread.

Run: python benchmarks/run_log.py [--steps 2000] [--batch 128] [--step-ms 7]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from uwml_core.runlog.reader import Run
from uwml_core.runlog.writer import NullLogger, RunLogger
from uwml_core.weighting import difficulty_weight, relative_weight

DIRECTIONS = ("i2t", "t2i")
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


def diagnostics(batch: int, progress: float) -> SimpleNamespace:
    """Fresh tensors of the size and kind that a loss gives."""
    positive = 0.3 + 0.4 * progress + 0.05 * torch.randn(2, batch)
    negative = 0.3 + 0.1 * progress + 0.05 * torch.randn(2, batch)
    margin = positive - negative
    weight = difficulty_weight(margin)
    return SimpleNamespace(
        directions=DIRECTIONS,
        batch_size=batch,
        negative_index=torch.randint(0, batch, (2, batch)),
        positive_similarity=positive,
        negative_similarity=negative,
        margin=margin,
        pair_loss=torch.log1p(20.0 * torch.exp(-margin / 0.07)),
        pair_weight=weight,
        weight=relative_weight(weight),
        gradient_share=torch.rand(2, batch) / batch,
        loss=float(margin.mean()),
        progress=progress,
        steepness=2.0 + 10.0 * progress,
        stage_factor=0.5,
        temperature=0.07,
        negatives_per_anchor=float(batch - 1),
        masked_false_negatives=0,
        **{name: torch.rand(2, dtype=torch.float64) for name in PER_DIRECTION},
    )


def work(matrix: torch.Tensor, milliseconds: float) -> None:
    """Matrix products for a while, so that caches are as cold as in training."""
    end = time.perf_counter() + milliseconds / 1e3
    while time.perf_counter() < end:
        matrix @ matrix


def logged_loop(log: RunLogger | NullLogger, steps: int, batch: int, step_ms: float) -> np.ndarray:
    """Train without a model; time of each ``log_step`` in microseconds."""
    matrix, took = torch.randn(400, 400), np.empty(steps)
    for step in range(steps):
        work(matrix, step_ms)
        last = diagnostics(batch, step / steps)
        ids, captions = torch.randint(0, 4000, (batch,)), torch.randint(0, 5, (batch,))
        scalars: dict[str, Any] = {"learning_rate": 1e-3, "gradient_norm": torch.tensor(1.0)}
        start = time.perf_counter()
        log.log_step(last, item_ids=ids, captions=captions, epoch=step // 500, phase="train", **scalars)
        took[step] = (time.perf_counter() - start) * 1e6
    return took


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--step-ms", type=float, default=7.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    # what the machine itself takes away, so that a busy one is not blamed on the log
    idle = logged_loop(NullLogger(), options.steps, options.batch, options.step_ms)
    with tempfile.TemporaryDirectory() as root:
        with RunLogger(root, "bench") as log:
            all_before, own_before = time.process_time(), time.thread_time()
            took = logged_loop(log, options.steps, options.batch, options.step_ms)
            own = time.thread_time() - own_before
            log.flush()
            thread = time.process_time() - all_before - own
        run = Run(Path(root) / "bench")
        rows = run.table("pairs", columns=["step"]).num_rows
        size = sum(part.size for part in run.parts("pairs"))
    print(f"log_step at batch {options.batch}, {options.steps} steps of {options.step_ms:g} ms")
    print(
        f"  median {np.median(took):.1f} us, mean {took.mean():.1f} us, p99 {np.percentile(took, 99):.0f} us"
    )
    print(f"  largest {took.max() / 1e3:.2f} ms at step {took.argmax()}")
    print(f"  without a log: median {np.median(idle):.1f} us, largest {idle.max() / 1e3:.2f} ms")
    print(f"  pairs {size / rows:.1f} bytes a row, {rows} rows")
    print(f"  writer thread {1e6 * thread / options.steps:.0f} us of processor time a step")


if __name__ == "__main__":
    main()
