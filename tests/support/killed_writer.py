"""A process that logs until it is killed, or kills itself at one of its file operations.

Run: python -m tests.support.killed_writer ROOT FLUSH_SECONDS LAST_STEP OPERATION
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.steps import log_batches
from uwml_core.runlog import compactor, makers
from uwml_core.runlog.writer import RunLogger

RUN_ID = "killed"
BATCH = 16
PER_EPOCH = 40
CHECKPOINT_EVERY = 25


def die_at(operation: int) -> None:
    """Kill this process before its n-th move or deletion of a file, or right after it where n is odd."""
    left = [operation]

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0 and operation % 2 == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*arguments, **named)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    os.replace = deadly(os.replace)
    pathlib.Path.unlink = deadly(pathlib.Path.unlink)  # type: ignore[method-assign]


def checkpoint(root: Path) -> int:
    """The step from which a resume goes on."""
    path = root / "checkpoint"
    return int(path.read_text()) if path.exists() else 0


def main() -> None:
    """Log to the last step, a checkpoint now and then; each step on standard output with the time."""
    root, seconds, last, operation = Path(sys.argv[1]), *map(float, sys.argv[2:])
    # files are joined and rollups written all the time
    compactor.FAN_IN = 4
    makers.PATIENCE = 2
    if operation:
        die_at(int(operation))
    first = checkpoint(root)
    resume = first if (root / RUN_ID / "run.json").exists() else None
    log = RunLogger(root, RUN_ID, resume_from_step=resume, flush_seconds=seconds, flush_steps=8)
    for step in range(first, int(last)):
        log_batches(log, [step], per_epoch=PER_EPOCH, items=50, batch=BATCH)
        print(step, time.monotonic(), flush=True)
        if step % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            log.log_eval(split="val", metrics=[("i2t", "R@1", 1.0 * step, 16, 0.0)], epoch=step // PER_EPOCH)
            log.log_ranks(split="val", direction="i2t", item_ids=[1, 2], captions=None, ranks=[1.0, 2.5])
            log.flush()
            (root / "checkpoint.new").write_text(str(step + 1))
            (root / "checkpoint.new").rename(root / "checkpoint")
        time.sleep(0.002)
    log.close()


if __name__ == "__main__":
    main()
