"""``uwml doctor``: what is wrong with a run's training, and what to try."""

from __future__ import annotations

import argparse
import json
import math
import os
import select
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uwml_core.runlog.location import is_remote, parse_place

if TYPE_CHECKING:
    from uwml_core.analysis.diagnosis.finding import Finding
    from uwml_core.analysis.diagnosis.registry import Diagnosis
    from uwml_core.runlog.reader import Run

HELP = "say what is wrong with a run's training and what to try; the exit code tells how serious it is"
EXIT_CODES = {None: 0, "note": 0, "warning": 0, "serious": 1}
_WIDTH = 100
# The training goes first.
_NICENESS = 19


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.epilog = (
        "Exit code: 0 nothing serious, 1 something serious, with --strict a warning too; 2 an error, such as "
        "a run that cannot be read. With --follow the findings that were printed count."
    )
    parser.add_argument("run", type=parse_place, metavar="RUN", help="folder of the run, or its URL")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--strict", action="store_true", help="a warning makes the exit code 1, too")
    parser.add_argument(
        "--follow",
        action="store_true",
        help="look again while the run goes on and print each finding when it appears or grows more serious, "
        "with --json as a line",
    )
    parser.add_argument(
        "--every", type=_seconds, default=10.0, metavar="SECONDS", help="between two looks (default: 10)"
    )
    parser.add_argument(
        "--export",
        type=Path,
        metavar="FOLDER",
        help="write suspected wrong pairs, false negatives and memorized negatives into it, as CSV with a "
        "column for new labels",
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise ValueError(text)
    return seconds


def run(args: argparse.Namespace) -> int:
    """Print the findings, most serious first or as they appear; returns the exit code."""
    from uwml_core.runlog.reader import open_run

    if args.follow and is_remote(args.run):
        raise ValueError(f"run={args.run!s} is remote; --follow needs a run in a folder of this machine")
    opened = open_run(args.run)
    worst = _follow(opened, args.every, args.json) if args.follow else _look(opened, args.json)
    if args.export is not None:
        _export(opened, args.export)
    return 1 if args.strict and worst == "warning" else EXIT_CODES[worst]


def _look(opened: Run, as_object: bool) -> str | None:
    """Print all findings; the highest severity."""
    from uwml_core.analysis.diagnosis.examine import diagnose

    found = diagnose(opened)
    plain = as_json(opened.run_id, found)
    print(json.dumps(plain, ensure_ascii=False, indent=1) if as_object else _text(opened.run_id, found))
    return found.worst


def _export(opened: Run, folder: Path) -> None:
    """Write what is to be labelled anew, and say on standard error how much that is."""
    from uwml_core.analysis.csv_text import csv_text
    from uwml_core.analysis.diagnosis.relabel import relabel_tables

    folder.mkdir(parents=True, exist_ok=True)
    for name, table in relabel_tables(opened).items():
        path = folder / f"{name}.csv"
        path.write_text(csv_text(table), encoding="utf-8", errors="surrogatepass")
        print(f"{path}: {len(table):,} rows", file=sys.stderr)


def _follow(opened: Run, every_s: float, as_lines: bool) -> str | None:
    """Print findings as they appear; the highest severity printed."""
    from uwml_core.analysis.diagnosis.finding import SEVERITIES
    from uwml_core.analysis.diagnosis.follow import follow

    os.nice(_NICENESS)
    printed = []
    try:
        for finding in follow(opened, lambda: _nobody_reads(every_s)):
            printed.append(finding.severity)
            plain = "\n".join([*_paragraphs(finding), ""])
            line = json.dumps(_plain(finding), ensure_ascii=False) if as_lines else _printable(plain)
            print(line, flush=True)
    except BrokenPipeError:
        # nobody reads any more; the last flush of this process must not fail, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return min(printed, key=SEVERITIES.index, default=None)


def _nobody_reads(within_s: float) -> bool:
    """Wait so long; True as soon as the reader of a pipe that is printed into has gone."""
    poll = select.poll()
    # no event but an error, which is always told
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(1000.0 * within_s))


def as_json(run_id: str, found: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain values; numbers that are not finite become null."""
    return {
        "run": run_id,
        "worst": found.worst,
        "findings": [_plain(finding) for finding in found.findings],
        "silent": list(found.silent),
        "not_applicable": dict(found.not_applicable),
    }


def _plain(finding: Finding) -> dict[str, Any]:
    numbers = [
        {
            "name": number.name,
            "value": float(number.value) if math.isfinite(number.value) else None,
            "unit": number.unit,
            "n": number.n,
            "first_step": number.first_step,
            "last_step": number.last_step,
        }
        for number in finding.numbers
    ]
    changes = [{"name": c.name, "value": c.value, "before": c.before} for c in finding.changes]
    texts = {
        name: getattr(finding, name)
        for name in ("rule", "severity", "confidence", "title", "cause", "advice")
    }
    link = {"page": finding.link.page, "query": dict(finding.link.query)}
    return {**texts, "numbers": numbers, "changes": changes, "link": link}


def _text(run_id: str, found: Diagnosis) -> str:
    lines = [f"run {run_id}: {_verdict(found)}"]
    for finding in found.findings:
        lines += ["", *_paragraphs(finding)]
    lines.append("")
    lines.append(_fill(f"found nothing: {', '.join(found.silent) or 'no rule'}", "", "  "))
    if found.not_applicable:
        lines.append(_fill(f"could not judge: {', '.join(found.not_applicable)} (--json says why)", "", "  "))
    return _printable("\n".join(lines))


def _printable(text: str) -> str:
    # names of runs are anybody's text: a control character could write over the terminal
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _verdict(found: Diagnosis) -> str:
    counts = {
        name: sum(f.severity == name for f in found.findings) for name in ("serious", "warning", "note")
    }
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    if not found.findings and not found.silent:
        return "too little data yet, no rule can judge this run"
    return ", ".join(parts) if parts else "nothing wrong found"


def _paragraphs(finding: Finding) -> list[str]:
    head = f"{finding.severity.upper()} {finding.rule} (confidence {finding.confidence:.2f})"
    lines = [head, _fill(finding.title, "  ", "  ")]
    lines.append(_fill(finding.cause, "  cause: ", "         "))
    lines.append(_fill(finding.advice, "  try:   ", "         "))
    settings = [f"--set {c.name}={_setting(c.value)}" for c in finding.changes]
    return [*lines, *(["         " + " ".join(settings)] if settings else [])]


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fill(text: str, first: str, rest: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=rest)
