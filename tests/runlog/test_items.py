"""Items of a data set: what identifies them, and that they are written once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from uwml_core.runlog import runfile
from uwml_core.runlog.items import data_fingerprint, write_items
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger

ITEMS: dict[str, Any] = {
    "item_keys": ["a", "b"],
    "labels": [0, 1],
    "captions": [["one", "två"], ["三"]],
    "thumbnails": [b"RIFF", None],
}


def test_fingerprint_does_not_depend_on_the_order_of_items() -> None:
    forward = data_fingerprint(["a", "b"], [0, 1], [["x"], ["y"]], [b"1", b"2"])
    backward = data_fingerprint(["b", "a"], [1, 0], [["y"], ["x"]], [b"2", b"1"], item_ids=[1, 0])
    assert backward == forward


def test_fingerprint_depends_on_the_rows_and_splits_that_the_items_table_holds() -> None:
    plain = data_fingerprint(["a", "b"], [0, 1], [["x"], ["y"]], [b"1", b"2"])
    assert data_fingerprint(["b", "a"], [1, 0], [["y"], ["x"]], [b"2", b"1"]) != plain
    split = data_fingerprint(["a", "b"], [0, 1], [["x"], ["y"]], [b"1", b"2"], splits=["train", "val"])
    assert split != plain


@pytest.mark.parametrize(
    "changed",
    [
        (["a", "c"], [0, 1], [["x"], ["y"]], [b"1", b"2"]),
        (["a", "b"], [0, 2], [["x"], ["y"]], [b"1", b"2"]),
        (["a", "b"], [0, 1], [["x"], ["y", ""]], [b"1", b"2"]),
        (["a", "b"], [0, 1], [["x"], ["y"]], [b"1", b"3"]),
        (["a", "b"], [0, 1], [["x"], ["y"]], [b"1", None]),
        (["a", "b"], [0, 1], [["x"], ["y"]], [b"1", [b"2", b"2"]]),
        (["a", "b"], [0, 1], [["x1"], ["y"]], [b"", b"2"]),
    ],
)
def test_fingerprint_depends_on_everything_else(changed: Any) -> None:
    assert data_fingerprint(*changed) != data_fingerprint(["a", "b"], [0, 1], [["x"], ["y"]], [b"1", b"2"])


def test_items_are_found_from_the_run_at_once(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        log.log_items(**ITEMS)
        items = open_run(log.path).items()
        assert items is not None
        assert items["item_key"].tolist() == ["a", "b"]


def test_items_of_a_run_whose_disk_fails_are_found_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunLogger(tmp_path, "run") as log:
        real = runfile.os.replace

        def full(source: Any, target: Any) -> None:
            if Path(target).name == "run.json":
                raise OSError(28, "No space left on device")
            real(source, target)

        monkeypatch.setattr(runfile.os, "replace", full)
        fingerprint = log.log_items(**ITEMS)
        monkeypatch.undo()
        assert open_run(log.path).info["data_fingerprint"] is None
    assert open_run(log.path).info["data_fingerprint"] == fingerprint


def test_items_are_written_once(tmp_path: Path) -> None:
    fingerprint = write_items(tmp_path, **ITEMS)
    path = tmp_path / "_items" / f"{fingerprint}.parquet"
    before = path.stat().st_mtime_ns

    def never() -> Any:
        raise AssertionError("pictures were read again")
        yield

    again = {**ITEMS, "thumbnails": never(), "fingerprint": fingerprint}
    assert write_items(tmp_path, **again) == fingerprint
    assert path.stat().st_mtime_ns == before
    rows = duckdb.sql(f"SELECT item_id, item_key, captions, thumbnail, \"group\" FROM '{path}'").fetchall()
    assert rows == [(0, "a", ["one", "två"], b"RIFF", None), (1, "b", ["三"], None, None)]


def test_logged_items_are_the_runs(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        fingerprint = log.log_items(**ITEMS, item_ids=[5, 9], groups=["g", None], splits=["train", "val"])
    run = open_run(tmp_path / "run")
    assert run.info["data_fingerprint"] == fingerprint
    items = run.items()
    assert items is not None
    assert items["item_id"].tolist() == [5, 9]
    assert items["split"].tolist() == ["train", "val"]
    (tmp_path / "_items" / f"{fingerprint}.parquet").write_bytes(b"PAR1 torn")
    assert run.items() is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [0]}, r"items have 2 keys but \{'label': 1\}"),
        ({"thumbnails": [b""], "fingerprint": "0" * 64}, r"items have 2 keys but \{'thumbnail': 1\}"),
        ({"fingerprint": "../../evil"}, r"fingerprint='\.\./\.\./evil' is no fingerprint"),
    ],
)
def test_wrong_items_are_named_and_not_written(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_items(tmp_path, **{"fingerprint": "f" * 64, **ITEMS, **changes})
    assert list(tmp_path.rglob("*.parquet")) == []
