"""Alerts: what ``uwml doctor`` finds while training runs is in the run's events; its process ends with it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.steps import a_step, eventually
from uwml_core.analysis.training import event_marks
from uwml_core.runlog import alerts
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger

WITHIN_S = 120


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    made: list[subprocess.Popen[bytes]] = []
    real = alerts._spawn

    def spawn(*given: Any) -> subprocess.Popen[bytes]:
        made.append(real(*given))
        return made[-1]

    monkeypatch.setattr(alerts, "_spawn", spawn)
    yield made
    for process in made:
        process.kill()


def alert_rows(run: Path, rule: str = "") -> list[dict[str, Any]]:
    rows = [row for row in open_run(run).table("events").to_pylist() if row["kind"] == "alert"]
    return [row for row in rows if rule in row["data"]]


def printing(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """A doctor that runs these lines instead."""

    def spawn(run: Path, every_s: float, errors: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors)

    monkeypatch.setattr(alerts, "_spawn", spawn)


def test_an_illness_becomes_an_event_while_training_runs(
    tmp_path: Path, spawned: list[subprocess.Popen[bytes]]
) -> None:
    with RunLogger(tmp_path, "run", flush_seconds=0.1, alert_seconds=0.1) as log:
        for step in range(5):
            log.log_step(a_step(step), item_ids=[1, 2], loss=float("nan") if step == 3 else 1.0)
        assert eventually(lambda: bool(alert_rows(log.path, "non_finite")), patience_s=WITHIN_S)
        (process,) = spawned
        assert process.poll() is None
    (row,) = alert_rows(log.path, "non_finite")
    data = json.loads(row["data"])
    assert (row["step"], row["level"], data["severity"]) == (4, "error", "serious")
    assert data["link"] == {"page": "training", "query": {}}
    assert {"name": "first_step", "value": 3.0}.items() <= data["numbers"][1].items()
    assert row["message"].startswith("1 of 5 steps has a loss")
    marks = event_marks(open_run(log.path).frame("events"))
    assert marks.loc[marks["kind"] == "alert", "level"].tolist()[0] in ("warning", "error")
    assert process.wait(0) is not None


def test_notes_and_lines_that_are_cut_off_are_no_alerts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"rule": "ties", "severity": "warning", "title": "größe", "numbers": [], "link": {}}
    lines = [json.dumps(told | {"severity": "note"}), json.dumps(told), '{"rule": "cut']
    printing(monkeypatch, f"print({chr(10).join(lines)!r}, end='')")
    with RunLogger(tmp_path, "run", flush_seconds=0.1, alert_seconds=1) as log:
        assert eventually(lambda: bool(alert_rows(log.path)), patience_s=WITHIN_S)
    (row,) = alert_rows(log.path)
    assert (row["level"], row["message"], row["step"]) == ("warning", "größe", -1)


def test_a_doctor_that_fails_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printing(monkeypatch, "import sys; print('no luck', file=sys.stderr); sys.exit(2)")
    with RunLogger(tmp_path, "run", flush_seconds=0.1, alert_seconds=1) as log:
        assert eventually(lambda: bool(alert_rows(log.path)), patience_s=WITHIN_S)
    assert alert_rows(log.path)[0]["message"] == "no more alerts, their process has failed: no luck"


def test_a_doctor_that_cannot_start_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spawn(*given: Any) -> subprocess.Popen[bytes]:
        raise OSError("no processes left")

    monkeypatch.setattr(alerts, "_spawn", spawn)
    with RunLogger(tmp_path, "run", alert_seconds=1) as log:
        pass
    assert "no processes left" in alert_rows(log.path)[0]["message"]


def test_a_run_that_was_ended_by_an_error_ends_its_doctor(
    tmp_path: Path, spawned: list[subprocess.Popen[bytes]]
) -> None:
    with pytest.raises(ZeroDivisionError), RunLogger(tmp_path, "run", alert_seconds=600):
        raise ZeroDivisionError
    assert spawned[0].wait(0) is not None


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_alerts_every_no_seconds_are_refused(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(ValueError, match="alert_seconds="):
        RunLogger(tmp_path, "run", alert_seconds=seconds)
    assert not (tmp_path / "run").exists()


def test_without_being_asked_nobody_looks(tmp_path: Path, spawned: list[subprocess.Popen[bytes]]) -> None:
    with RunLogger(tmp_path, "run"):
        pass
    assert spawned == []


def test_the_training_loads_none_of_the_analysis(tmp_path: Path) -> None:
    code = f"""
import sys
from uwml_core.runlog.writer import RunLogger
with RunLogger({str(tmp_path)!r}, "run", alert_seconds=600) as log:
    log.log_event("note", "nothing wrong")
print([name for name in sys.modules if name.startswith(("uwml_core.analysis", "uwml_core.runlog.reader"))])
"""
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert (told.stdout, told.stderr) == ("[]\n", "")
