"""Kill a writer again and again, and judge what it leaves behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.killed_writer import BATCH, RUN_ID, checkpoint
from tests.support.rollups import assert_same, recounted
from uwml_core.runlog.reader import Run, open_run

FLUSH_SECONDS = 0.2


@dataclass
class Verdict:
    """What one kill did.

    Attributes:
        steps: readable ones.
        torn: files with an issue.
        duplicates: steps, or pairs of a step, that are there twice or in part.
        missing_s: age of the oldest step that was logged and is not there, seconds; 0 where all are.
        mismatches: rollups that differ from a recount, and why.
        ended: whether the writer came to its end before.
    """

    steps: int
    torn: int
    duplicates: int
    missing_s: float
    mismatches: list[str] = field(default_factory=list)
    ended: bool = False


def run_writer(root: Path, *, last: int, operation: int = 0, kill_after_s: float | None = None) -> float:
    """Run a writer until it ends or is killed; returns when that was (monotonic)."""
    command = [sys.executable, "-m", "tests.support.killed_writer", str(root)]
    command += [str(FLUSH_SECONDS), str(last), str(operation)]
    with (root / "output").open("w") as sink:
        child = subprocess.Popen(command, stdout=sink, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + 120
        while child.poll() is None and time.monotonic() < end:
            if kill_after_s is not None and (root / "output").stat().st_size:
                time.sleep(kill_after_s)
                break
            time.sleep(0.005)
    finally:
        ended = time.monotonic()
        child.send_signal(signal.SIGKILL)
        _, errors = child.communicate(timeout=60)
    if child.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the writer failed: {errors.decode()}")
    return ended


def judge(root: Path, ended: float) -> Verdict:
    """Compare what was logged with what can be read."""
    lines = [line.split() for line in (root / "output").read_text().splitlines()]
    said = {int(line[0]): float(line[1]) for line in lines if len(line) == 2}
    run = open_run(root / RUN_ID)
    steps = run.table("steps")["step"].to_pylist()
    whole = list(range(len(steps)))
    pairs = run.table("pairs")
    counts = pairs.to_pandas().groupby("step").size()
    wrong = sum(a != b for a, b in zip(steps, whole, strict=True))
    wrong += int((counts != 2 * BATCH).sum()) + len(set(steps) - set(counts.index))
    missing = [at for step, at in said.items() if step >= len(steps)]
    verdict = Verdict(len(steps), len(run.health()), wrong, ended - min(missing) if missing else 0.0)
    for name in ("margins", "items"):
        try:
            assert_same(run.rollup(name).to_pandas(), recounted(pairs, name))
        except AssertionError as error:
            verdict.mismatches.append(f"{name}: {error}")
    if checkpoint(root) > len(steps):
        verdict.mismatches.append(f"checkpoint at {checkpoint(root)} is behind step {len(steps)}")
    verdict.ended = run.status == "finished"
    return verdict


def kill(root: Path, seed: int, last: int) -> Verdict:
    """Kill a writer once: at any time, or at one of its file operations."""
    chance = random.Random(seed)
    root.mkdir(exist_ok=True)
    if chance.random() < 0.5:
        ended = run_writer(root, last=last, kill_after_s=chance.uniform(0.0, 1.0))
    else:
        ended = run_writer(root, last=last, operation=chance.randint(2, 160))
    if not (root / RUN_ID / "run.json").exists():
        return Verdict(0, 0, 0, 0.0)
    return judge(root, ended)


def finish(root: Path, last: int) -> Run:
    """Let the writer come to its end."""
    run_writer(root, last=last)
    return open_run(root / RUN_ID)
