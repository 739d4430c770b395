"""Notes of a page: marks on its chart, a fold that lists them and pins more."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from tests.support.synthetic import make_run
from uwml_core.analysis.pinned import pinned_steps
from uwml_core.figures.draft import Draft
from uwml_core.figures.overlays import add_notes
from uwml_core.figures.theme import theme
from uwml_core.runlog.notes import Anchor, Note, pin_note, read_notes
from uwml_core.runlog.reader import Run

PAGES = {"training": ("pages/watch/training.py", "Loss and its parts")}
PAGES["modal_balance"] = ("pages/explain/modal_balance.py", "Gaps and direction weights")
HOSTILE = "<script>alert(1)</script> *b* %{x} 'q'"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    st.cache_resource.clear()
    return Run(make_run(tmp_path / "logs", run_id="demo", steps=24, epochs=3))


def note(page: str, kind: str, value: str, text: str) -> Note:
    return Note(page=page, anchor=Anchor(kind=kind, value=value), text=text)


def marks(opened: Any, title: str) -> list[dict[str, Any]]:
    return [trace for trace in opened.charts()[title]["data"] if trace.get("name") == "pinned notes"]


def open_at(open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, page: str, **options: Any) -> Any:
    # its name is that of the function, too
    module = importlib.import_module("uwml_core.ui.notes_card")
    monkeypatch.setattr(module, "current_page", lambda: page)
    opened = open_page(PAGES[page][0], options.pop("logs"), run="demo", **options)
    assert not opened.failures
    return opened


@pytest.mark.parametrize("page", list(PAGES))
def test_a_note_at_a_step_is_a_mark_whose_text_stays_text(
    open_page: Callable[..., Any], run: Run, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    pin_note(run, note(page, "step", "7", HOSTILE))
    pin_note(run, note(page, "chart", "loss", "of a chart"))
    pin_note(run, note("weight_curve", "step", "9", "elsewhere"))
    opened = open_at(open_page, monkeypatch, page, logs=run.path.parent)
    (trace,) = marks(opened, PAGES[page][1])
    assert trace["customdata"] == ["&lt;script&gt;alert(1)&lt;/script&gt; *b* %{x} &#x27;q&#x27;"]
    assert "2 pinned notes" in [fold.label for fold in opened.app.expander]
    assert "<script>" not in opened.markup
    assert HOSTILE in opened.text
    assert "elsewhere" not in opened.text


@pytest.mark.parametrize("page", list(PAGES))
def test_a_note_is_pinned_from_the_fold_of_its_page(
    open_page: Callable[..., Any], run: Run, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    opened = open_at(open_page, monkeypatch, page, logs=run.path.parent)
    assert not marks(opened, PAGES[page][1])
    assert "Pin a note" in [fold.label for fold in opened.app.expander]
    opened.app.text_input(key="note_value").set_value("5").run()
    opened.app.text_area(key="note_text").set_value("here it turns").run()
    opened.app.button(key="pin-note").click().run()
    assert not opened.failures
    (pinned,) = read_notes(run).notes
    assert (pinned.page, pinned.anchor, pinned.text) == (
        page,
        Anchor(kind="step", value="5"),
        "here it turns",
    )
    assert marks(opened, PAGES[page][1])[0]["customdata"] == ["here it turns"]


def test_read_only_lists_and_pins_nothing(
    open_page: Callable[..., Any], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin_note(run, note("training", "step", "7", "look here"))
    opened = open_at(open_page, monkeypatch, "training", logs=run.path.parent, read_only=True)
    assert "look here" in opened.text
    assert "pin-note" not in {button.key for button in opened.app.button}


def test_notes_at_one_step_are_one_mark_in_the_order_of_steps() -> None:
    anchored = [("step", "12", "b"), ("step", "3", " a "), ("step", "12", "c"), ("item", "1", "d")]
    notes = [note("training", *one) for one in anchored]
    found = pinned_steps(notes, "training")
    assert found.to_dict("list") == {"step": [3, 12], "text": ["a", "b\n\nc"], "count": [1, 2]}
    assert list(pinned_steps([], "training").columns) == ["step", "text", "count"]


def test_a_long_note_is_cut_on_hover() -> None:
    figure = Draft(theme("light"), height=200)
    add_notes(figure, pinned_steps([note("a", "step", "1", "word " * 400)], "a"), theme("light"))
    lines = figure.figure().data[-1].customdata[0].split("<br>")
    assert len(lines) == 13
    assert lines[-1] == "…"
    assert max(map(len, lines)) <= 60
