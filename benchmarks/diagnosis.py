"""Which rule finds which illness: real trainings, several seeds, healthy controls of every loss.

Run: python -m benchmarks.diagnosis --folder DIR [--seeds 0 1 2 3 4] [--kinds NAME ...] [--only-table]

A run that is in the folder already is not trained again, so that the benchmark may be stopped and goes on
where it was. Each run takes a few seconds of processor time. Results are written as one Parquet table,
``diagnosis.parquet``: a row per run and rule.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from uwml_core.analysis.diagnosis.examine import diagnose
from uwml_core.analysis.diagnosis.rules import RULES
from uwml_core.analysis.diagnosis.suspects import false_negative_ranking, wrong_pair_ranking
from uwml_core.analysis.hard_negatives.persistent import with_margin
from uwml_core.data.samples import sample_path
from uwml_core.runlog.reader import Run, open_run
from uwml_core.training.sick import KINDS, sick_run

SEEDS = (0, 1, 2, 3, 4)
TABLE = "diagnosis.parquet"


def main() -> None:
    """Train what is missing, ask the rules, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--only-table", action="store_true", help="train nothing")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if not args.only_table:
        _train(args.folder, args.kinds, args.seeds)
    rows = pd.DataFrame(_results(args.folder, args.kinds, args.seeds))
    rows.to_parquet(args.folder / TABLE, index=False)
    print(table(rows))
    print(verdict(rows))
    print(precision(args.folder, args.seeds))


def _train(folder: Path, kinds: Sequence[str], seeds: Sequence[int]) -> None:
    for seed in seeds:
        for kind in kinds:
            if not _is_done(folder / f"{kind}-seed{seed}"):
                sick_run(kind, root=folder, seed=seed)
                print(f"{kind} seed {seed}", flush=True)


def _is_done(path: Path) -> bool:
    described = path / "run.json"
    return described.is_file() and json.loads(described.read_text())["status"] != "running"


def _runs(folder: Path, kinds: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[str, int, Run]]:
    for kind in kinds:
        for seed in seeds:
            path = folder / f"{kind}-seed{seed}"
            if _is_done(path):
                yield kind, seed, open_run(path)


def _results(folder: Path, kinds: Sequence[str], seeds: Sequence[int]) -> Iterator[dict[str, object]]:
    for kind, seed, run in _runs(folder, kinds, seeds):
        found = diagnose(run)
        sure = {finding.rule: finding.confidence for finding in found.findings}
        for rule in RULES:
            yield {
                "kind": kind,
                "seed": seed,
                "rule": rule.name,
                "expected": rule.name in KINDS[kind].expects,
                "found": rule.name in sure,
                "confidence": sure.get(rule.name, float("nan")),
                "applicable": rule.name not in found.not_applicable,
            }


def table(rows: pd.DataFrame) -> str:
    """Rules down, kinds across: runs in which the rule found something; n runs of each kind in the head."""
    rows = rows.assign(kind=np.where(rows["kind"].str.startswith("healthy-"), "healthy", rows["kind"]))
    n = rows.groupby("kind")["seed"].size() // rows["rule"].nunique()
    counts = rows.pivot_table(index="rule", columns="kind", values="found", aggfunc="sum").astype(int)
    lines = [f"{number:3d} {kind} (n = {n[kind]})" for number, kind in enumerate(counts.columns, 1)]
    head = f"{'rule':20}" + "".join(f"{number:4d}" for number in range(1, len(counts.columns) + 1))
    body = [
        f"{rule:20}" + "".join(f"{value or '.':>4}" for value in counts.loc[rule])
        for rule in (rule.name for rule in RULES)
    ]
    return "\n".join([*lines, "", head, *body])


def verdict(rows: pd.DataFrame) -> str:
    """Each illness: in how many runs an expected rule found it; each rule: alarms on healthy runs."""
    ill = rows[rows["expected"]].groupby(["kind", "seed"])["found"].any().groupby("kind").agg(["sum", "size"])
    lines = [f"{kind:24} found in {row['sum']} of {row['size']}" for kind, row in ill.iterrows()]
    healthy = rows[rows["kind"].map(lambda kind: not KINDS[kind].expects)]
    runs = len(healthy[["kind", "seed"]].drop_duplicates())
    alarms = healthy.groupby("rule")["found"].sum()
    told = ", ".join(f"{rule} {count}" for rule, count in alarms[alarms > 0].items()) or "none"
    return "\n".join(["", *lines, f"false alarms over {runs} healthy runs: {told}"])


def precision(folder: Path, seeds: Sequence[int]) -> str:
    """Average precision of the rankings, where the truth is known."""
    lines = [""]
    for kind in ("shuffled-20", "shuffled-50", "shuffled-20-large"):
        found = [_wrong_pairs(run) for _kind, _seed, run in _runs(folder, [kind], seeds)]
        lines.append(_told(f"wrong pairs, {kind}", found))
    for use_text in (False, True):
        found = [_false_negatives(run, use_text) for _k, _s, run in _runs(folder, ["hidden-labels"], seeds)]
        lines.append(_told(f"false negatives, {'captions' if use_text else 'neighbours only'}", found))
    return "\n".join(lines)


def _told(name: str, values: list[tuple[float, int, float]]) -> str:
    if not values:
        return f"{name}: no run"
    each, base = [value for value, _n, _base in values], np.mean([base for _v, _n, base in values])
    spread = f" ± {np.std(each, ddof=1):.3f}" if len(each) > 1 else ""
    return (
        f"{name}: average precision {np.mean(each):.3f}{spread} over {len(each)} runs, "
        f"lowest {min(each):.3f} (n = {values[0][1]} each, {base:.2f} true)"
    )


def average_precision(true: np.ndarray) -> float:
    """Mean precision at the true entries of a ranking; NaN without any.

    Example:
        >>> average_precision(np.array([True, False, True])).round(4)
        np.float64(0.8333)
    """
    hits = np.cumsum(true)
    return float((hits / np.arange(1, len(true) + 1))[true].mean()) if true.any() else float("nan")


def _original() -> tuple[list[str], list[set[str]]]:
    data = pq.read_table(sample_path("emoji_pairs"), columns=["item_id", "captions"]).to_pydict()
    return data["item_id"], [set(captions) for captions in data["captions"]]


def _wrong_pairs(run: Run) -> tuple[float, int, float]:
    items, captions = run.items(columns=["item_id", "captions"]), _original()[1]
    if items is None:
        raise ValueError(f"run={run.run_id!r} has no items; expected a run of sick_run")
    wrong = {
        int(item): not set(own) <= captions[item]
        for item, own in zip(items["item_id"], items["captions"], strict=True)
    }
    ranking = wrong_pair_ranking(run.rollup("items").to_pandas())
    true = np.array([wrong[int(item)] for item in ranking["item_id"]])
    return average_precision(true), len(true), float(true.mean())


def _false_negatives(run: Run, use_text: bool) -> tuple[float, int, float]:
    items, keys = run.items(columns=["item_id", "captions"]), _original()[0]
    if items is None:
        raise ValueError(f"run={run.run_id!r} has no items; expected a run of sick_run")
    rows = with_margin(run.frame("neighbors"))
    rows = rows[(rows["epoch"] >= 0) & (rows["split"] == "train")]
    captions = dict(zip(items["item_id"].tolist(), map(list, items["captions"]), strict=True))
    ranking = false_negative_ranking(rows, captions if use_text else None)
    pairs = zip(ranking["item_id"], ranking["negative_item_id"], strict=True)
    true = np.array([keys[item] == keys[negative] for item, negative in pairs])
    return average_precision(true), len(true), float(true.mean())


if __name__ == "__main__":
    main()
