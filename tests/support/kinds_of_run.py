"""One folder with a run of every kind: finished, being written, killed, empty, of another loop, a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.live_writer import writing
from tests.support.synthetic import make_run, rewrite_run_json
from uwml_core.__main__ import main
from uwml_core.runlog.writer import RunLogger
from uwml_core.weighting import UWMLConfig

KINDS = ("finished", "running", "stale", "empty", "loop", "matrix")


@contextmanager
def kinds_of_run(folder: Path, **finished: Any) -> Iterator[Path]:
    """Make the runs, their ids being ``KINDS``, and go on writing the running one.

    A run ``plain`` on the data of the finished one is there for comparisons.

    Args:
        folder: logs folder.
        **finished: options of the finished run, as for ``make_run``.
    """
    options = {"steps": 60, "epochs": 3, "items": 96, **finished}
    plain = UWMLConfig(curve="uniform", direction_mode="off", total_steps=60)
    RunLogger(folder, "empty").close()
    log_loop(folder, "loop")
    log_matrix(folder, "matrix")
    kill_writer(folder, "stale")
    make_run(folder, run_id="plain", **{**options, "config": plain, "seed": 1})
    make_run(folder, run_id="finished", **options)
    with writing(folder, "running"):
        yield folder


def log_loop(folder: Path, run_id: str, *, steps: int = 60, batch: int = 12) -> None:
    """A loop with a loss of its own, which hands its similarities to the logger."""
    random = np.random.default_rng(0)
    with RunLogger(folder, run_id, total_steps=steps) as log:
        for step in range(steps):
            sim = np.clip(random.normal(0, 0.2, (batch, batch)) + 0.4 * np.eye(batch), -1, 1)
            log.log_similarities(sim, item_ids=np.arange(batch), epoch=step // 20, loss=1.0 / (step + 1))


def log_matrix(folder: Path, run_id: str, *, items: int = 40) -> None:
    """The similarities of a finished model and nothing else."""
    random = np.random.default_rng(0)
    given = folder / "given"
    given.mkdir()
    np.save(given / "similarities.npy", random.normal(size=(items, items)) + 2.0 * np.eye(items))
    words = ["--similarities", str(given / "similarities.npy"), "--logs", str(folder), "--run-id", run_id]
    if main(["diagnose-embeddings", *words]) != 0:
        raise RuntimeError("the matrix could not be diagnosed")


def kill_writer(folder: Path, run_id: str) -> None:
    """A run whose process was killed an hour ago."""
    with writing(folder, run_id) as process:
        process.kill()
        process.wait(10)
    then = datetime.now(UTC) - timedelta(hours=1)
    rewrite_run_json(folder / run_id, heartbeat_at=then.isoformat())
