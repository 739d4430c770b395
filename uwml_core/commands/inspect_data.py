"""``uwml inspect-data``: what a data set holds, before anything is trained on it."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "say what a data set holds: layout, splits, captions, missing and broken pictures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("path", type=Path, metavar="PATH", help="file or folder of the data set")
    parser.add_argument(
        "--pictures", type=Path, metavar="DIR", help="folder of the pictures (default: beside the list)"
    )
    parser.add_argument(
        "--most-pictures", type=int, metavar="N", help="open N pictures, evenly spread (default: all)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the report; returns 0 where every item can be used, else 1."""
    # torch takes seconds to load: not before the words of the command line are known to be right
    from uwml_core.data.inspection import inspect
    from uwml_core.data.opening import any_listing

    if args.most_pictures is not None and args.most_pictures < 1:
        raise ValueError(f"--most-pictures={args.most_pictures} is out of range; expected at least 1")
    inspection = inspect(any_listing(args.path, args.pictures), most_pictures=args.most_pictures)
    print("\n".join(inspection.lines()))
    return 0 if inspection.usable else 1
