"""What a page keeps until its run changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from tests.support.steps import eventually
from tests.support.synthetic import make_run
from uwml_core.figures import training as figures
from uwml_core.i18n import set_language
from uwml_core.runlog.reader import Run, open_run
from uwml_core.ui import kept, kept_of

TRAINING = "pages/watch/training.py"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    st.cache_resource.clear()
    return open_run(make_run(tmp_path, steps=4, epochs=1))


@pytest.fixture
def count() -> Callable[[str], str]:
    """A function that says how often it has been called."""
    calls: list[str] = []

    def counted(name: str) -> str:
        calls.append(name)
        return f"{name} {len(calls)}"

    return counted


def test_result_is_made_once_per_key(run: Run, count: Callable[[str], str]) -> None:
    assert [kept(run, key, count, key) for key in ("a", "a", "b", "a")] == ["a 1", "a 1", "b 2", "a 1"]


def test_another_language_makes_it_anew(run: Run, count: Callable[[str], str]) -> None:
    assert kept(run, "a", count, "a") == "a 1"
    set_language("zh")
    try:
        assert kept(run, "a", count, "a") == "a 2"
    finally:
        set_language("en")
    assert kept(run, "a", count, "a") == "a 1"


def test_new_rows_make_it_anew_soon(run: Run, count: Callable[[str], str]) -> None:
    assert kept(run, "a", count, "a") == "a 1"
    part = next((run.path / "steps").glob("*.parquet"))
    os.utime(part, (0, 0))
    deadline = time.monotonic() + 60
    while (result := kept(run, "a", count, "a")) == "a 1" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert result == "a 2"


def test_what_comes_from_one_table_outlives_new_rows_of_others(run: Run, count: Callable[[str], str]) -> None:
    def touch(table: str) -> None:
        os.utime(next((run.path / table).glob("*.parquet")), (0, 0))

    assert kept_of(run, "evals", "a", count, "a") == "a 1"
    assert kept(run, "a", count, "b") == "b 2"
    touch("steps")
    assert eventually(lambda: kept(run, "a", count, "b") == "b 3")
    assert kept_of(run, "evals", "a", count, "a") == "a 1"
    touch("evals")
    assert eventually(lambda: kept_of(run, "evals", "a", count, "a") == "a 4")


def test_page_that_is_drawn_again_builds_no_figure_again(
    open_page: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path, steps=12, epochs=3)
    opened = open_page(TRAINING, tmp_path)
    before = opened.charts()

    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("drawn again")

    monkeypatch.setattr(figures, "line_figure", refuse)
    monkeypatch.setattr(figures, "retrieval_figure", refuse)
    opened.app.run()
    assert not opened.failures
    assert opened.charts() == before
