"""Following a run: findings come when they appear, once, and again only when they are more serious."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.steps import a_step, log_batches
from uwml_core.__main__ import main
from uwml_core.analysis.diagnosis.examine import Examination, diagnose
from uwml_core.analysis.diagnosis.follow import follow
from uwml_core.commands.doctor import _plain as plain
from uwml_core.installation import child_environment
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger

LOGS = Path(__file__).parents[3] / "logs"
WITHIN_S = 120


def test_a_finding_is_told_when_it_appears_and_not_again(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        losses = iter([1.0, float("nan"), float("nan")])

        def pause() -> bool:
            loss = next(losses, None)
            if loss is None:
                log.close()
            else:
                log.log_step(a_step(log._session.step + 1), item_ids=[1, 2], loss=loss)
                log.flush()
            return False

        told = [finding.rule for finding in follow(open_run(tmp_path / "run"), pause)]
    assert told.count("non_finite") == 1
    assert len(told) == len(set(told))


def test_a_finding_that_grows_more_serious_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = open_run(LOGS / "sample-collapse")
    (found,) = (f for f in diagnose(run).findings if f.rule == "collapse")
    severities: Iterator[str] = iter(["note", "warning", "note", "serious", "serious"])

    def update(self: Examination) -> object:
        return type("Told", (), {"findings": (replace(found, rule="ours", severity=next(severities)),)})

    monkeypatch.setattr(Examination, "update", update)
    monkeypatch.setattr(type(run), "status", "running")
    pauses = iter([False] * 4 + [True])
    told = [finding.severity for finding in follow(run, lambda: next(pauses))]
    assert told == ["note", "warning", "serious"]


def test_doctor_follows_a_run_that_has_ended_to_its_end_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    niceness: list[int] = []
    monkeypatch.setattr("uwml_core.commands.doctor.os.nice", niceness.append)
    assert main(["doctor", str(LOGS / "sample-collapse"), "--follow", "--json"]) == 1
    first, *_ = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["rule"], first["severity"], niceness) == ("collapse", "serious", [19])
    assert main(["doctor", str(LOGS / "sample-collapse"), "--follow"]) == 1
    assert capsys.readouterr().out.startswith("SERIOUS collapse")
    assert main(["doctor", str(LOGS / "sample-video"), "--follow", "--strict"]) == 0
    assert capsys.readouterr().out == ""


def test_doctor_does_not_follow_a_remote_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "s3://bucket/logs/run", "--follow"]) == 2
    assert "--follow needs a run in a folder of this machine" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan", "soon"])
def test_doctor_refuses_to_look_every_no_seconds(seconds: str) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "run", "--follow", "--every", seconds])


def test_the_doctor_ends_when_nobody_reads_what_it_prints(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        log.log_step(a_step(0), item_ids=[1, 2], loss=float("nan"))
        log.flush()
        command = [sys.executable, "-m", "uwml_core", "doctor", str(log.path), "--follow", "--json"]
        with subprocess.Popen(
            [*command, "--every", "600"], env=child_environment(), stdout=subprocess.PIPE
        ) as doctor:
            assert doctor.stdout is not None
            assert json.loads(doctor.stdout.readline())["severity"] == "serious"
            doctor.stdout.close()
            assert doctor.wait(WITHIN_S) == 1


@pytest.mark.parametrize(
    ("steps", "total", "told"), [(60, 100, False), (200, 300, True), (200, 5000, False), (60, None, False)]
)
def test_how_every_training_begins_is_no_finding_while_it_begins(
    tmp_path: Path, steps: int, total: int | None, told: bool
) -> None:
    same = {"positive_similarity": np.full((2, 4), 0.5, np.float32), "loss": 1.0}
    same |= {"negative_similarity": same["positive_similarity"], "margin": np.zeros((2, 4), np.float32)}
    with RunLogger(tmp_path, "run", total_steps=total) as log:
        for step in range(steps):
            log.log_step(a_step(step, 4, **same), item_ids=[1, 2, 3, 4])
        log.flush()
        run = open_run(log.path)
        assert "collapse" in {finding.rule for finding in diagnose(run).findings}
        assert ("collapse" in {finding.rule for finding in follow(run, lambda: True)}) == told
    assert "collapse" in {finding.rule for finding in follow(run, lambda: True)}


def test_a_run_that_was_followed_is_told_of_as_one_that_is_looked_at_first(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        examination = Examination(open_run(log.path))
        for begin in range(0, 90, 30):
            log_batches(log, range(begin, begin + 30))
            log.flush()
            followed, fresh = examination.update(), diagnose(open_run(log.path))
            assert [plain(one) for one in followed.findings] == [plain(one) for one in fresh.findings]
            assert followed.not_applicable == fresh.not_applicable
    assert len(followed.findings) > 2
