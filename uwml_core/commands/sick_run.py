"""``uwml sick-run``: train briefly with a known illness, or without one."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "train a few seconds with a known illness, to see what the diagnosis says"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("kind", nargs="?", metavar="KIND", help="which illness; without it, list them")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    parser.add_argument("--root", type=Path, default=Path("logs"), metavar="DIR", help="default: logs")
    parser.add_argument("--run-id", metavar="ID", help="folder of the run (default: KIND-seedN)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Train one kind and print its folder, or list all kinds; returns the exit code."""
    # torch takes seconds to load
    from uwml_core.training.sick import KINDS, sick_run

    if args.kind is None:
        for name, kind in KINDS.items():
            print(f"{name:28} {kind.title}")
        return 0
    print(sick_run(args.kind, root=args.root, seed=args.seed, run_id=args.run_id, progress=not args.quiet))
    return 0
