"""``uwml import``: a bundle into a logs folder."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "import a bundle into a logs folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("bundle", type=Path, metavar="FILE", help="zip that uwml bundle made")
    parser.add_argument("--logs", type=Path, default=Path("logs"), metavar="DIR", help="default: logs")
    parser.add_argument(
        "--max-gib", type=float, default=8.0, metavar="N", help="largest unpacked size (default: 8)"
    )


def run(args: argparse.Namespace) -> int:
    """Import; prints the folder of the run."""
    from uwml_core.runlog.bundle_checks import ImportLimits
    from uwml_core.runlog.bundle_import import import_bundle

    if not args.max_gib > 0:
        raise ValueError(f"--max-gib={args.max_gib} is out of range; expected more than 0")
    print(import_bundle(args.bundle, args.logs, ImportLimits(total_bytes=int(args.max_gib * 2**30))))
    return 0
