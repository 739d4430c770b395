"""The page of runs: what is there, what is running."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st

from tests.support.synthetic import make_run
from uwml_core.training import build_config
from uwml_core.ui.launch import demo_sections, train_options
from uwml_core.ui.runs_list import columns_of, tick

RUNS = "pages/watch/runs.py"
HOSTILE = "<script>alert(1)</script> *b* [x](y) $z$ :material/home:"


def table(opened: Any) -> pd.DataFrame:
    return opened.app.dataframe[0].value


def chosen(opened: Any) -> str:
    return str(opened.app.selectbox(key="run").value)


def test_empty_folder_says_how_to_start(open_page: Callable[..., Any], tmp_path: Path) -> None:
    opened = open_page(RUNS, tmp_path)
    assert not opened.failures
    assert "No runs yet." in opened.text
    assert str(tmp_path) in opened.text
    assert any("uwml demo" in block.value for block in opened.app.code)
    assert opened.app.button(key="start-demo")


def test_sample_runs_are_one_click_away(open_page: Callable[..., Any], tmp_path: Path) -> None:
    opened = open_page(RUNS, tmp_path / "logs")
    opened.app.button(key="add-samples").click().run()
    assert not opened.failures
    st.cache_data.clear()
    st.cache_resource.clear()
    opened.app.run()
    assert not opened.failures
    assert set(table(opened)["run_id"]) == {path.parent.name for path in tmp_path.glob("logs/*/run.json")}
    assert chosen(opened) == "sample-uwml"


def test_sample_runs_that_cannot_be_added_say_why(open_page: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "_items").write_text("in the way")
    opened = open_page(RUNS, tmp_path / "logs")
    opened.app.button(key="add-samples").click().run()
    assert not opened.failures
    assert [error.value for error in opened.app.error] == ["The sample runs could not be added."]
    assert str(tmp_path / "logs" / "_items") in opened.text


def test_missing_folder_is_an_empty_one(open_page: Callable[..., Any], tmp_path: Path) -> None:
    opened = open_page(RUNS, tmp_path / "nowhere")
    assert not opened.failures
    assert "No runs yet." in opened.text


@pytest.mark.parametrize("runs", [0, 1])
def test_read_only_app_hides_the_demo(open_page: Callable[..., Any], tmp_path: Path, runs: int) -> None:
    if runs:
        make_run(tmp_path, steps=4, epochs=1)
    opened = open_page(RUNS, tmp_path, read_only=True)
    assert not opened.failures
    assert not {"start-demo", "add-samples"} & {button.key for button in opened.app.button}


def test_table_holds_every_run_with_its_status(open_page: Callable[..., Any], tmp_path: Path) -> None:
    statuses = {"finished": "finished", "running": "running", "stale": "stopped writing", "failed": "failed"}
    for status in statuses:
        make_run(tmp_path, run_id=f"run-{status}", steps=6, epochs=2, status=status)
    opened = open_page(RUNS, tmp_path)
    assert not opened.failures
    shown = table(opened).set_index("run_id")
    assert {name: shown.loc[f"run-{name}", "status"] for name in statuses} == statuses
    assert set(shown["steps"]) == {6}
    assert all(len(line) == 2 for line in shown["sparkline"])


def test_foreign_folder_is_listed_as_foreign(open_page: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_run(tmp_path, run_id="other", steps=4, epochs=1)
    (folder / "run.json").unlink()
    opened = open_page(RUNS, tmp_path)
    assert not opened.failures
    assert list(table(opened)["status"]) == ["foreign"]


def test_hostile_name_stays_text(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, name=HOSTILE, steps=4, epochs=1)
    opened = open_page(RUNS, tmp_path)
    assert not opened.failures
    assert "<script" not in opened.markup
    assert "&lt;script&gt;alert(1)&lt;/script&gt; *b* [x](y) $z$ :material/home:" in opened.markup
    assert list(table(opened)["name"]) == [HOSTILE]
    assert HOSTILE in opened.app.selectbox(key="run").options


def test_search_keeps_matching_runs(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, run_id="a", name="first try", steps=4, epochs=1)
    make_run(tmp_path, run_id="b", name="second try", steps=4, epochs=1)
    opened = open_page(RUNS, tmp_path)
    opened.app.text_input(key="search").set_value("SECOND").run()
    assert list(table(opened)["run_id"]) == ["b"]
    assert "1 of 2 runs" in opened.text


def test_search_without_match_says_so(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=4, epochs=1)
    opened = open_page(RUNS, tmp_path, search="nothing like it")
    assert not opened.failures
    assert "0 of 1 run" in opened.text
    assert [box.value for box in opened.app.info] == ["No run matches the search."]


def test_address_chooses_the_run(open_page: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        make_run(tmp_path, run_id=name, steps=4, epochs=1)
    opened = open_page(RUNS, tmp_path, run="a")
    assert chosen(opened) == "a"
    assert "Chosen run: a" in opened.text


def test_unknown_run_in_the_address_is_named_and_replaced(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    make_run(tmp_path, run_id="here", steps=4, epochs=1)
    opened = open_page(RUNS, tmp_path, run="<b>gone")
    assert not opened.failures
    assert chosen(opened) == "here"
    assert "asks for run &lt;b&gt;gone" in opened.markup


def test_chosen_run_survives_a_change_of_page(open_page: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path, run_id=name, steps=4, epochs=1)
    opened = open_page(RUNS, tmp_path)
    other = "a" if chosen(opened) == "b" else "b"
    opened.app.selectbox(key="run").set_value(other).run()
    opened.app.switch_page("pages/watch/training.py").run()
    assert chosen(opened) == other
    assert f"<b>{other}</b>" in opened.markup


def test_runs_of_equal_name_are_told_apart(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, run_id="a", name="same", steps=4, epochs=1)
    make_run(tmp_path, run_id="b", name="same", steps=4, epochs=1)
    opened = open_page(RUNS, tmp_path)
    assert set(opened.app.selectbox(key="run").options) == {"same (a)", "same (b)"}


def test_live_switch_lives_in_the_address(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=4, epochs=1, status="running")
    assert open_page(RUNS, tmp_path).app.toggle(key="live").value is True
    opened = open_page(RUNS, tmp_path, live="false")
    assert opened.app.toggle(key="live").value is False
    assert not opened.failures


def test_newer_schema_is_refused_with_a_sentence(open_page: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_run(tmp_path, run_id="future", steps=4, epochs=1)
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**info, "schema_version": 99}))
    assert not open_page(RUNS, tmp_path).failures
    opened = open_page("pages/watch/training.py", tmp_path)
    assert not opened.failures
    assert "99" in opened.app.warning[0].value


def test_vanished_run_is_replaced_by_another(open_page: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path, run_id=name, steps=4, epochs=1)
    opened = open_page(RUNS, tmp_path, run="a")
    shutil.rmtree(tmp_path / "a")
    st.cache_resource.clear()
    opened.app.run()
    assert not opened.failures
    assert chosen(opened) == "b"


@pytest.mark.parametrize(
    ("modalities", "label"), [(1, "R@1 i2t, %"), (2, "R@1 i2t/v2t, %"), (3, "R@1 first, %")]
)
def test_heading_above_recall_names_directions_as_far_as_they_fit(modalities: int, label: str) -> None:
    names = ["i2t", "v2t", "a2t"][:modalities]
    shown = pd.DataFrame({"first_direction": names, "second_direction": [name[::-1] for name in names]})
    assert columns_of(shown)["r1_first"]["label"] == label


@pytest.fixture
def three(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        make_run(tmp_path, run_id=name, steps=4, epochs=1)
    return tmp_path


def links(opened: Any) -> dict[str, str]:
    return {link.proto.label: link.proto.query_string for link in opened.app.get("page_link")}


def test_several_runs_of_the_address_are_compared(open_page: Callable[..., Any], three: Path) -> None:
    opened = open_page(RUNS, three, run="b", runs=["a", "b", "gone", "a"])
    assert not opened.failures
    assert links(opened)["Compare the 2 runs chosen"] == "runs=a&runs=b"
    assert ticked_rows(opened) == {"a", "b"}


def test_a_run_chosen_in_the_picker_replaces_the_ticked_ones(
    open_page: Callable[..., Any], three: Path
) -> None:
    opened = open_page(RUNS, three, run="c", runs=["a", "b"])
    assert ticked_rows(opened) == {"c"}
    assert not [label for label in links(opened) if label.startswith("Compare the")]


def ticked_rows(opened: Any) -> set[str]:
    """Runs whose rows the browser is told to tick at first."""
    default = json.loads(opened.app.dataframe[0].proto.selection_default)
    rows = default["selection"]["rows"]
    return {list(table(opened)["run_id"])[row] for row in rows}


@pytest.mark.parametrize(
    ("before", "chosen", "rows", "ticked", "wanted"),
    [
        (["a"], "a", ["a", "b"], ["a", "b"], "b"),
        (["a", "b"], "b", ["a"], None, "a"),
        (["a", "b"], "b", ["b"], None, None),
        (["a", "b"], "b", [], ["a", "b"], None),
        (["a", "b"], "a", ["a", "b", "c"], ["a", "b", "c"], "c"),
        (["hidden", "a"], "a", ["a", "b"], ["hidden", "a", "b"], "b"),
    ],
)
def test_the_row_ticked_last_is_the_run_of_every_page(
    before: list[str], chosen: str, rows: list[str], ticked: list[str] | None, wanted: str | None
) -> None:
    shown = ["c", "b", "a"]
    assert tick(before, chosen, shown, [shown.index(run_id) for run_id in rows]) == (ticked or rows, wanted)


def test_a_bundle_can_be_imported_here_unless_read_only(open_page: Callable[..., Any], three: Path) -> None:
    assert len(open_page(RUNS, three).app.get("file_uploader")) == 1
    assert not open_page(RUNS, three, read_only=True).app.get("file_uploader")


def test_demo_trains_into_the_folder_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UWML_LOGS", str(tmp_path))
    options = train_options(demo_sections(), "uwml")
    assert options[:2] == ["--preset", "uwml"]
    config = build_config(preset="uwml", settings=options[3::2])
    assert (config.run.root, config.run.name, config.data.path) == (str(tmp_path), "demo", "emoji_pairs")
