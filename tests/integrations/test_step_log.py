"""What the callbacks share, where several processes train together."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.processes import run_in_processes
from tests.support.step_log_rank import two_logged_steps
from uwml_core.integrations.step_log import StepLog
from uwml_core.losses import UWMLLoss
from uwml_core.runlog.reader import open_run


def test_processes_join_the_run_that_the_first_one_names(tmp_path: Path) -> None:
    function = partial(two_logged_steps, str(tmp_path / "logs"))
    first, second = run_in_processes(function, 2, tmp_path)
    assert first == second
    run = open_run(tmp_path / "logs" / first)
    steps, pairs = run.frame("steps"), run.frame("pairs")
    assert run.status == "finished"
    assert steps[["step", "rank_count", "progress"]].values.tolist() == [[0, 2, 0.0], [1, 2, 0.5]]
    of_one = pairs[pairs["direction"] == "i2t"].sort_values(["step", "item_id"])
    assert of_one[["step", "item_id"]].values.tolist() == [
        [step, item] for step in range(2) for item in (0, 1, 2, 10, 11, 12)
    ]
    assert run.frame("evals")["value"].tolist() == [0.5]


def test_alerts_are_asked_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"alert_seconds=0\.0"):
        StepLog(tmp_path, alert_seconds=0.0).open(UWMLLoss(), total_steps=1)
