"""Cost per step, bytes and exact read-back of the run log and of other experiment logs, in one run.

    python -m benchmarks.logging --python tensorboard=/path/to/python --python wandb=/path/to/python
    python -m benchmarks.logging --only "run log" --steps 1000 --rounds 2

Six scalars and two arrays of 256 float32 values a step. Every contestant runs in a process of its own, one
after another, several rounds; a package that shares no environment with ours is given its interpreter.
Processor time is user and system time of the process and of all that it started, after opening until closing
is done, less that of the same loop without a log; opening is told apart. Ratios are taken within a round.
"""

from __future__ import annotations

import sys
from pathlib import Path

# This file has the name of a standard module. A script started from this folder finds the folder first in
# sys.path, and with it this file wherever something imports logging: give way to the standard one.
_ROOT = Path(__file__).resolve().parents[1]
if __name__ != "benchmarks.logging":
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _ROOT / "benchmarks"]
    sys.path.insert(0, str(_ROOT))
if __name__ == "logging":
    del sys.modules["logging"]
    import logging  # noqa: F401
else:
    from benchmarks.logging_run import main

if __name__ == "__main__":
    main(__doc__)
