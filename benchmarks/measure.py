"""Times that alternate within one run, peaks of memory, and what the machine was doing meanwhile."""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

# read when the profiler first starts: its own messages would stand between the lines of a table
os.environ.setdefault("KINETO_LOG_LEVEL", "6")

Work = Callable[[], object]


class Ratio(NamedTuple):
    """Median and quartiles of the ratios of neighbours in time, and how many there were."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, ours: Sequence[float], other: Sequence[float]) -> Ratio:
        """Ratio of two columns of times, taken row by row."""
        low, median, high = statistics.quantiles([a / b for a, b in zip(ours, other, strict=True)], n=4)
        return cls(median, low, high, len(ours))

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"


def seconds(work: Work, device: torch.device) -> float:
    """Wall clock of one call, until the device is done."""
    synchronize(device)
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


def synchronize(device: torch.device) -> None:
    """Wait for the device; nothing on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def alternate(
    works: Mapping[str, Work],
    device: torch.device,
    *,
    budget_s: float = 0.0,
    rounds: int = 2,
    limit_s: float = math.inf,
) -> dict[str, list[float]]:
    """Times of all contestants, once each a round, so that a busy machine slows all alike.

    Args:
        works: the contestants, already warm.
        device: where they compute.
        budget_s: rounds go on until it is used up,
        rounds: and there were so many,
        limit_s: unless that takes longer than this; two there are always.
    """
    names = list(works)
    times: dict[str, list[float]] = {name: [] for name in names}
    start, done, spent = time.perf_counter(), 0, 0.0
    while done < 2 or ((spent < budget_s or done < rounds) and spent < limit_s):
        # everyone goes first, and comes after everyone else, equally often
        names = [*names[1:], names[0]] if done % 2 else names[::-1]
        for name in names:
            times[name].append(seconds(works[name], device))
        done, spent = done + 1, time.perf_counter() - start
    return times


def peak_bytes(work: Work, device: torch.device) -> int:
    """Most memory alive at once during a call, beyond what was alive before it.

    On a CPU the allocations and frees that the profiler records, added up in the order of time: exact, the
    same at every repetition, and blind to what the C library keeps for itself; the resident size of the
    process is none of these (``resident_peak_bytes`` checks one by the other). On a GPU the caching
    allocator's own counter.
    """
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        work()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    changes = [(event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]"]
    alive = peak = 0
    for _, change in sorted(changes, key=lambda of: of[0]):
        alive += change
        peak = max(peak, alive)
    return peak


def resident_peak_bytes(work: Work) -> int:
    """Growth of the peak resident size during a call; Linux only.

    Only a process that started with ``MALLOC_MMAP_THRESHOLD_=65536`` shows it: otherwise the C library
    still holds what earlier calls freed, and a later peak fits into that.
    """
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    work()
    return _status("VmHWM") - before


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def hottest(work: Work, rows: int = 14) -> str:
    """Table of the operations that take most of a call, by their own time."""
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        work()
    table = recorded.key_averages().table(
        sort_by="self_cpu_time_total", row_limit=rows, max_name_column_width=40
    )
    return str(table)


def machine(device: torch.device) -> str:
    """One line: processor, threads in use, load, library."""
    name = "unknown processor"
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{name}, {os.cpu_count()} CPUs, {torch.get_num_threads()} thread(s), load {load}, "
        f"torch {torch.__version__}"
    )
