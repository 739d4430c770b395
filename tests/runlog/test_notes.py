"""Pinned notes: written whole, read whatever lies beside them, and never outside their folder."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.support.synthetic import make_run
from uwml_core.runlog.bundle import BundleChoice, write_bundle
from uwml_core.runlog.bundle_checks import name_problem
from uwml_core.runlog.bundle_import import import_bundle
from uwml_core.runlog.notes import (
    TEXT_BYTES,
    Anchor,
    Note,
    delete_note,
    note_folders,
    pin_note,
    read_notes,
)
from uwml_core.runlog.reader import Run

STEP = Anchor(kind="step", value="12")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "logs" / "run"
    folder.mkdir(parents=True)
    return Run(folder)


def note(text: str = "why", **fields: object) -> Note:
    return Note(**{"page": "training", "anchor": STEP, "text": text, **fields})


@pytest.mark.parametrize(
    "text", ["plain", "多语言 🙂", "</script><b>\u2028\u202e", "a\nb\ttab \x00", "x" * TEXT_BYTES, "'\"`"]
)
def test_a_note_comes_back_as_it_was_written(run: Run, text: str) -> None:
    written = pin_note(run, note(text, view={"epoch": "3", "search": "a&b=c"}))
    assert read_notes(run).notes == (written,)
    assert (written.text, written.anchor, written.page) == (text, STEP, "training")
    assert written.view == {"epoch": "3", "search": "a&b=c"}
    content = json.loads((run.path / "notes" / f"{written.id}.json").read_text(encoding="utf-8"))
    assert set(content) == {"id", "created_at", "page", "anchor", "text", "view"}
    assert content["created_at"].endswith("+00:00")


def test_nothing_temporary_is_left_and_the_name_may_travel(run: Run) -> None:
    names = [pin_note(run, note()).id for _ in range(3)]
    assert sorted(os.listdir(run.path / "notes")) == sorted(f"{name}.json" for name in names)
    assert [name_problem(f"run/notes/{name}.json") for name in names] == [None] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "x" * 1_000_000}, "text has 1,000,000 bytes; expected at most 16,384"),
        ({"text": "é" * (TEXT_BYTES // 2 + 1)}, "text has 16,386 bytes"),
        ({"text": " \n\t"}, "text is blank"),
        ({"text": "\ud800"}, "half a character"),
        ({"page": "../../etc"}, "page='../../etc' is no page"),
        ({"view": {str(k): "" for k in range(61)}}, "view has 61 choices"),
    ],
)
def test_what_cannot_be_noted_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        note(**change)


def test_a_view_that_is_too_large_is_refused_and_leaves_nothing(run: Run) -> None:
    with pytest.raises(ValueError, match="the note with its view has"):
        pin_note(run, note(view={"search": "x" * 100_000}))
    assert not (run.path / "notes").exists()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("step", value) for value in ("-1", "", "1e3", "٣", "9" * 19)),
        *(("item", value) for value in ("a", " 1")),
        *(("chart", value) for value in ("../x", "", "Loss", "<b>")),
        ("user", "1"),
    ],
)
def test_an_anchor_is_a_number_or_a_name(kind: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"expected|choose"):
        Anchor(kind=kind, value=value)


@pytest.mark.parametrize("note_id", ["../run", "..", "", "a/b", "/etc/passwd", ".hidden", "A", "a\\b", "a\0"])
def test_no_id_leads_out_of_the_folder(run: Run, note_id: str) -> None:
    (run.path / "run.json").write_text("{}")
    pin_note(run, note())
    with pytest.raises(ValueError, match="is no id"):
        delete_note(run, note_id)
    assert (run.path / "run.json").exists()
    assert len(read_notes(run).notes) == 1


def test_a_deleted_note_is_gone_and_deleting_twice_does_nothing(run: Run) -> None:
    kept, gone = pin_note(run, note("kept")), pin_note(run, note("gone"))
    delete_note(run, gone.id)
    delete_note(run, gone.id)
    assert read_notes(run).notes == (kept,)


def test_files_that_are_no_notes_are_counted_and_change_nothing(run: Run, tmp_path: Path) -> None:
    good = pin_note(run, note())
    folder = run.path / "notes"
    whole = (folder / f"{good.id}.json").read_text()
    secret = tmp_path / "secret.json"
    secret.write_text(whole)
    (folder / "link.json").symlink_to(secret)
    (folder / "torn.json").write_text(whole[:40])
    (folder / "list.json").write_text("[]")
    (folder / "deep.json").write_text("[" * 60_000)
    (folder / "number.json").write_text(json.dumps({**json.loads(whole), "text": 3}))
    (folder / "page.json").write_text(json.dumps({**json.loads(whole), "page": "<b>"}))
    (folder / "view.json").write_text(json.dumps({**json.loads(whole), "view": {"a": ["b"]}}))
    (folder / "large.json").write_text(json.dumps({**json.loads(whole), "more": "x" * 70_000}))
    (folder / "latin.json").write_bytes(whole.encode()[:-2] + b"\xff}")
    (folder / "Upper.json").write_text(whole)
    (folder / "other.txt").write_text(whole)
    (folder / "folder.json").mkdir()
    found = read_notes(run)
    assert found.notes == (good,)
    assert found.skipped == 11


def test_notes_of_a_run_that_cannot_be_written_go_to_the_cache(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = pin_note(run, note("own"))
    # root may write anywhere, so the mode bits alone would tell nothing here
    monkeypatch.setattr(os, "access", lambda path, mode: str(run.path) not in str(path))
    cached = pin_note(run, note("cached"))
    assert (note_folders(run)[1] / f"{cached.id}.json").is_file()
    assert {found.text for found in read_notes(run).notes} == {"own", "cached"}
    delete_note(run, cached.id)
    assert read_notes(run).notes == (own,)


def test_runs_of_one_name_do_not_share_the_cache(run: Run, tmp_path: Path) -> None:
    other = Run(tmp_path / "elsewhere" / "run")
    assert note_folders(run)[1] != note_folders(other)[1]
    assert read_notes(other).notes == ()


def test_a_vanished_run_takes_its_note_in_the_cache(run: Run) -> None:
    shutil.rmtree(run.path)
    assert pin_note(run, note()) in read_notes(run).notes


def test_notes_travel_with_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    source = Run(make_run(tmp_path / "logs", run_id="a", steps=6, epochs=1))
    written = pin_note(source, note("看这里", view={"epoch": "0"}))
    bundle = write_bundle(source, tmp_path / "a.zip", BundleChoice(pairs=False))
    imported = Run(import_bundle(bundle, tmp_path / "other"))
    assert read_notes(imported).notes == (written,)
