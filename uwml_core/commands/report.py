"""``uwml report``: a run as one HTML file that opens offline."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from uwml_core.i18n import LANGUAGES
from uwml_core.runlog.location import parse_place

HELP = "write a run as one HTML file that opens offline, charts and sliders included"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("run", type=parse_place, metavar="RUN", help="folder of the run, or its URL")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: RUN.html in this folder")
    parser.add_argument("--pages", metavar="LIST", help="such as training,weight_curve (default: every page)")
    parser.add_argument(
        "--no-pictures", action="store_true", help="leave thumbnails out; captions and item names stay"
    )
    parser.add_argument("--lang", choices=list(LANGUAGES), default="en", help="language of the report")
    parser.add_argument("--overwrite", action="store_true", help="replace a file of that name")


def run(args: argparse.Namespace) -> int:
    """Write the report; prints its file and size."""
    # the figures take a second to load: not before the words of the command line are known to be right
    from uwml_core.report.build import PAGES, ReportChoice, estimate_size, write_report
    from uwml_core.runlog.reader import open_run

    source = open_run(args.run)
    named = tuple(PAGES) if args.pages is None else args.pages.split(",")
    pages = tuple(dict.fromkeys(name.strip() for name in named if name.strip()))
    choice = ReportChoice(pages=pages, pictures=not args.no_pictures, language=args.lang)
    print(f"about {_mb(estimate_size(source, choice))}", file=sys.stderr)
    target = args.output or Path(f"{source.run_id}.html")
    path = write_report(source, target, choice, overwrite=args.overwrite)
    print(f"{path} ({_mb(path.stat().st_size)})")
    return 0


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
