"""The Learn page: each step's control changes its picture, in both languages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uwml_core.ui.lesson import lesson_steps

PAGE = "pages/share/learn.py"
# Slider of each step, and a value that is not its default.
MOVES = (
    ("learn_temperature", 0.2),
    ("learn_epoch", 3),
    ("learn_center", 0.3),
    ("learn_floor", 0.8),
    ("learn_progress", 100.0),
    ("learn_sensitivity", 0.15),
    ("learn_window", 2),
    ("learn_lagging", 0.9),
    ("learn_force", 0.3),
)


def test_there_are_at_most_ten_steps_and_a_control_for_each() -> None:
    assert len(lesson_steps()) == len(MOVES) <= 10


@pytest.mark.parametrize("number", range(1, len(MOVES) + 1))
def test_each_control_changes_its_picture(open_page: Callable[..., Any], tmp_path: Path, number: int) -> None:
    key, value = MOVES[number - 1]
    opened = open_page(PAGE, tmp_path, step=str(number))
    assert not opened.failures
    step = lesson_steps()[number - 1]
    assert f"{number} of {len(MOVES)}: {step.title}" in opened.text
    assert step.keep in opened.text
    before = opened.charts()[step.title]
    [slider] = opened.app.slider
    assert slider.key == key
    slider.set_value(value).run()
    assert not opened.failures
    assert opened.charts()[step.title]["data"] != before["data"]


def test_next_and_back_walk_through_and_the_end_leads_to_ones_own_run(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    opened = open_page(PAGE, tmp_path, step="8")
    opened.app.button(key="lesson-next").click().run()
    assert "9 of 9" in opened.text
    assert "Now your own run" in opened.text
    assert opened.app.button(key="lesson-next").disabled
    opened.app.button(key="lesson-back").click().run()
    assert "8 of 9" in opened.text
    assert "Now your own run" not in opened.text


@pytest.mark.parametrize("asked", ["0", "10", "x", ""])
def test_a_step_that_does_not_exist_is_the_first(
    open_page: Callable[..., Any], tmp_path: Path, asked: str
) -> None:
    assert "1 of 9" in open_page(PAGE, tmp_path, step=asked).text


def test_the_lesson_in_chinese_has_no_english_title(open_page: Callable[..., Any], tmp_path: Path) -> None:
    opened = open_page(PAGE, tmp_path, step="3", lang="zh")
    assert not opened.failures
    for step in lesson_steps():
        assert step.title not in opened.text
        assert step.keep not in opened.text


def test_without_sample_runs_the_steps_say_nothing_false(
    open_page: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwml_core.ui.lesson_steps.sample_logs", lambda: tmp_path / "none")
    for number in ("2", "3", "7"):
        opened = open_page(PAGE, tmp_path, step=number)
        assert not opened.failures
