"""One contestant of ``benchmarks/logging.py`` in a process of its own; writes what it measured as JSON."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.logger_peers import CONTESTANTS
from benchmarks.loggers import SCALARS, Logger, Ours, Steps, verdict

SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Keep processes that a log starts and lets go below this one, so that they can be found; Linux."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def processor_s() -> float:
    """User and system time of this process, all threads, and of everything that it started."""
    ended = os.times()
    own = time.process_time() + ended.children_user + ended.children_system
    return own + sum(_processes_below(os.getpid()))


def _processes_below(root: int) -> list[float]:
    parents, times = {}, {}
    tick = os.sysconf("SC_CLK_TCK")
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # the name before the bracket may hold anything
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(path.parent.name)] = int(fields[1])
        times[int(path.parent.name)] = sum(map(int, fields[11:15])) / tick
    below, found = [], {root}
    while new := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= new
        below += [times[pid] for pid in new]
    return below


def measure(log: Logger, steps: Steps, step_ms: float) -> dict[str, Any]:
    """Log all steps, and read them back afterwards."""
    took = np.empty(len(steps))
    before = processor_s()
    log.open()
    opened = processor_s()
    for step in range(len(steps)):
        values = steps[step]
        time.sleep(step_ms / 1e3)
        start = time.perf_counter()
        log.log(step, values)
        took[step] = time.perf_counter() - start
    start = time.perf_counter()
    log.close()
    close_s = time.perf_counter() - start
    closed = processor_s()
    result = {
        "open_s": opened - before,
        "step_us": 1e6 * (closed - opened) / len(steps),
        "wall_us": [float(x) for x in 1e6 * np.percentile(took, [50, 99, 100])],
        "close_s": close_s,
        "bytes": size(log.folder) / len(steps),
    }
    kept, logged = log.read(), steps.columns()
    result |= {
        "scalars": verdict(kept, logged, SCALARS),
        "arrays": verdict(kept, logged, log.arrays or SCALARS),
    }
    if isinstance(log, Ours):
        result["pair_bytes"] = log.pair_bytes()
    return result


def size(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure, and write the result beside the log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=CONTESTANTS)
    parser.add_argument("result", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--step-ms", type=float, required=True)
    options = parser.parse_args()
    adopt_orphans()
    kind = CONTESTANTS[options.name]
    steps = Steps(options.steps)
    result = measure(kind(Path.cwd()), steps, options.step_ms)
    result["version"] = version(kind.package) if kind.package else ""
    options.result.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
