"""The run that reading is measured on is a sound one, whatever its size; no times."""

from __future__ import annotations

import numpy as np

from benchmarks.large_run import Size, live_parts, make_large_run
from benchmarks.reading import MOVE_MS, move_line
from tests.support.rollups import assert_rollups_equal_recount
from uwml_core.analysis.controller_log import controller_log
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.analysis.replay_validity import replay_validity
from uwml_core.analysis.selection import PREVIEW_COLUMNS
from uwml_core.analysis.validity import validity
from uwml_core.runlog.reader import open_run

SMALL = Size(epochs=3, steps_per_epoch=40, batch=10, probes=12, dim=4)


def test_large_run_has_all_tables_and_weights_that_a_replay_gives(tmp_path) -> None:
    run = open_run(make_large_run(tmp_path, size=SMALL))
    steps, config = run.frame("steps"), loss_config(run.config)
    assert steps["step"].tolist() == list(range(120))
    assert (run.status, run.health()) == ("finished", ())
    assert all(run.has(table) for table in ("evals", "ranks", "snapshots", "neighbors", "items"))
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS))
    assert pairs.num_rows == 120 * 20
    assert validity(pairs, steps, config, run.directions).ok
    assert replay_validity(controller_log(steps, run.directions), config).ok
    assert_rollups_equal_recount(run)


def test_live_copy_grows_by_a_hundred_steps(tmp_path) -> None:
    whole = make_large_run(tmp_path, size=SMALL)
    growing = live_parts(whole, tmp_path / "logs" / "live")
    next(growing)
    run = open_run(tmp_path / "logs" / "live")
    before = run.table("pairs", columns=["step"]).num_rows
    next(growing)
    assert run.status == "running"
    numbers = np.unique(run.table("pairs", columns=["step"])["step"].to_numpy())
    assert len(numbers) * 20 > before
    assert np.unique(run.table("steps", columns=["step"])["step"].to_numpy()).tolist() == numbers.tolist()


def test_bar_is_kept_by_the_median_of_the_processor_time() -> None:
    times = [{"cpu_ms": cpu, "wall_ms": 900.0} for cpu in (1.0, MOVE_MS, 400.0)]
    assert move_line("page", "center", times).endswith("kept")
    assert move_line("page", "center", times[2:]).endswith("MISSED")
