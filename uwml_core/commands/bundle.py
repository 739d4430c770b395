"""``uwml bundle``: a run, or a part of it, as one zip."""

from __future__ import annotations

import argparse
from pathlib import Path

from uwml_core.runlog.location import parse_place

HELP = "put a run into one zip that another app imports"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("run", type=parse_place, metavar="RUN", help="folder of the run, or its URL")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: RUN.zip in this folder")
    parser.add_argument("--no-pictures", action="store_true", help="leave thumbnails and paths out")
    parser.add_argument("--no-embeddings", action="store_true", help="leave the snapshots out")
    parser.add_argument("--no-pairs", action="store_true", help="leave the raw rows of pairs out")


def run(args: argparse.Namespace) -> int:
    """Write the bundle; prints its file."""
    from uwml_core.runlog.bundle import BundleChoice, write_bundle
    from uwml_core.runlog.reader import open_run

    source = open_run(args.run)
    choice = BundleChoice(
        pictures=not args.no_pictures, embeddings=not args.no_embeddings, pairs=not args.no_pairs
    )
    print(write_bundle(source, args.output or Path(f"{source.run_id}.zip"), choice))
    return 0
