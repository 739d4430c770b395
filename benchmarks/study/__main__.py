"""Does the weighting help? The study: trainings of every method on both sample sets, and tables of them.

    python -m benchmarks.study --folder DIR           train what is not there yet, for hours; may be stopped
    python -m benchmarks.study --tables               print the tables of the results in the repository
    python -m benchmarks.study --folder DIR --tables --document docs/results.md
    python -m benchmarks.study --quick                two minutes: what is far beyond noise

Each configuration trains all its seeds in a process of its own, one after the other, in one thread; it begins
again where it was stopped. Frozen encoders need the extra ``encoders``; their features are computed once.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import pandas as pd

from benchmarks.study.paired import Results
from benchmarks.study.pictures import PICTURE, picture
from benchmarks.study.plan import parts
from benchmarks.study.quick import quick
from benchmarks.study.running import run
from benchmarks.study.store import TABLE, Store
from benchmarks.study.tables import TABLES, document

RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    """Train, or print tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="where results are kept while they are made")
    parser.add_argument("--tables", action="store_true", help="train nothing")
    parser.add_argument(
        "--document",
        type=Path,
        help="put the tables between the marks of this file, and the figure beside it",
    )
    parser.add_argument("--quick", action="store_true", help="a reduced form with its own checks")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.quick:
        sys.exit(quick())
    if args.tables:
        _tell(args.folder, args.document)
        return
    if args.folder is None:
        parser.error("--folder is missing: results need a place; --tables and --quick do not")
    store = Store(args.folder)
    results = Results(store.merge())
    for part in parts():
        if run(store, part.make(results), part.seeds):
            results = Results(store.merge())


def _tell(folder: Path | None, file: Path | None) -> None:
    table = pd.read_parquet(RESULTS / TABLE) if folder is None else Store(folder).merge(RESULTS)
    results = Results(table)
    if file is None:
        for name, make in TABLES.items():
            print(f"## {name}\n\n{make(results)}\n")
    else:
        file.write_text(document(file.read_text(encoding="utf-8"), results), encoding="utf-8")
        (file.parent / "images" / PICTURE).write_text(picture(results), encoding="utf-8")


if __name__ == "__main__":
    main()
