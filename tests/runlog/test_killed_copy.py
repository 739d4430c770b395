"""A training that is killed while its run is copied leaves a copy that is a run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.support.object_store import ObjectStore
from tests.support.steps import eventually
from uwml_core.__main__ import main
from uwml_core.runlog import last_good, remote, remote_run
from uwml_core.runlog.reader import open_run

BATCH, KILLS = 8, 2
CHILD = """
import sys, time
from tests.support.steps import log_batches
from uwml_core.runlog import copy_thread
from uwml_core.runlog.writer import RunLogger

copy_thread.EVERY_S = 0.02
root, url, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
log = RunLogger(
    root, "run", resume_from_step=first or None, flush_seconds=0.1, flush_steps=3, copy_to=url
)
for step in range(first, 100_000):
    log_batches(log, [step], batch=8)
    time.sleep(0.002)
"""


@pytest.fixture
def store(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    for name in ("_OPEN_S", "_CLOSED_S", "_ITEMS_S"):
        monkeypatch.setattr(remote_run, name, 0.0)
    monkeypatch.setattr(remote, "_RELIST_S", 0.0)
    monkeypatch.setattr(last_good, "_PAUSES", 0)
    server.root = "killed"
    return server


def killed(store: ObjectStore, root: Path, first: int, after_s: float) -> None:
    """Log and copy from a step on until some parts are there, then a moment longer."""
    store.requests.clear()
    command = [sys.executable, "-c", CHILD, str(root), store.url(), str(first)]
    with subprocess.Popen(command) as child:
        try:
            assert eventually(lambda: sum(method == "PUT" for method, _ in store.requests) > 8)
            time.sleep(after_s)
            assert child.poll() is None
        finally:
            child.kill()


@pytest.mark.slow
def test_a_killed_copy_holds_whole_steps_and_is_completed(store: ObjectStore, tmp_path: Path) -> None:
    first = 0
    for kill in range(KILLS):
        killed(store, tmp_path, first, 0.01 + 0.07 * kill)
        copy = open_run(store.url("/run"))
        steps, pairs = copy.table("steps")["step"].to_pylist(), copy.table("pairs")["step"].to_pandas()
        assert copy.health() == ()
        assert steps == list(range(len(steps)))
        # a step that is listed has its pairs
        assert set(pairs.value_counts()) == {2 * BATCH}
        assert set(steps) <= set(pairs)
        first = len(open_run(tmp_path / "run").table("steps"))
    assert main(["copy", str(tmp_path / "run"), store.url()]) == 0
    copy, run = open_run(store.url("/run")), open_run(tmp_path / "run")
    assert copy.table("steps").num_rows == first
    for table in ("steps", "pairs", "events"):
        pd.testing.assert_frame_equal(copy.frame(table), run.frame(table), check_exact=True)
