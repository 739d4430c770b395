"""Train the four sample runs that are committed under logs/ and lay them out for the embedding map.

usage: python docs/sample_runs.py [--logs FOLDER] [RUN ...]

An old run of the same name is replaced. The numbers are the same at every call on one machine; times and
the code's revision are those of the call. About five minutes on two cores.

Everything together stays under 12 MB, items included, so that a clone stays small:
- pictures: one style, ``data.only=source=noto`` (flags and skin tones, the natural hard negatives, are in
  it); all three take 7.4 MB in the items table alone. Clips: the whole set, 3.8 MB.
- 6 epochs: a row of ``pairs`` takes 25 bytes, an epoch 140 kB. UWML and InfoNCE still rise at their end.
- ``model.dim=32``, which costs about three points of R@1 against 128, and ``train.snapshot_items=120``:
  a snapshot takes 32 kB then instead of 1 MB.
- the parts of a table are merged into one file; a small part is half file footer. No checkpoint.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from uwml_core.runlog.jobs import Job  # noqa: E402
from uwml_core.runlog.reader import open_run  # noqa: E402
from uwml_core.training import build_config, run_training  # noqa: E402

LIMIT_BYTES = 12_000_000
MERGED = ("steps", "pairs", "evals", "ranks", "events")
METHODS = ("pca", "umap")

COMMON = ("train.epochs=6", "train.seed=0", "model.dim=32", "train.snapshot_items=120")
# wrong pairs on purpose: InfoNCE learns them, the weighting leaves them
PICTURES = ("data.path=emoji_pairs", "data.only=source=noto", "data.swapped=0.4")
CLIPS = ("data.path=animated_emoji_pairs",)
# Preset and data of each run; the last one is the newest, which the app shows first.
RUNS = {
    "sample-collapse": ("vsepp", PICTURES),
    "sample-video": ("uwml", CLIPS),
    "sample-infonce": ("infonce", PICTURES),
    "sample-uwml": ("uwml", PICTURES),
}


def make(run_id: str, logs: Path) -> None:
    """Train one sample run, merge its parts and lay its snapshots out."""
    preset, data = RUNS[run_id]
    shutil.rmtree(logs / run_id, ignore_errors=True)
    config = build_config(preset=preset, settings=[*COMMON, *data, f"run.root={logs}"])
    path = run_training(config, run_id=run_id)
    merge_parts(path)
    shutil.rmtree(path / "checkpoint")
    for method in METHODS:
        command = [sys.executable, "-m", "uwml_core", "project", str(path), "--method", method]
        subprocess.run(command, check=True, cwd=ROOT)
    (path / "run.lock").unlink()


def merge_parts(path: Path) -> None:
    """Rewrite each table of many small parts as one; a reader sees one or the other at every instant."""
    run = open_run(path)
    for name in MERGED:
        parts = run.parts(name)
        if len(parts) < 2:
            continue
        Job(table=name, first=parts[0].first, last=parts[-1].last, data=run.table(name)).write(path, 0)
        for part in parts:
            part.path.unlink()


def size_of(logs: Path) -> int:
    """Bytes of the sample runs and of the items that they use."""
    items = {f"{open_run(logs / run_id).info['data_fingerprint']}.parquet" for run_id in RUNS}
    files = [logs / "_items" / name for name in items]
    files += [path for run_id in RUNS for path in (logs / run_id).rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="*", choices=(*RUNS, []), help="default: all four")
    parser.add_argument("--logs", type=Path, default=Path("logs"), help="folder of runs (default: logs)")
    args = parser.parse_args()
    os.chdir(ROOT)
    for run_id in args.runs or RUNS:
        make(run_id, args.logs)
    size = size_of(args.logs)
    print(f"{size:,} bytes in {args.logs}")
    if size > LIMIT_BYTES:
        sys.exit(f"the sample runs take {size:,} bytes; expected at most {LIMIT_BYTES:,}")


if __name__ == "__main__":
    main()
