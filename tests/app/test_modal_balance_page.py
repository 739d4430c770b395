"""The modal balance page: each control is moved and its outcome checked."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.support.parts import split_table
from tests.support.synthetic import make_run
from uwml_core.weighting import UWMLConfig

MODAL_BALANCE = "pages/explain/modal_balance.py"
BALANCE, CONTRIBUTIONS = "Gaps and direction weights", "Contributions to the loss"
DEFAULTS = UWMLConfig()
PARAMETERS = (
    "direction_mode",
    "window",
    "update_every",
    "smoothing",
    "sensitivity",
    "min_weight",
    "direction_fixed",
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    # the second direction lags
    lively = UWMLConfig(sensitivity=0.04, min_weight=0.2, smoothing=0.6, total_steps=240)
    make_run(folder, run_id="a-adaptive", steps=240, epochs=4, batch=24, config=lively)
    off = UWMLConfig(direction_mode="off", total_steps=60)
    make_run(folder, run_id="b-off", steps=60, epochs=2, config=off)
    return folder


@pytest.fixture
def opened(open_page: Callable[..., Any], logs: Path) -> Any:
    page = open_page(MODAL_BALANCE, logs, run="a-adaptive")
    assert not page.failures
    return page


def settings(opened: Any) -> dict[str, Any]:
    loss: dict[str, Any] = yaml.safe_load(opened.app.code[0].value)["loss"]
    return loss


def row(opened: Any, name: str) -> list[str]:
    """Cells of the table: in use and tried, of the first and of the second direction."""
    cells = opened.markup.split(f"<td>{name}</td>")[1].split("</tr>")[0]
    return [cell.removeprefix("<td>") for cell in cells.split("</td>") if cell]


def names(opened: Any, chart: str = BALANCE) -> list[str]:
    return [str(trace["name"]) for trace in opened.charts()[chart]["data"]]


def headline(opened: Any) -> str:
    return str(opened.text.split("uw-headline")[1][:300])


def test_page_shows_what_the_run_uses(opened: Any) -> None:
    assert settings(opened) == {
        "direction_mode": "adaptive", "window": 200, "update_every": 10, "smoothing": 0.6,
        "sensitivity": 0.04, "min_weight": 0.2, "direction_fixed": 0.5,
    }  # fmt: skip
    assert set(opened.charts()) == {BALANCE, CONTRIBUTIONS}
    assert "gives the logged direction weights bit for bit (240 steps)" in opened.text
    assert "Open-loop replay" in opened.text
    assert "t2i lags i2t by 0.0" in headline(opened)
    assert "was " not in opened.text
    assert not [name for name in names(opened) if name.endswith("before")]
    for name in ("Weight", "Weight, newest step", "Jitter per 100 steps"):
        first_in_use, first_tried, second_in_use, second_tried = row(opened, name)
        assert (first_in_use, second_in_use) == (first_tried, second_tried)


@pytest.mark.parametrize(
    ("name", "value", "was"),
    [
        ("window", 20, "200"),
        ("update_every", 3, "10"),
        ("smoothing", 0.95, "0.6"),
        ("sensitivity", 0.2, "0.04"),
        ("min_weight", 0.35, "0.2"),
    ],
)
def test_slider_changes_the_replay_and_says_what_it_was(opened: Any, name: str, value: Any, was: str) -> None:
    opened.app.slider(key=name).set_value(value).run()
    assert not opened.failures
    assert settings(opened)[name] == value
    assert f"was {was}" in opened.text
    in_use, tried, *_second = row(opened, "Weight")
    assert in_use != tried
    assert "Tried: t2i weighs" in headline(opened)
    assert {"i2t weight before", "t2i weight before"} <= set(names(opened))
    assert ("i2t gap before" in names(opened)) == (name == "window")
    assert {"i2t share before", "t2i contribution before"} <= set(names(opened, CONTRIBUTIONS))
    assert "bit for bit (240 steps)" in opened.text


def test_update_interval_moves_the_ticks(opened: Any) -> None:
    assert "updates: 24 in use, 24 tried" in opened.text
    opened.app.slider(key="update_every").set_value(60).run()
    assert "updates: 24 in use, 4 tried" in opened.text


def test_smallest_weight_is_respected(opened: Any) -> None:
    opened.app.slider(key="min_weight").set_value(0.4).run()
    first_in_use, first_tried, _second_in_use, second_tried = row(opened, "Weight, newest step")
    assert float(first_in_use) < 0.4
    assert (first_tried, second_tried) == ("0.400", "0.600")


def test_smoothing_calms_the_weights(opened: Any) -> None:
    opened.app.slider(key="sensitivity").set_value(0.1).run()
    opened.app.slider(key="smoothing").set_value(0.99).run()
    in_use, tried = (float(cell.split(" ± ")[0]) for cell in row(opened, "Jitter per 100 steps")[:2])
    assert tried < in_use


def test_fixed_mode_takes_its_weight_from_the_slider(opened: Any) -> None:
    assert opened.app.slider(key="direction_fixed").disabled
    opened.app.selectbox(key="direction_mode").set_value("fixed").run()
    assert "was adaptive" in opened.text
    assert opened.app.slider(key="window").disabled
    assert not opened.app.slider(key="direction_fixed").disabled
    opened.app.slider(key="direction_fixed").set_value(0.7).run()
    assert not opened.failures
    assert settings(opened)["direction_fixed"] == 0.7
    assert row(opened, "Weight, newest step")[1::2] == ["0.700", "0.300"]
    assert row(opened, "Jitter per 100 steps")[1] == "0.000 ± 0.000"


def test_mode_off_weighs_both_the_same(opened: Any) -> None:
    opened.app.selectbox(key="direction_mode").set_value("off").run()
    assert not opened.failures
    assert row(opened, "Weight, newest step")[1::2] == ["0.500", "0.500"]
    assert "updates" not in names(opened)
    assert all(opened.app.slider(key=name).disabled for name in PARAMETERS[1:])


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        (0, {}),
        (1, {"smoothing": 0.95}),
        (2, {"window": 20, "update_every": 1}),
        (3, {"direction_mode": "off"}),
    ],
)
def test_preset_sets_every_control(opened: Any, number: int, changed: dict[str, Any]) -> None:
    opened.app.slider(key="sensitivity").set_value(0.3).run()
    opened.app.button(key=f"preset-{number}").click().run()
    assert not opened.failures
    assert settings(opened) == {name: getattr(DEFAULTS, name) for name in PARAMETERS} | changed


def test_reset_goes_back_to_the_run_in_one_click(opened: Any) -> None:
    before = settings(opened)
    opened.app.slider(key="window").set_value(3).run()
    opened.app.slider(key="smoothing").set_value(0.1).run()
    opened.app.selectbox(key="direction_mode").set_value("off").run()
    opened.app.button(key="reset").click().run()
    assert not opened.failures
    assert settings(opened) == before
    assert "was " not in opened.text


def test_another_run_brings_its_own_parameters(opened: Any) -> None:
    opened.app.slider(key="window").set_value(3).run()
    opened.app.selectbox(key="run").set_value("b-off").run()
    assert not opened.failures
    assert (settings(opened)["window"], settings(opened)["direction_mode"]) == (200, "off")


def test_run_without_a_controller_is_said_and_can_be_replayed_with_one(
    open_page: Callable[..., Any], logs: Path
) -> None:
    opened = open_page(MODAL_BALANCE, logs, run="b-off")
    assert not opened.failures
    assert "not adapted (direction_mode: off)" in headline(opened)
    assert "bit for bit (60 steps)" in opened.text
    opened.app.selectbox(key="direction_mode").set_value("adaptive").run()
    assert float(row(opened, "Weight, newest step")[3]) > 0.5
    assert "Tried: t2i weighs 0.50 →" in headline(opened)


def test_address_brings_back_the_whole_view(open_page: Callable[..., Any], logs: Path) -> None:
    opened = open_page(
        MODAL_BALANCE, logs, run="a-adaptive", window="40", smoothing="0.3", direction_mode="adaptive"
    )
    assert not opened.failures
    assert (settings(opened)["window"], settings(opened)["smoothing"]) == (40, 0.3)


@pytest.mark.parametrize(
    "query",
    [
        {"window": "0"},
        {"window": "x"},
        {"smoothing": "nan"},
        {"direction_mode": "<b>"},
        {"min_weight": "1"},
    ],
)
def test_senseless_address_falls_back_to_the_run(
    open_page: Callable[..., Any], logs: Path, query: dict[str, str]
) -> None:
    opened = open_page(MODAL_BALANCE, logs, run="b-off", **query)
    assert not opened.failures
    defaults = {name: getattr(DEFAULTS, name) for name in PARAMETERS}
    assert settings(opened) == defaults | {"direction_mode": "off"}


@pytest.mark.parametrize(("steps", "status"), [(1, "finished"), (2, "running"), (12, "stale")])
def test_few_steps_are_a_useful_page(
    open_page: Callable[..., Any], tmp_path: Path, steps: int, status: str
) -> None:
    make_run(tmp_path, steps=steps, epochs=1, status=status)
    opened = open_page(MODAL_BALANCE, tmp_path)
    assert not opened.failures
    assert "Too little data yet to say which direction lags" in headline(opened)
    assert set(opened.charts()) == {BALANCE, CONTRIBUTIONS}


def test_run_without_steps_says_how_to_log_them(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=6, epochs=2, without=("steps",))
    opened = open_page(MODAL_BALANCE, tmp_path)
    assert not opened.failures
    assert "This run has no steps table." in opened.text


def without_columns(folder: Path, *starts: str) -> None:
    for part in (folder / "steps").glob("*.parquet"):
        frame = pd.read_parquet(part)
        frame.drop(columns=[name for name in frame if name.startswith(starts)]).to_parquet(part, index=False)


def test_run_without_gaps_says_how_to_log_them(open_page: Callable[..., Any], tmp_path: Path) -> None:
    without_columns(make_run(tmp_path, steps=30, epochs=2), "gap_")
    opened = open_page(MODAL_BALANCE, tmp_path)
    assert not opened.failures
    assert "This run has no mean margins (gap_i2t, gap_t2i) in its steps table." in opened.text
    assert "log.log_step" in opened.app.code[0].value


def test_running_run_without_gaps_waits_for_them(open_page: Callable[..., Any], tmp_path: Path) -> None:
    without_columns(make_run(tmp_path, steps=30, epochs=2, status="running"), "gap_")
    opened = open_page(MODAL_BALANCE, tmp_path)
    assert not opened.failures
    assert "Waiting for the first mean margins" in opened.text


def test_foreign_run_is_drawn_and_cannot_be_checked(open_page: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=40, epochs=2)
    (folder / "run.json").unlink()
    without_columns(folder, "direction_weight_", "loss_", "epoch")
    opened = open_page(MODAL_BALANCE, tmp_path)
    assert not opened.failures
    assert "The run does not tell its loss parameters" in opened.text
    assert "No direction weight was logged." in headline(opened)
    assert opened.charts().keys() == {BALANCE}
    assert "Nothing logged for this chart yet." in opened.text


def test_lost_part_is_told_and_the_check_refused(open_page: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=160, epochs=2)
    split_table(folder, "steps", 60, 90)[1].unlink()
    opened = open_page(MODAL_BALANCE, tmp_path)
    assert not opened.failures
    assert "steps are missing from the log" in opened.text


def test_weights_of_another_controller_fail_the_check(open_page: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=60, epochs=2)
    info = json.loads((folder / "run.json").read_text())
    info["config"]["loss"]["sensitivity"] = 0.01
    (folder / "run.json").write_text(json.dumps(info))
    opened = open_page(MODAL_BALANCE, tmp_path)
    assert not opened.failures
    assert "does not give the logged direction weights" in opened.text
    assert "i2t weight before" in names(opened)


def test_video_run_names_its_own_directions(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=90, epochs=3, directions=("v2t", "t2v"))
    opened = open_page(MODAL_BALANCE, tmp_path)
    assert not opened.failures
    assert "t2v lags v2t" in headline(opened)
    assert opened.app.slider(key="direction_fixed").label == "Fixed weight of v2t"
    assert "i2t" not in opened.text


def test_sliders_stay_where_they_are_while_the_run_grows(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    make_run(tmp_path / "later", steps=120, epochs=2)
    folder = make_run(tmp_path / "logs", steps=120, epochs=2, status="running")
    parts = split_table(folder, "steps", 80)
    parts[-1].rename(tmp_path / parts[-1].name)
    opened = open_page(MODAL_BALANCE, tmp_path / "logs")
    opened.app.slider(key="window").set_value(30).run()
    shown = opened.text
    shutil.move(tmp_path / parts[-1].name, parts[-1])
    # the page asks for a run's version twice a second
    time.sleep(0.6)
    opened.app.run()
    assert not opened.failures
    assert settings(opened)["window"] == 30
    assert "(120 steps)" in opened.text
    assert "(120 steps)" not in shown
