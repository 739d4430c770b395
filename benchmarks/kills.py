"""Kill a writer at random instants, also while it joins files or writes rollups, and check what is left.

Run: python -m benchmarks.kills [--kills 200] [--seed 0]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.support.kills import FLUSH_SECONDS, Verdict, kill

KILLS_PER_RUN = 10
LAST_STEP = 2_000


def main() -> None:
    """Print a table; the exit code says whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.kills):
            root = Path(folder) / f"run-{number // KILLS_PER_RUN}"
            verdict = kill(root, options.seed * 1_000_000 + number, LAST_STEP)
            verdicts.append(verdict)
            for mismatch in verdict.mismatches:
                print(f"kill {number}: {mismatch}")
            if number % KILLS_PER_RUN == KILLS_PER_RUN - 1:
                print(f"{number + 1} kills, {verdict.steps} steps in this run", flush=True)
    worst = max(verdict.missing_s for verdict in verdicts)
    rows = {
        "kills": len(verdicts),
        "of them after the end": sum(verdict.ended for verdict in verdicts),
        "torn files": sum(verdict.torn for verdict in verdicts),
        "duplicate or partial steps": sum(verdict.duplicates for verdict in verdicts),
        "rollups that differ": sum(len(verdict.mismatches) for verdict in verdicts),
        f"worst missing, seconds (flush_seconds is {FLUSH_SECONDS:g})": f"{worst:.2f}",
    }
    for name, value in rows.items():
        print(f"{name:50} {value}")
    bad = any(v.torn or v.duplicates or v.mismatches for v in verdicts)
    raise SystemExit(int(bad or worst > FLUSH_SECONDS + 0.5))


if __name__ == "__main__":
    main()
