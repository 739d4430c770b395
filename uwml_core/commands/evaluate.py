"""``uwml evaluate``: retrieval of a trained run on a split, whole or in folds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

HELP = "evaluate a run's checkpoint on a split, such as test, whole or as the mean over folds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of the run")
    parser.add_argument("--split", default="test", metavar="NAME", help="part of the data (default: test)")
    parser.add_argument(
        "--folds", type=int, default=1, metavar="K", help="rank within K equal parts: COCO 1K takes 5"
    )
    parser.add_argument("--data", metavar="PATH", help="where the data lie (default: where they were)")
    parser.add_argument("--json", action="store_true", help="print JSON, with the metrics of each fold")


def run(args: argparse.Namespace) -> int:
    """Evaluate and print; returns the exit code."""
    # torch takes seconds to load: not before the words of the command line are known to be right
    from uwml_core.training.assessment import assess, summary

    folds = assess(args.run, split=args.split, folds=args.folds, data=args.data)
    if args.json:
        print(json.dumps([{"items": fold.items, "metrics": fold.metrics} for fold in folds]))
        return 0
    print(f"{args.split}: {len(folds)} x {folds[0].items} items")
    for direction, metric, mean, spread, queries in summary(folds):
        over = f" ± {spread:.2f} (s.d. over {len(folds)} folds)" if len(folds) > 1 else ""
        print(f"{direction or 'both':8}{metric:12}{mean:10.2f}{over}   n = {queries}")
    return 0
