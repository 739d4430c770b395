"""``uwml convert``: TensorBoard event files to runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HELP = "make runs of TensorBoard event files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("events", type=Path, metavar="EVENTS_DIR", help="folder of TensorBoard logs")
    parser.add_argument("--logs", type=Path, default=Path("logs"), metavar="DIR", help="default: logs")
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="COLUMN=TAG",
        help="fill a column of steps from a tag, such as loss=train/loss; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    """Convert; prints the folder of each run. 1 where a file was not read to its end."""
    from uwml_core.runlog.conversion import convert_events

    made = convert_events(args.events, args.logs, names=dict(_pair(text) for text in args.map))
    for one in made:
        print(one.path)
        print(f"{one.steps} steps; " + ", ".join(f"{c}={t}" for t, c in one.columns.items()), file=sys.stderr)
        if one.left_out:
            print(f"left out, being no scalars: {', '.join(one.left_out)}", file=sys.stderr)
        for problem in one.problems:
            print(f"uwml: not read to its end: {problem}", file=sys.stderr)
    return 1 if any(one.problems for one in made) else 0


def _pair(text: str) -> tuple[str, str]:
    column, equals, tag = text.partition("=")
    if not (column and equals and tag):
        raise ValueError(f"--map {text!r} is no COLUMN=TAG; expected something like loss=train/loss")
    return column, tag
