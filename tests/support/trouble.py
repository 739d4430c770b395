"""``uwml`` in one of several processes, whose second one gets into trouble at a step.

usage: trouble.py kill|stop|nan STEP WORDS...
"""

from __future__ import annotations

import os
import signal
import sys

import torch

from uwml_core.__main__ import main
from uwml_core.training.batches import Batch, BatchSource
from uwml_core.training.encoders import TwoTower


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    signal.raise_signal(signal.SIGTERM)


def nan() -> None:
    forward = TwoTower.forward

    def broken(self: TwoTower, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        pictures, texts = forward(self, *inputs)
        return pictures * torch.nan, texts

    TwoTower.forward = broken  # type: ignore[method-assign]


def trouble_at(step: int, happen: str) -> None:
    """Let it happen in the process of rank 1 when the step's batch is asked for."""
    batch_at = BatchSource.at

    def at(self: BatchSource, wanted: int) -> Batch:
        if wanted == step and os.environ["RANK"] == "1":
            {"kill": kill, "stop": stop, "nan": nan}[happen]()
        return batch_at(self, wanted)

    BatchSource.at = at  # type: ignore[method-assign]


if __name__ == "__main__":
    trouble_at(int(sys.argv[2]), sys.argv[1])
    sys.exit(main(sys.argv[3:]))
