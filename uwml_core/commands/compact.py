"""``uwml compact``: join the many part files of a run into few."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HELP = "join the many part files of a finished run into few"

_MIB = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of the run")


def run(args: argparse.Namespace) -> int:
    """Join the files and say what that brought; 1 where some could not be joined."""
    from uwml_core.runlog.compaction import compact_run

    done = compact_run(args.run)
    print(
        f"{done.files_before} files of {done.bytes_before / _MIB:.1f} MiB became {done.files_after} of "
        f"{done.bytes_after / _MIB:.1f} MiB"
    )
    for reason in done.left:
        print(f"uwml: left as they are: {reason}", file=sys.stderr)
    return 1 if done.left else 0
