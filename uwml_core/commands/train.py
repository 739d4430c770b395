"""``uwml train``: train on pairs and write a run log."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uwml_core.training import TrainConfig, TrainingStopped

HELP = "train on pairs and write a run log"
_ALERT_SECONDS = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file of settings by section")
    parser.add_argument(
        "--preset", metavar="NAME", help="loss to start from (default: uwml); uwml losses lists them"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change one setting; may be repeated",
    )
    parser.add_argument(
        "--resume", metavar="RUN", help="continue a run: its folder, or its id within run.root"
    )
    parser.add_argument(
        "--run-id", metavar="ID", help="folder name of the new run within run.root (default: from the time)"
    )
    parser.add_argument(
        "--project", action="store_true", help="lay the snapshots out for the embedding map at the end"
    )
    parser.add_argument(
        "--alerts",
        action="store_true",
        help="look every 10 s what is wrong, as uwml doctor does, and note each new warning as an event",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Train; returns the exit code, 130 or 143 after Ctrl-C or SIGTERM.

    Started by torchrun, all processes train together and the first one talks.
    """
    # torch takes seconds to load: not before the words of the command line are known to be right
    from uwml_core.training import TrainingStopped, processes_of_torchrun, run_training

    config = _configuration(args)
    if args.run_id is not None and config.train.resume is not None:
        raise ValueError(f"--run-id={args.run_id} names a new run; leave it out to continue one")
    first = processes_of_torchrun().first
    try:
        path = run_training(
            config,
            run_id=args.run_id,
            progress=not args.quiet,
            alert_seconds=_ALERT_SECONDS if args.alerts else None,
        )
    except TrainingStopped as stopped:
        if first:
            print(f"Stopped after {stopped.step} steps, {_what_is_left(stopped)}", file=sys.stderr)
        return 128 + stopped.signal
    if first and args.project:
        _lay_out(path)
    if first:
        print(path)
    return 0


def _lay_out(path: Path) -> None:
    from uwml_core.projection import ProjectionParameters
    from uwml_core.projection.job import project
    from uwml_core.runlog.reader import open_run

    try:
        project(open_run(path), ProjectionParameters())
    except (OSError, ValueError) as error:
        # the run itself is whole
        print(f"The snapshots could not be laid out: {error}", file=sys.stderr)


def _what_is_left(stopped: TrainingStopped) -> str:
    command = f"uwml train --resume {stopped.path}"
    if stopped.saved == stopped.step:
        return f"everything saved. Continue with: {command}"
    reason = "but the checkpoint could not be written, see above."
    if stopped.saved is None:
        return f"{reason} The run cannot be continued."
    return f"{reason} To continue after step {stopped.saved}, where the last one is: {command}"


def _configuration(args: argparse.Namespace) -> TrainConfig:
    """What the options say; a resumed run starts from its own settings."""
    from uwml_core.training import build_config, continued_config

    layers = {"preset": args.preset, "file": args.config, "settings": args.set}
    config = build_config(**layers)
    # an unset variable of a shell must not start a run from scratch
    if args.resume is not None and not args.resume.strip():
        raise ValueError("--resume is empty; expected the folder of a run, or its id within run.root")
    resume = args.resume or config.train.resume
    if resume is None:
        return config
    # its own settings first: what is left out stays as it was, what differs is refused
    base = continued_config(resume, config.run.root)
    base["train"]["resume"] = resume
    return build_config(**layers, base=base)
