"""The training page: is it learning?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic import make_run, rewrite_run_json
from uwml_core.weighting import UWMLConfig

TRAINING = "pages/watch/training.py"
CHARTS = {
    "Loss and its parts",
    "Recall on val",
    "Learning rate",
    "Temperature",
    "Gradient norm",
    "Effective sample size",
    "Throughput",
    "In-batch rank-1 accuracy",
}


@pytest.mark.parametrize(
    ("status", "badge"),
    [
        ("finished", "finished"),
        ("running", "running"),
        ("stopped", "stopped by the user"),
        ("failed", "failed"),
        ("stale", "stopped writing, probably killed"),
    ],
)
def test_run_of_any_status_is_drawn_with_its_badge(
    open_page: Callable[..., Any], tmp_path: Path, status: str, badge: str
) -> None:
    make_run(tmp_path, steps=12, epochs=3, status=status)
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert badge in opened.text
    assert "12 steps" in opened.text
    assert "newest row" in opened.text
    assert set(opened.charts()) == CHARTS


def test_empty_folder_says_how_to_start(open_page: Callable[..., Any], tmp_path: Path) -> None:
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert "No runs yet." in opened.text


def test_one_step_without_evaluation_is_a_useful_page(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=1, epochs=1, without=("evals",))
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert "Too little data yet" in opened.text
    assert set(opened.charts()) == CHARTS - {"Recall on val"}
    assert "Nothing logged for this chart yet." in opened.text


def test_running_run_without_rows_waits(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=4, epochs=1, status="running", without=("steps", "pairs", "evals"))
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert "Waiting for the first rows of steps." in opened.text


def test_finished_run_without_steps_says_how_to_log_them(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    make_run(tmp_path, steps=4, epochs=1, without=("steps",))
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert "This run has no steps table." in opened.text
    assert any("RunLogger" in block.value for block in opened.app.code)


def test_foreign_run_is_drawn_from_its_tables(open_page: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=12, epochs=3)
    (folder / "run.json").unlink()
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert "foreign" in opened.text
    assert "Loss and its parts" in opened.charts()


def test_torn_part_is_named_and_left_out(open_page: Callable[..., Any], tmp_path: Path) -> None:
    # a part of each segment, as those of one are joined
    folder = make_run(tmp_path, steps=120, epochs=3, resume_at=60)
    torn, *others = sorted((folder / "steps").glob("*.parquet"))
    assert others
    content = torn.read_bytes()
    torn.write_bytes(content[: len(content) // 2])
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert torn.name in opened.text
    assert "1 file was skipped" in opened.app.expander[0].label
    assert "Loss and its parts" in opened.charts()


def test_hostile_name_stays_text(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, name="<img src=x onerror=alert(1)> *b* $x$", steps=6, epochs=2)
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert "<img" not in opened.markup
    assert "&lt;img src=x onerror=alert(1)&gt; *b* $x$" in opened.markup


def test_values_that_are_not_finite_are_counted(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=30, epochs=3, nan_steps=(10, 11, 12))
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert "not finite" in opened.text
    assert "3 of 30 steps" in opened.text


def test_numbers_carry_n(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=30, epochs=3, items=64)
    opened = open_page(TRAINING, tmp_path)
    assert "i2t: n = 16 · t2i: n = 16" in opened.text
    assert "%, n = 16" in opened.text
    assert "last 30 steps" in opened.text


def test_long_series_says_how_many_points_it_shows(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=2500, epochs=1, batch=2, without=("pairs", "ranks", "snapshots"))
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert "of 7,500 points" in opened.text


def test_other_directions_keep_their_names(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=12, epochs=2, directions=("v2t", "t2v"))
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert "v2t: n = 16 · t2v: n = 16" in opened.text


@pytest.mark.parametrize(("base", "unit"), [("infonce", "nat"), ("triplet", "cosine"), (None, "")])
def test_loss_is_said_in_its_unit(
    open_page: Callable[..., Any], tmp_path: Path, base: str | None, unit: str
) -> None:
    folder = make_run(tmp_path, steps=12, epochs=3, config=UWMLConfig(base=base or "infonce", total_steps=12))
    if base is None:
        rewrite_run_json(folder, config={"optimizer": "sgd"})
    opened = open_page(TRAINING, tmp_path)
    assert not opened.failures
    assert f">{'Loss, ' + unit if unit else 'Loss'}<" in opened.markup
    title = re.search(r"Loss and its parts(.*)", opened.markup)
    assert title
    assert (f">{unit}</small>" in title[1]) == bool(unit)
    assert unit == "nat" or not re.search(r"\bnat\b", opened.text)


@pytest.mark.parametrize(
    ("asked", "shown", "told"),
    [
        ("3..9", "3..9", "Zoomed into steps 3 to 9"),
        ("3..900", "3..11", "Zoomed into steps 3 to 11"),
        ("-5.5..4", "0..4", "Zoomed into steps 0 to 4"),
        ("100..900", "", "This run has none of steps 100 to 900: all of its steps are shown."),
        ("12..900", "", "This run has none of steps 12 to 900"),
        ("9..3", "", ""),
    ],
)
def test_a_range_in_the_address_shows_the_steps_that_there_are(
    open_page: Callable[..., Any], tmp_path: Path, asked: str, shown: str, told: str
) -> None:
    make_run(tmp_path, steps=12, epochs=3)
    opened = open_page(TRAINING, tmp_path, steps=asked)
    assert not opened.failures
    assert told in opened.text
    assert opened.app.query_params.get("steps", "") == shown
    assert ("Zoomed into" in opened.text) == bool(shown)
    assert all(len(trace["x"]["bdata"]) for trace in opened.charts()["Gradient norm"]["data"])
