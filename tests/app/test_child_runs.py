"""Train with these settings: when it is offered, what is started, what the sidebar says of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from streamlit import config as server_config

from tests.support.synthetic import make_run, rewrite_run_json
from uwml_core.analysis.child_run import TrainingProgress
from uwml_core.runlog.reader import Run
from uwml_core.training import TrainConfig, build_config
from uwml_core.ui import launch as launch_module
from uwml_core.ui import read
from uwml_core.ui import training_strip as strip_module
from uwml_core.ui.child_card import start_child
from uwml_core.ui.launch import launch
from uwml_core.ui.training_strip import _progress_text
from uwml_core.ui.trainings import Training, Trainings
from uwml_core.weighting import UWMLConfig

WEIGHT_CURVE, BALANCE = "pages/explain/weight_curve.py", "pages/explain/modal_balance.py"
RUNS = "pages/watch/runs.py"
HOSTILE = "<script>alert(1)</script> *b* [x](y)"


class Recorded(Trainings):
    """Starts nothing and keeps what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.options: list[str] = []
        self.stopped: list[Training] = []

    def start(self, training: Training, options: Any) -> Training:
        if self._newest is not None and self._newest.runs:
            raise RuntimeError("one is running")
        self._newest, self.options = training, list(options)
        return training

    def stop(self, training: Training) -> None:
        training.state = "stopping"
        self.stopped.append(training)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    trainings = Recorded()
    for module in (launch_module, strip_module):
        monkeypatch.setattr(module, "trainings", trainings)
    return trainings


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A run as the trainer writes it, on the shipped set."""
    folder = make_run(tmp_path / "logs", run_id="parent", steps=24, epochs=2, batch=16)
    ours = {**TrainConfig().to_dict(), "loss": UWMLConfig(total_steps=24).to_dict()}
    rewrite_run_json(folder, config=ours)
    return folder.parent


@pytest.fixture
def public() -> Iterator[None]:
    address = server_config.get_option("server.address")
    server_config._set_option("server.address", "0.0.0.0", "test")
    yield
    server_config._set_option("server.address", address, "test")


def keys(opened: Any) -> set[str]:
    return {button.key for button in opened.app.button}


@pytest.mark.parametrize(
    ("page", "parameter", "value"), [(WEIGHT_CURVE, "center", 0.3), (BALANCE, "smoothing", 0.5)]
)
def test_the_sliders_settings_become_a_training_of_the_same_data(
    open_page: Callable[..., Any], logs: Path, recorded: Recorded, page: str, parameter: str, value: float
) -> None:
    opened = open_page(page, logs, run="parent")
    assert opened.app.button(key="train-with-these").disabled
    opened.app.slider(key=parameter).set_value(value).run()
    assert not opened.app.button(key="train-with-these").disabled
    opened.app.button(key="train-with-these").click().run()
    assert not opened.failures
    config = build_config(settings=recorded.options[1::2])
    assert config.loss == UWMLConfig(**{parameter: value})
    assert (config.data, config.model, config.train) == (
        TrainConfig().data,
        TrainConfig().model,
        TrainConfig().train,
    )
    was = getattr(UWMLConfig(), parameter)
    assert config.run.name == f"parent, {parameter} {was}→{value}"
    assert (config.run.root, config.run.parent) == (str(logs), "parent")
    assert recorded.newest is not None
    assert recorded.newest.parent == "parent"


def test_one_training_at_a_time_for_all_visitors(
    open_page: Callable[..., Any], logs: Path, recorded: Recorded
) -> None:
    recorded.start(Training("other", "another visitor's"), [])
    opened = open_page(WEIGHT_CURVE, logs, run="parent", center="0.3")
    assert opened.app.button(key="train-with-these").disabled
    assert "One training at a time" in opened.text
    assert "another visitor's" in opened.text
    start_child(Run(logs / "parent"), UWMLConfig(), UWMLConfig(center=0.3))
    assert recorded.newest is not None
    assert recorded.newest.run_id == "other"
    runs = open_page(RUNS, logs)
    assert runs.app.button(key="start-demo").disabled


def test_a_foreign_loop_says_why_it_cannot_be_trained(
    open_page: Callable[..., Any], logs: Path, recorded: Recorded
) -> None:
    rewrite_run_json(logs / "parent", config={"loss": UWMLConfig().to_dict()})
    opened = open_page(WEIGHT_CURVE, logs, run="parent", center="0.3")
    assert not opened.failures
    assert opened.app.button(key="train-with-these").disabled
    assert "training loop of your own" in opened.text
    with pytest.raises(ValueError, match="run='parent' cannot be trained anew"):
        start_child(Run(logs / "parent"), UWMLConfig(), UWMLConfig(center=0.3))
    assert recorded.newest is None


@pytest.mark.parametrize("page", [WEIGHT_CURVE, BALANCE])
def test_read_only_neither_offers_nor_starts(
    open_page: Callable[..., Any], logs: Path, recorded: Recorded, page: str
) -> None:
    opened = open_page(page, logs, read_only=True, run="parent")
    assert not opened.failures
    assert "train-with-these" not in keys(opened)
    assert_refused(logs, recorded)


def test_a_public_address_neither_offers_nor_starts(
    open_page: Callable[..., Any], logs: Path, recorded: Recorded, public: None
) -> None:
    opened = open_page(WEIGHT_CURVE, logs, run="parent")
    assert not opened.failures
    assert "train-with-these" not in keys(opened)
    assert not {"start-demo", "pin-note"} & keys(open_page(RUNS, logs))
    assert_refused(logs, recorded)


def assert_refused(logs: Path, recorded: Recorded) -> None:
    with pytest.raises(PermissionError, match="starts no training"):
        start_child(Run(logs / "parent"), UWMLConfig(), UWMLConfig(center=0.3))
    with pytest.raises(PermissionError):
        launch("demo", {})
    assert recorded.newest is None


def test_progress_is_there_on_every_page_and_after_a_reload_and_can_be_stopped(
    open_page: Callable[..., Any], logs: Path, recorded: Recorded
) -> None:
    training = recorded.start(Training("child", HOSTILE, "parent"), [])
    opened = open_page(RUNS, logs)
    assert "The data are read and the encoders built." in progress(opened)
    make_run(logs, run_id="child", steps=12, epochs=2, status="running")
    rewrite_run_json(logs / "child", total_steps=48, heartbeat_at=datetime.now(UTC).isoformat())
    # the list of runs is a second old at most
    read._runs.clear()
    opened = open_page(WEIGHT_CURVE, logs, run="parent")
    assert not opened.failures
    assert "Step 12 of 48 · epoch 1 · about " in progress(opened)
    assert "<script>alert" not in opened.markup
    assert HOSTILE in opened.text
    assert "child" in opened.app.selectbox(key="run").options
    opened.app.button(key="stop-training").click().run()
    assert recorded.stopped == [training]
    assert opened.app.button(key="stop-training").disabled


def progress(opened: Any) -> str:
    return " ".join(str(element.proto.text) for element in opened.app.get("progress"))


def test_the_end_offers_the_comparison_with_the_parent(
    open_page: Callable[..., Any], logs: Path, recorded: Recorded
) -> None:
    make_run(logs, run_id="child", steps=12, epochs=2)
    recorded.start(Training("child", "a child", "parent", state="finished"), [])
    opened = open_page(RUNS, logs)
    links = {link.proto.label: link.proto.query_string for link in opened.app.get("page_link")}
    assert links["Compare with its parent"] == "run=child&runs=parent&runs=child&baseline=parent"
    assert links["Show the run"] == "run=child"
    opened.app.button(key="dismiss-training").click().run()
    assert not opened.failures
    assert "a child" not in opened.text


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (HOSTILE, 2, HOSTILE),
        ("", -9, "Ended by signal 9; the computer may be out of memory."),
        ("", 3, "exit code 3"),
    ],
)
def test_a_failed_training_says_why(
    open_page: Callable[..., Any], logs: Path, recorded: Recorded, problem: str, code: int, said: str
) -> None:
    recorded.start(Training("child", "a child", "parent", state="failed", problem=problem, code=code), [])
    opened = open_page(RUNS, logs)
    assert not opened.failures
    assert said in opened.text
    assert "<script>alert" not in opened.markup
    assert "Compare with its parent" not in {link.proto.label for link in opened.app.get("page_link")}
    assert not opened.app.button(key="start-demo").disabled


def test_an_outcome_is_shown_for_a_while_only(
    open_page: Callable[..., Any], logs: Path, recorded: Recorded
) -> None:
    recorded.start(Training("child", "a child", state="finished", ended_at=-math.inf), [])
    assert "a child" not in open_page(RUNS, logs).text


def test_progress_before_the_first_step_says_what_is_done() -> None:
    assert _progress_text(TrainingProgress(total=5), is_there=True) == "Evaluated before the first step."
    known = TrainingProgress(done=1000, total=2000, epoch=3)
    assert _progress_text(known, is_there=True) == "Step 1,000 of 2,000 · epoch 3"
