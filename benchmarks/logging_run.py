"""Rounds of processes and the table of ``benchmarks/logging.py``."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.logger_peers import CONTESTANTS
from benchmarks.loggers import VERDICTS, Logger, Ours, OursTwo
from benchmarks.measure import Ratio, machine

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 900
ALIKE = OursTwo.title

Result = dict[str, Any]


class Failure(Exception):
    """Why a contestant could not be measured."""


def run_child(name: str, python: str, steps: int, step_ms: float) -> Result:
    """One contestant in a process and folders of its own.

    Raises:
        Failure: with the last line that it printed.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        home, log, result = (Path(temporary) / part for part in ("home", "log", "result.json"))
        home.mkdir()
        log.mkdir()
        # settings and caches that a package keeps under the home folder are neither used nor left behind
        environment = os.environ | {"HOME": str(home), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [python, "-m", "benchmarks.logging_child", name, str(result)]
        command += ["--steps", str(steps), "--step-ms", str(step_ms)]
        try:
            done = subprocess.run(
                command,
                cwd=log,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failure(f"not done after {LIMIT_S} s") from None
        if not result.exists():
            lines = (done.stderr or done.stdout).strip().splitlines()
            raise Failure(lines[-1] if lines else f"ended with code {done.returncode}")
        return dict(json.loads(result.read_text(encoding="utf-8")))


def contest(
    names: list[str], pythons: dict[str, str], *, steps: int, step_ms: float, rounds: int
) -> tuple[dict[str, list[Result]], dict[str, str]]:
    """Results by round, and why others have none."""
    results: dict[str, list[Result]] = {name: [] for name in names}
    failures: dict[str, str] = {}
    for turn in range(rounds):
        # everyone goes first, and comes after everyone else, equally often
        names = names[::-1] if turn % 2 == 0 else [*names[1:], names[0]]
        for name in [name for name in names if name not in failures]:
            python = pythons.get(CONTESTANTS[name].package or "", sys.executable)
            try:
                row = run_child(name, python, steps, step_ms)
                results[name].append(row)
                # a run takes long, and may be broken off
                print(f"{name}: {row}", file=sys.stderr, flush=True)
            except Failure as failure:
                failures[name] = str(failure)
        print(f"round {turn + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    return {name: rows for name, rows in results.items() if name not in failures}, failures


def net(results: dict[str, list[Result]]) -> dict[str, list[float]]:
    """Microseconds of processor time a step, less those of the loop without a log in the same round."""
    idle = [row["step_us"] for row in results[Logger.title]]
    return {
        name: [row["step_us"] - base for row, base in zip(rows, idle, strict=True)]
        for name, rows in results.items()
    }


def lines(results: dict[str, list[Result]]) -> list[str]:
    """The table, cheapest first."""
    cost = net(results)
    head = f"{'':34s} {'processor us a step':>22s} {'times ours':>20s} {'call us: median / p99 / max':>28s}"
    table = [f"{head} {'open s':>7s} {'close s':>7s} {'bytes':>6s}  scalars   arrays"]
    for name in sorted(results, key=lambda name: statistics.median(cost[name])):
        if name == Logger.title:
            continue
        rows = results[name]
        low, middle, high = statistics.quantiles(cost[name], n=4)
        ratio = Ratio.of(cost[name], cost[ALIKE])
        call = " / ".join(f"{statistics.median(row['wall_us'][at] for row in rows):.0f}" for at in range(3))
        open_s, close_s, size = (
            statistics.median(row[key] for row in rows) for key in ("open_s", "close_s", "bytes")
        )
        told = f"{middle:.0f} [{low:.0f}, {high:.0f}]"
        times = f"{ratio.median:.1f} [{ratio.low:.1f}, {ratio.high:.1f}]"
        # the worst of all rounds
        kept = [max((row[part] for row in rows), key=VERDICTS.index) for part in ("scalars", "arrays")]
        table.append(
            f"{name:34s} {told:>22s} {times:>20s} {call:>28s} {open_s:7.2f} {close_s:7.2f} {size:6.0f}"
            f"  {kept[0]:8s}  {kept[1]}"
        )
    return table


def report(results: dict[str, list[Result]], failures: dict[str, str], rounds: int) -> list[str]:
    """Table, and what it does not say."""
    told = lines(results)
    versions = {CONTESTANTS[name].package: rows[0]["version"] for name, rows in results.items()}
    told += ["", ", ".join(f"{package} {number}" for package, number in versions.items() if package)]
    told.append(f"times ours: over '{ALIKE}' in the same round; median [quartiles] of {rounds} rounds")
    idle = statistics.median(row["step_us"] for row in results[Logger.title])
    told.append(
        f"the loop without a log, {idle:.0f} us a step, is taken off; opening is not in it, closing is"
    )
    for name in (Ours.title, OursTwo.title):
        if name in results:
            size = statistics.median(row["pair_bytes"] for row in results[name])
            told.append(f"{name}: {size:.1f} bytes a row of pairs, 256 rows a step")
    return told + [f"{name}: not measured, {reason}" for name, reason in failures.items()]


def main(description: str) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--step-ms", type=float, default=2.0, help="what a step takes besides; it sleeps")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of the contestants' names")
    parser.add_argument(
        "--python", nargs="+", action="extend", default=[], metavar="PACKAGE=PATH", help="its interpreter"
    )
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error(f"--rounds={options.rounds} is too few: quartiles need two rounds")
    chosen = [name for name in CONTESTANTS if name.startswith(tuple(options.only))]
    names = list(dict.fromkeys([Logger.title, ALIKE, *chosen]))
    pythons = dict(entry.split("=", 1) for entry in options.python)
    torch.set_num_threads(1)
    print(
        f"{options.steps} steps of {options.step_ms:g} ms, 6 scalars and 2 arrays of 256 float32 values each"
    )
    print(machine(torch.device("cpu")))
    results, failures = contest(
        names, pythons, steps=options.steps, step_ms=options.step_ms, rounds=options.rounds
    )
    print("\n".join(report(results, failures, options.rounds)))
    print(machine(torch.device("cpu")))
