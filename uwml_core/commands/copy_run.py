"""``uwml copy``: copy a run into object storage, also while it grows."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

HELP = "copy a run to s3://bucket/logs or the like, also while it grows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of the run")
    parser.add_argument(
        "to", metavar="URL", help="logs folder to copy into; credentials come from the environment"
    )
    parser.add_argument("--follow", action="store_true", help="go on until the run has ended")


def run(args: argparse.Namespace) -> int:
    """Put what is not there yet; with ``--follow`` again every few seconds until the run has ended."""
    from uwml_core.runlog.copy_thread import EVERY_S
    from uwml_core.runlog.copying import RunCopy
    from uwml_core.runlog.destination import destination
    from uwml_core.runlog.location import local_folder
    from uwml_core.runlog.reader import Run

    copy = RunCopy(local_folder(args.run, "RUN").absolute(), destination(args.to))
    try:
        live = True
        while live:
            # asked before, so that what the last look misses is copied
            live = args.follow and Run(args.run).status == "running"
            files = copy.bring_up()
            if files:
                print(f"{files} files copied to {copy.shown}", flush=True)
            if live:
                time.sleep(EVERY_S)
    finally:
        copy.close()
    print(f"{copy.shown} is complete")
    return 0
