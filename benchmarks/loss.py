"""Time and peak memory of the weighted loss against other losses, forward and backward, one thread.

    python -m benchmarks.loss                        all settings and sizes
    python -m benchmarks.loss --settings float32 --sizes 512 2048 --seconds 3

Against open_clip's ClipLoss, plain InfoNCE from one matrix product, and pytorch-metric-learning's NTXentLoss.
All start from the same unnormalised features. The losses take turns within one run, so that a busy machine
slows all alike, and each ratio is of neighbours in time: ours over the other's, median [quartiles].
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass

import torch

from benchmarks.measure import Ratio, Work, alternate, hottest, machine, peak_bytes, resident_peak_bytes
from benchmarks.peers import (
    CLIP,
    LABELLED,
    OURS,
    PLAIN,
    Loss,
    Setting,
    contestants,
    features,
    largest_disagreement,
)

SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
FEWER, FEWEST = (512, 2048, 8192), (512, 2048)
SETTINGS: dict[str, tuple[Setting, tuple[int, ...]]] = {
    "float32": (Setting(), SIZES),
    "bf16": (Setting(dtype=torch.bfloat16), SIZES),
    "ntxent": (Setting(cubic=True), (128, 256, 512)),
    "learned": (Setting(learned_scale=True), FEWER),
    "attached": (Setting(attached=True), FEWEST),
    "compiled": (Setting(compiled=True), FEWEST),
    "bf16-compiled": (Setting(dtype=torch.bfloat16, compiled=True), FEWEST),
}
# How many budgets the fewest rounds may take.
_PATIENCE = 10
# What ours may take at most of theirs, in float32, eager, from this batch on.
BARS_FROM = 512
TIME_BARS = ((OURS, PLAIN, 1.0), (OURS, CLIP, 0.8), (LABELLED, PLAIN, 1.2))
MEMORY_BARS = ((OURS, PLAIN, 1.25), (LABELLED, PLAIN, 1.25))


class Contest:
    """Forward and backward of every loss over the same features."""

    def __init__(self, batch: int, dim: int, setting: Setting, device: torch.device) -> None:
        self.batch, self.device = batch, device
        self._leaves = features(batch, dim, setting, device)
        losses = contestants(batch, setting, device)
        self.works = {name: self._work(loss) for name, loss in losses.items()}

    def forget(self) -> None:
        """Drop the gradients, so that what comes next pays for its own."""
        for leaf in self._leaves:
            leaf.grad = None

    def _work(self, loss: Loss) -> Work:
        def work() -> None:
            self.forget()
            loss(*self._leaves).backward()  # type: ignore[no-untyped-call]

        return work


@dataclass(frozen=True, kw_only=True)
class Result:
    """Times in seconds, one a round, and peak bytes, by loss."""

    batch: int
    times: dict[str, list[float]]
    peaks: dict[str, int]

    def ratio(self, ours: str, other: str) -> Ratio:
        """Time of one over time of the other."""
        return Ratio.of(self.times[ours], self.times[other])

    def lines(self) -> list[str]:
        """One line per loss, ratios of all of ours to all of theirs."""
        ours, others = ([n for n in self.times if n.startswith(OURS) is mine] for mine in (True, False))
        rows = []
        for name, times in self.times.items():
            cells = [f"{1e3 * statistics.median(times):9.2f} {self.peaks[name] / 2**20:8.1f} {len(times):4d}"]
            for other in others if name in ours else ():
                cells.append(f"{other} {self.ratio(name, other)}, {self.peaks[name] / self.peaks[other]:.2f}")
            rows.append(f"{self.batch:6d} {name:20s} {'   '.join(cells)}")
        return rows


def run(contest: Contest, *, budget_s: float, rounds: int) -> Result:
    """Measure one size."""
    peaks = {}
    for name, work in contest.works.items():
        # the first call compiles, and fills caches that outlive it
        work()
        contest.forget()
        peaks[name] = peak_bytes(work, contest.device)
    limit_s = _PATIENCE * budget_s
    times = alternate(contest.works, contest.device, budget_s=budget_s, rounds=rounds, limit_s=limit_s)
    return Result(batch=contest.batch, times=times, peaks=peaks)


def missed(result: Result) -> list[str]:
    """Print how the bars stand at this size; names of the losses that miss one."""
    failed = []
    for ours, other, most in TIME_BARS:
        ratio = result.ratio(ours, other)
        failed += _verdict(ours, f"time of {other}", ratio.median, most)
    for ours, other, most in MEMORY_BARS:
        failed += _verdict(ours, f"peak memory of {other}", result.peaks[ours] / result.peaks[other], most)
    return failed


def _verdict(ours: str, what: str, ratio: float, most: float) -> list[str]:
    kept = ratio <= most
    print(f"       {'kept' if kept else 'MISSED'}: {ours} at {ratio:.2f} of the {what}, at most {most:g}")
    return [] if kept else [ours]


def resident(batch: int, dim: int) -> None:
    """Compare the peaks with the growth of the resident size, in a process of their own."""
    if os.environ.get("MALLOC_MMAP_THRESHOLD_") != "65536":
        command = [sys.executable, "-m", "benchmarks.loss", "--resident", str(batch), "--dim", str(dim)]
        subprocess.run(command, env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}, check=True)
        return
    contest = Contest(batch, dim, Setting(), torch.device("cpu"))
    print(" batch loss                 recorded MiB  resident MiB")
    for name, work in contest.works.items():
        work()
        contest.forget()
        grown = resident_peak_bytes(work)
        contest.forget()
        print(f"{batch:6d} {name:20s} {peak_bytes(work, contest.device) / 2**20:12.1f} {grown / 2**20:13.1f}")


def compare(arguments: argparse.Namespace, device: torch.device) -> None:
    """Print a table per setting."""
    for key in arguments.settings:
        setting, sizes = SETTINGS[key]
        print(f"\n{setting}")
        print(" batch loss                 time ms peak MiB    n   over another: time [quartiles], peak")
        for batch in arguments.sizes or sizes:
            torch.compiler.reset()
            contest = Contest(batch, arguments.dim, setting, device)
            result = run(contest, budget_s=arguments.seconds, rounds=arguments.rounds)
            print(*result.lines(), sep="\n", flush=True)
            judged = missed(result) if key == "float32" and batch >= BARS_FROM else []
            for name in dict.fromkeys([*judged, *([OURS, LABELLED, PLAIN] if arguments.profile else [])]):
                print(f"profile of {name} at {batch}\n{hottest(contest.works[name])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--sizes", type=int, nargs="+", help="instead of each setting's own")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=4.0, help="per size; a round begun is finished")
    parser.add_argument("--rounds", type=int, default=5, help="per size at least, whatever they take")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--profile", action="store_true", help="where the time goes, at every size")
    parser.add_argument(
        "--resident", type=int, metavar="B", help="only check the recorded peaks at this size"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device(arguments.device)
    if arguments.resident:
        resident(arguments.resident, arguments.dim)
        return
    print(machine(device))
    print(f"values of the losses at equal weights agree to {largest_disagreement(device):.1e}")
    compare(arguments, device)
    print(machine(device))


if __name__ == "__main__":
    main()
