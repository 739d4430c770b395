"""Share: what is chosen goes into the report and the bundle, notes come and go, imports are checked."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from tests.support.synthetic import make_run, rewrite_run_json
from uwml_core.runlog.bundle import BundleChoice, bundle_size
from uwml_core.runlog.notes import Anchor, Note, pin_note, read_notes
from uwml_core.runlog.reader import Run, list_runs
from uwml_core.ui.background import Task
from uwml_core.ui.bundle_card import _bundle
from uwml_core.ui.report_card import size_text

PAGE = "pages/share/share.py"
HOSTILE = "<script>alert(1)</script> *b* [x](y) $z$ \u202e :material/home:"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    st.cache_resource.clear()
    return Run(make_run(tmp_path / "logs", run_id="demo", steps=24, epochs=3))


def labels(opened: Any) -> list[str]:
    return [b.proto.label for b in opened.app.get("download_button")]


def wait_for_report(opened: Any) -> str:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        asked = opened.app.session_state["_report_task"]
        if not asked[1].runs:
            break
        asked[1].wait(60)
    opened.app.run()
    assert asked[1].problem == ""
    return str(asked[1].result.decode())


def test_first_look_offers_everything_and_writes_nothing(open_page: Callable[..., Any], run: Run) -> None:
    before = sorted(run.path.rglob("*"))
    opened = open_page(PAGE, run.path.parent, run="demo")
    assert not opened.failures
    assert "demo is finished: links, reports and bundles of it all show the same." in opened.text
    assert "about 2.3 MB" in opened.text
    size = size_text(bundle_size(run, BundleChoice()))
    assert f"Download the bundle, {size}" in labels(opened)
    assert "/training?run=demo" in [code.value for code in opened.app.code]
    assert "No note yet." in opened.text
    assert sorted(run.path.rglob("*")) == before


def test_a_report_holds_the_chosen_pages_in_the_chosen_language(
    open_page: Callable[..., Any], run: Run
) -> None:
    opened = open_page(PAGE, run.path.parent, run="demo")
    opened.app.get("button_group")[0].set_value(["training", "hard_negatives"]).run()
    opened.app.selectbox(key="report_lang").set_value("zh").run()
    opened.app.toggle(key="report_pictures").set_value(False).run()
    assert opened.app.query_params["report_pages"] in ("training,hard_negatives", ["training,hard_negatives"])
    opened.app.button(key="build-report").click().run()
    text = wait_for_report(opened)
    assert not opened.failures
    assert '<html lang="zh"' in text
    assert 'id="training"' in text
    assert 'id="weight_curve"' not in text
    assert "<img" not in text
    assert f"Download the report, {size_text(len(text.encode()))}" in labels(opened)


def test_a_report_of_something_else_is_not_handed_out(open_page: Callable[..., Any], run: Run) -> None:
    opened = open_page(PAGE, run.path.parent, run="demo", report_pages="training")
    opened.app.button(key="build-report").click().run()
    wait_for_report(opened)
    opened.app.toggle(key="report_pictures").set_value(False).run()
    assert "build the report again" in opened.text
    assert not any("Download the report" in label for label in labels(opened))


def test_without_a_page_there_is_no_report(open_page: Callable[..., Any], run: Run) -> None:
    opened = open_page(PAGE, run.path.parent, run="demo", report_pages="")
    assert not opened.failures
    assert "Choose at least one page." in opened.text


def test_the_address_chooses_pages_and_ignores_what_is_none(open_page: Callable[..., Any], run: Run) -> None:
    opened = open_page(PAGE, run.path.parent, run="demo", report_pages="embedding_map,<b>,training")
    assert opened.app.session_state["report_pages"] == ["training", "embedding_map"]


@pytest.mark.parametrize("name", ["pictures", "embeddings", "pairs"])
def test_a_bundle_leaves_out_what_is_switched_off(open_page: Callable[..., Any], run: Run, name: str) -> None:
    opened = open_page(PAGE, run.path.parent, run="demo")
    opened.app.toggle(key=f"bundle_{name}").set_value(False).run()
    assert not opened.failures
    wanted = BundleChoice(**{name: False})
    assert f"Download the bundle, {size_text(bundle_size(run, wanted))}" in labels(opened)


def test_the_bundle_is_a_zip_of_the_run(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "out.zip"
    path.write_bytes(_bundle(run, BundleChoice(pairs=False)))
    with zipfile.ZipFile(path) as bundle:
        names = bundle.namelist()
    assert "run/run.json" in names
    assert not any(name.startswith("run/pairs/") for name in names)


def test_a_foreign_run_says_why_it_cannot_be_bundled(open_page: Callable[..., Any], run: Run) -> None:
    (run.path / "run.json").unlink()
    opened = open_page(PAGE, run.path.parent, run="demo")
    assert not opened.failures
    assert "This run cannot be bundled." in opened.text
    assert "has no run.json" in opened.text


def test_a_note_is_pinned_listed_and_deleted(open_page: Callable[..., Any], run: Run) -> None:
    opened = open_page(PAGE, run.path.parent, run="demo")
    opened.app.selectbox(key="note_page").set_value("weight_curve").run()
    opened.app.selectbox(key="note_kind").set_value("item").run()
    opened.app.text_input(key="note_value").set_value("7").run()
    opened.app.text_area(key="note_text").set_value(HOSTILE).run()
    opened.app.button(key="pin-note").click().run()
    assert not opened.failures
    (pinned,) = read_notes(run).notes
    assert (pinned.page, pinned.anchor, pinned.text) == (
        "weight_curve",
        Anchor(kind="item", value="7"),
        HOSTILE,
    )
    assert "<script" not in opened.markup
    assert HOSTILE in opened.text
    assert 'href="/weight_curve?run=demo"' in opened.markup
    assert opened.app.text_area(key="note_text").value == ""
    opened.app.button(key=f"delete-{pinned.id}").click().run()
    assert read_notes(run).notes == ()
    assert HOSTILE not in opened.text


@pytest.mark.parametrize(
    ("kind", "value", "text", "said"),
    [
        ("step", "x", "why", "is no step; expected a whole number"),
        ("chart", "../run", "why", "is no chart"),
        ("step", "1", "  ", "text is blank"),
    ],
)
def test_a_note_that_cannot_be_pinned_says_why_and_keeps_the_text(
    open_page: Callable[..., Any], run: Run, kind: str, value: str, text: str, said: str
) -> None:
    opened = open_page(PAGE, run.path.parent, run="demo", note_kind=kind)
    opened.app.text_input(key="note_value").set_value(value)
    opened.app.text_area(key="note_text").set_value(text)
    opened.app.button(key="pin-note").click().run()
    assert not opened.failures
    assert said in opened.text
    assert opened.app.text_area(key="note_text").value == text
    assert read_notes(run).notes == ()


def test_read_only_shows_notes_and_hides_what_writes(open_page: Callable[..., Any], run: Run) -> None:
    pin_note(
        run, Note(page="training", anchor=Anchor(kind="step", value="3"), text="look here", view={"a": "1&2"})
    )
    opened = open_page(PAGE, run.path.parent, read_only=True, run="demo")
    assert not opened.failures
    assert "look here" in opened.text
    assert "run=demo&amp;a=1%262" in opened.markup
    keys = {element.key for element in opened.app.button}
    assert keys == {"build-report"}
    assert not opened.app.get("file_uploader")


def test_a_bundle_is_imported_and_chosen(open_page: Callable[..., Any], run: Run, tmp_path: Path) -> None:
    opened = open_page(PAGE, run.path.parent, run="demo")
    data = _bundle(run, BundleChoice())
    opened.app.get("file_uploader")[0].upload("demo.zip", data, "application/zip").run()
    assert not opened.failures
    assert {found.run_id for found in list_runs(run.path.parent)} == {"demo", "demo-2"}
    assert opened.app.selectbox(key="run").value == "demo-2"


def test_a_file_that_is_no_bundle_is_refused_with_the_reason(open_page: Callable[..., Any], run: Run) -> None:
    opened = open_page(PAGE, run.path.parent, run="demo")
    opened.app.get("file_uploader")[0].upload("demo.zip", b"no zip", "application/zip").run()
    assert not opened.failures
    assert "The bundle was not imported." in [error.value for error in opened.app.error]
    assert "is no whole zip" in opened.text
    assert [found.run_id for found in list_runs(run.path.parent)] == ["demo"]


@pytest.mark.parametrize("status", ["running", "stale", "failed"])
def test_the_headline_says_what_a_teammate_gets(
    open_page: Callable[..., Any], tmp_path: Path, status: str
) -> None:
    make_run(tmp_path, run_id="a", steps=6, epochs=1, status=status)
    opened = open_page(PAGE, tmp_path, run="a")
    assert not opened.failures
    assert ("has written so far" in opened.text) == (status != "failed")


def test_an_empty_folder_says_what_to_do(open_page: Callable[..., Any], tmp_path: Path) -> None:
    opened = open_page(PAGE, tmp_path)
    assert not opened.failures
    assert not opened.app.get("download_button")


def test_a_newer_run_is_refused_with_a_sentence(open_page: Callable[..., Any], tmp_path: Path) -> None:
    rewrite_run_json(make_run(tmp_path, run_id="future", steps=4, epochs=1), schema_version=99)
    opened = open_page(PAGE, tmp_path)
    assert not opened.failures
    assert "99" in opened.app.warning[0].value


def test_a_task_that_fails_keeps_its_reason() -> None:
    task: Task[int] = Task()
    task.start(lambda tell: 1 // 0)
    task.wait(60)
    assert not task.runs
    assert task.problem.startswith("ZeroDivisionError")
