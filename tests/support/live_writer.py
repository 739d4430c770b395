"""A process that writes a plausible run, ten steps a second, until its standard input is closed.

Run: python -m tests.support.live_writer ROOT RUN_ID
"""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.synthetic import Plan, World, end_epoch
from uwml_core.runlog.items import write_items
from uwml_core.runlog.writer import RunLogger

ROOT = Path(__file__).resolve().parents[2]
STEP_S = 0.1
EPOCHS, PER_EPOCH = 400, 30


@contextmanager
def writing(root: Path, run_id: str, *, within_s: float = 60.0) -> Iterator[subprocess.Popen[bytes]]:
    """Have a process write a run; yields it as soon as its first evaluation can be read."""
    command = [sys.executable, "-m", "tests.support.live_writer", str(root), run_id]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE)
    try:
        deadline = time.monotonic() + within_s
        while not any((root / run_id / "neighbors").glob("*.parquet")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the writer of {run_id} has written no epoch within {within_s} s")
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.communicate(timeout=10)


def main() -> None:
    """Write one epoch at once, then step by step."""
    root, run_id = Path(sys.argv[1]), sys.argv[2]
    plan = Plan(run_id=run_id, epochs=EPOCHS, steps_per_epoch=PER_EPOCH)
    world, config = World(plan, plan.steps), plan.loss_config
    settings = {"loss": config.to_dict(), "train": {"epochs": EPOCHS, "seed": plan.seed}}
    described = {
        "config": settings,
        "total_steps": plan.steps,
        "data_fingerprint": write_items(root, **world.items()),
    }
    with RunLogger(root, run_id, flush_seconds=0.5, **described) as log:
        for step in range(plan.steps):
            log.log_step(**world.step(step))
            if (step + 1) % PER_EPOCH == 0:
                end_epoch(log, world, plan, step)
            if step >= PER_EPOCH and select.select([sys.stdin], [], [], STEP_S)[0]:
                break


if __name__ == "__main__":
    main()
