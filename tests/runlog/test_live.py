"""Readers that poll while a writer writes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.support.steps import CHILD, eventually
from uwml_core.runlog.reader import open_run


def counted(connection: duckdb.DuckDBPyConnection, files: str) -> int:
    """Rows that a plain query sees; asked again where a file was joined with others meanwhile."""
    for _ in range(50):
        with contextlib.suppress(duckdb.IOException):
            return int(connection.sql(f"SELECT count(*) FROM '{files}'").fetchall()[0][0])
    raise AssertionError(f"{files} could not be read")


@pytest.mark.slow
def test_polling_readers_see_a_growing_run_without_an_error(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), "0", "0.02"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert eventually((tmp_path / "killed" / "run.json").exists)
        run = open_run(tmp_path / "killed")
        seen, pair_rows, evals = 0, 0, 0
        with duckdb.connect() as connection:
            while seen < 400:
                steps = run.table("steps", columns=["step"])["step"].to_pylist()
                pairs = run.table("pairs", columns=["step"]).num_rows
                assert steps == list(range(len(steps)))
                assert len(steps) >= seen
                # pairs are written first
                assert pairs >= max(pair_rows, 32 * len(steps))
                assert run.table("evals").num_rows >= evals
                assert run.health() == ()
                assert run.status == "running"
                seen, pair_rows, evals = len(steps), pairs, run.table("evals").num_rows
                if seen:
                    assert counted(connection, f"{run.path}/steps/*.parquet") >= seen
    finally:
        child.kill()
        child.wait(timeout=30)
