"""``uwml project``: lay a run's snapshots out for the embedding map."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from uwml_core.runlog.location import parse_place

if TYPE_CHECKING:
    from uwml_core.projection.progress import Progress

HELP = "lay a run's snapshots out for the embedding map"

_NICENESS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("run", type=parse_place, metavar="RUN", help="folder of the run, or its URL")
    parser.add_argument("--method", choices=("umap", "pca"), default="umap", help="default: umap")
    parser.add_argument(
        "--neighbors", type=int, default=15, help="neighbors kept together, 2 to 200 (default: 15)"
    )
    parser.add_argument(
        "--min-dist", type=float, default=0.1, help="least distance of points, 0 to 1 (default: 0.1)"
    )
    parser.add_argument("--metric", choices=("cosine", "euclidean"), default="cosine", help="default: cosine")
    parser.add_argument(
        "--items",
        type=int,
        default=20_000,
        help="most items laid out; of more a stratified sample (default: 20000)",
    )
    parser.add_argument("--seed", type=int, default=42, help="default: 42")
    parser.add_argument(
        "--follow", action="store_true", help="go on as snapshots of a running run arrive, until it ends"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Compute the layout, or find it computed; prints its file. Returns the exit code, 143 after SIGTERM."""
    # torch takes seconds to load: not before the words of the command line are known to be right
    from uwml_core.projection import ProjectionParameters
    from uwml_core.projection.job import follow, project
    from uwml_core.runlog.reader import open_run

    signal.signal(signal.SIGTERM, _end)
    # the page that waits for it goes first
    os.nice(_NICENESS)
    names = ("method", "neighbors", "min_dist", "metric", "items", "seed")
    parameters = ProjectionParameters(**{name: getattr(args, name) for name in names})
    lay_out = follow if args.follow else project
    try:
        print(lay_out(open_run(args.run), parameters, None if args.quiet else _report))
    except SystemError as error:
        ended = _asked_to_end(error)
        if ended is None:
            raise
        return ended
    return 0


def _asked_to_end(error: BaseException | None) -> int | None:
    """Exit code of the SystemExit behind an error: compiled code makes an error of its own of it."""
    while error is not None and not isinstance(error, SystemExit):
        error = error.__cause__ or error.__context__
    return int(error.code or 0) if error is not None else None


def _report(progress: Progress) -> None:
    print(f"{progress.done} of {progress.total} snapshots laid out", file=sys.stderr, flush=True)


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
