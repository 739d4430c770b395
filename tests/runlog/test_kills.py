"""Kills at any instant, also amid joining files and writing rollups; ``benchmarks/kills.py`` tries many."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.support.kills import FLUSH_SECONDS, finish, judge, kill, run_writer
from tests.support.rollups import assert_rollups_equal_recount, assert_same

LAST_STEP = 150
TIMES = ["time", "elapsed_s", "step_time_ms", "telemetry_time_ms"]


@pytest.mark.slow
def test_a_run_killed_six_times_ends_like_an_unbroken_one(tmp_path: Path) -> None:
    root = tmp_path / "killed"
    for seed in range(6):
        verdict = kill(root, seed, LAST_STEP)
        assert (verdict.torn, verdict.duplicates, verdict.mismatches) == (0, 0, [])
        # the machine that tests may be busy; the benchmark holds the writer to half a second
        assert verdict.missing_s < FLUSH_SECONDS + 10
    broken = finish(root, LAST_STEP)
    (tmp_path / "whole").mkdir()
    whole = finish(tmp_path / "whole", LAST_STEP)
    assert (broken.status, whole.status) == ("finished", "finished")
    assert len(broken.info["segments"]) > 1
    for table, apart in (("steps", TIMES), ("pairs", []), ("evals", ["segment"]), ("ranks", ["segment"])):
        own, other = (run.frame(table).drop(columns=apart) for run in (broken, whole))
        assert len(own) > 0
        pd.testing.assert_frame_equal(own, other)
    for name in ("margins", "items"):
        assert_same(broken.rollup(name).to_pandas(), whole.rollup(name).to_pandas())
    assert_rollups_equal_recount(broken)


@pytest.mark.slow
@pytest.mark.parametrize("operation", [9, 26, 47, 74])
def test_a_writer_that_dies_between_two_file_operations_leaves_a_sound_run(
    tmp_path: Path, operation: int
) -> None:
    ended = run_writer(tmp_path, last=LAST_STEP, operation=operation)
    verdict = judge(tmp_path, ended)
    assert (verdict.torn, verdict.duplicates, verdict.mismatches) == (0, 0, [])
    assert not verdict.ended
