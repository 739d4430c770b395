"""A run that repeats another with other parameters: whether it can be, its name, its configuration."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from uwml_core.analysis.child_run import child_config, child_name, child_obstacle, training_progress
from uwml_core.training import TrainConfig, build_config
from uwml_core.ui.launch import train_options
from uwml_core.weighting import UWMLConfig

OURS = TrainConfig().to_dict()


def with_data(**data: Any) -> dict[str, Any]:
    return {**OURS, "data": {**OURS["data"], **data}}


def test_a_run_of_the_trainer_on_a_shipped_set_can_be_repeated(tmp_path: Path) -> None:
    assert child_obstacle(OURS, tmp_path) == ""


def test_data_are_looked_for_in_the_folder_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "mine.parquet").touch()
    assert child_obstacle(with_data(path="mine.parquet"), tmp_path) == ""
    assert child_obstacle(with_data(path=str(tmp_path / "mine.parquet")), Path("/")) == ""
    elsewhere = child_obstacle(with_data(path="mine.parquet"), tmp_path / "elsewhere")
    assert elsewhere == "Its data, mine.parquet, are not on this computer."
    pictures = child_obstacle(with_data(path="mine.parquet", pictures="gone"), tmp_path)
    assert pictures == "Its data, gone, are not on this computer."


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"loss": UWMLConfig().to_dict()},
        {**OURS, "data": "pairs.csv"},
        {**OURS, "loss": {"center": "left"}},
        {**OURS, "loss": {}},
        {name: section for name, section in OURS.items() if name != "model"},
    ],
)
def test_another_loop_is_told_apart(config: dict[str, Any], tmp_path: Path) -> None:
    assert "training loop of your own" in child_obstacle(config, tmp_path)


@pytest.mark.parametrize("path", [None, 7, "", "a\0b", "~nobody-at-all/x", "x" * 5000, ["a"]])
def test_a_path_that_is_none_is_no_error(path: Any, tmp_path: Path) -> None:
    said = child_obstacle(with_data(path=path), tmp_path)
    assert "are not on this computer" in said


def test_a_finished_model_has_no_training(tmp_path: Path) -> None:
    assert "finished model" in child_obstacle({"finished_model": {"images": "a.npy"}}, tmp_path)


def test_the_name_says_what_changed() -> None:
    after = UWMLConfig(steepness_end=8.0, direction_mode="off")
    assert child_name("bell", UWMLConfig(), after) == "bell, steepness end 20→8, direction mode adaptive→off"
    many = UWMLConfig(curve="hard", center=0.1, steepness_start=1.0, hard_floor=0.5, window=7)
    assert child_name("a", UWMLConfig(), many).endswith(", steepness start 2→1, 2 more")


def test_a_long_or_broken_name_of_the_parent_can_be_stored() -> None:
    name = child_name("\ud800" + "n" * 400, UWMLConfig(), UWMLConfig(center=0.1))
    assert name.encode().startswith(b"?nnn")
    assert name.endswith("n…, center 0.15→0.1")
    assert len(name) == 160


@pytest.mark.parametrize(
    "name", ["plain", "--preset: {x} # 'y' \"z\"\n\t = \0 😀 \u202e", "null", "1e3", "- a"]
)
def test_what_the_trainer_is_told_is_what_it_understands(name: str) -> None:
    after = UWMLConfig(direction_mode="off", center=-0.01, temperature=1e-05, total_steps=99)
    parent = {**OURS, "train": {**OURS["train"], "learning_rate": 1e-4, "resume": "earlier"}}
    child = child_config(parent, after, root="/logs of mine", name=name, parent_id="p")
    options = train_options(child)
    assert options[::2] == ["--set"] * (len(options) // 2)
    config = build_config(settings=options[1::2])
    loss = UWMLConfig.from_dict({**after.to_dict(), "total_steps": None})
    assert config.loss == loss
    assert config.train.learning_rate == 1e-4
    assert config.train.resume is None
    assert (config.run.root, config.run.name, config.run.parent) == ("/logs of mine", name, "p")
    assert config.data == TrainConfig().data


def test_sample_runs_give_settings_that_the_trainer_takes() -> None:
    import json

    for path in Path("logs").glob("sample-*/run.json"):
        parent = json.loads(path.read_text())["config"]
        assert child_obstacle(parent, Path.cwd()) == ""
        loss = UWMLConfig.from_dict(parent["loss"])
        child = child_config(parent, loss, root="logs", name="a", parent_id=path.parent.name)
        config = build_config(settings=train_options(child)[1::2])
        assert config.data.only == parent["data"]["only"]
        assert yaml.safe_load(yaml.safe_dump(config.to_dict()))["run"]["parent"] == path.parent.name


def test_progress_counts_steps_and_foretells_at_the_pace_so_far() -> None:
    found = training_progress({"step": 29, "epoch": 2.0, "elapsed_s": 60.0}, 40)
    assert (found.done, found.total, found.epoch, found.left_s, found.share) == (30, 40, 2, 20.0, 0.75)


@pytest.mark.parametrize("elapsed", [None, math.nan, math.inf])
def test_progress_without_a_clock_or_a_plan_foretells_nothing(elapsed: float | None) -> None:
    assert math.isnan(training_progress({"step": 3, "elapsed_s": elapsed}, 40).left_s)
    unplanned = training_progress({"step": 3, "epoch": math.nan, "elapsed_s": 1.0}, None)
    assert math.isnan(unplanned.left_s)
    assert (unplanned.share, unplanned.epoch) == (0.0, None)
    assert training_progress(None, 40).share == 0.0
    assert training_progress({"step": 99, "epoch": 1.0}, 40).share == 1.0
