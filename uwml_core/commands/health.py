"""``uwml health``: what is wrong with a run's files, and what is still usable."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING

from uwml_core.runlog.location import parse_place

if TYPE_CHECKING:
    from uwml_core.runlog.checkup import Checkup, TableSummary

HELP = "say what is wrong with a run's files, and what is still usable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("run", type=parse_place, metavar="RUN", help="folder of the run, or its URL")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the result; returns 0 where nothing is wrong, 1 where something is."""
    from uwml_core.runlog.checkup import check_run
    from uwml_core.runlog.reader import find_run

    result = check_run(find_run(args.run))
    print(json.dumps(dataclasses.asdict(result), ensure_ascii=False) if args.json else _text(result))
    return 1 if result.issues else 0


def _text(result: Checkup) -> str:
    lines = [f"run {result.run_id}: {result.status}"]
    lines += [f"  {issue.kind:10} {issue.file}: {issue.message}" for issue in result.issues]
    if not result.issues:
        lines.append("  nothing wrong found" if result.tables else "  nothing was logged")
    elif not result.tables:
        lines.append("nothing in it can be read")
    lines += ["usable:"] if result.tables else []
    lines += [
        f"  {table.table:16} {table.rows:>12,} rows  {table.files:>6,} files  steps {_range(table)}"
        for table in result.tables
    ]
    # names of files and runs are anybody's text: a control character could write over the terminal
    return "\n".join(
        "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line) for line in lines
    )


def _range(table: TableSummary) -> str:
    return "-" if table.first_step is None else f"{table.first_step} to {table.last_step}"
