"""The commands that judge a run and that make one to judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from uwml_core.__main__ import main
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.sick import KINDS

LOGS = Path(__file__).parents[2] / "logs"


def test_doctor_fails_on_a_serious_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(LOGS / "sample-collapse")]) == 1
    assert "SERIOUS collapse" in capsys.readouterr().out


def test_doctor_passes_a_healthy_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(LOGS / "sample-video"), "--strict"]) == 0
    assert "nothing wrong found" in capsys.readouterr().out


def test_nothing_is_wrong_is_not_said_of_a_run_without_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunLogger(tmp_path, run_id="empty") as log:
        pass
    assert main(["doctor", str(log.path)]) == 0
    assert "too little data yet, no rule can judge this run" in capsys.readouterr().out
    assert main(["health", str(log.path)]) == 0
    told = capsys.readouterr().out
    assert "nothing was logged" in told
    assert "nothing wrong" not in told


def test_doctor_tells_numbers_and_settings_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(LOGS / "sample-collapse"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["worst"] == "serious"
    (finding, *_) = told["findings"]
    assert finding["changes"][0] == {"name": "train.learning_rate", "value": 0.0009, "before": 0.003}
    assert {number["name"] for number in finding["numbers"]} == {"similarity_spread", "loss"}


def test_doctor_on_no_run_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err


def test_sick_run_lists_its_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sick-run"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(KINDS)


def test_sick_run_refuses_an_unknown_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sick-run", "shuffled", "--root", str(tmp_path)]) == 2
    assert "kind='shuffled' is unknown" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "seconds"), [((), None), (("--alerts",), 10.0)])
def test_train_has_the_doctor_look_where_asked(
    words: tuple[str, ...], seconds: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float | None] = []

    def run_training(*_: object, alert_seconds: float | None, **__: object) -> Path:
        told.append(alert_seconds)
        return tmp_path

    monkeypatch.setattr("uwml_core.training.run_training", run_training)
    assert main(["train", *words]) == 0
    assert told == [seconds]
