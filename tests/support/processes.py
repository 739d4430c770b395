"""Run a function in several processes that torch.distributed joins, and bring back what each returns."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import multiprocessing

TIMEOUT_S = 240
# imports are most of what a process costs: a server does them once, and each process is a fork of it
PRELOADED = ["torch.distributed", "torch.nn.parallel", "uwml_core.integrations.step_log", "uwml_core.losses"]
START = "forkserver" if sys.platform == "linux" else "spawn"


def run_in_processes(function: Callable[[], Any], size: int, folder: Path) -> list[Any]:
    """What ``function``, importable by name, returns in each of ``size`` processes, in rank order.

    The processes talk over gloo and meet in a file, so that no port is taken.

    Raises:
        TimeoutError: if they have not ended after four minutes; they are killed.
    """
    multiprocessing.set_forkserver_preload(PRELOADED)
    context = multiprocessing.start_processes(
        _one, (function, size, folder), nprocs=size, join=False, start_method=START
    )
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while not context.join(timeout=1):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{function.__name__} has not ended after {TIMEOUT_S} s")
    finally:
        for process in context.processes:
            if process.is_alive():
                process.kill()
    return [torch.load(folder / f"result{rank}", weights_only=False) for rank in range(size)]


def _one(rank: int, function: Callable[[], Any], size: int, folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'meeting'}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=TIMEOUT_S / 2),
    )
    try:
        torch.save(function(), folder / f"result{rank}")
    finally:
        dist.destroy_process_group()
