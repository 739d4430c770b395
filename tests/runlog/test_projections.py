"""Layout files: whole or not there, in the run or in the cache."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import numpy as np
import pytest

from uwml_core.runlog.projection_facts import ProjectionFacts, SnapshotFacts, read_facts
from uwml_core.runlog.projections import (
    PlacedSnapshot,
    find_projection,
    placed_snapshots,
    projection_path,
    read_parameters,
    read_projection,
    to_frame,
    writable_folder,
    write_projection,
)

KEY = "0123456789abcdef"


def placed(step: int, epoch: int | None, n: int = 3) -> PlacedSnapshot:
    return PlacedSnapshot(
        step=step,
        epoch=epoch,
        item_ids=np.arange(n, dtype=np.int64),
        modality=np.array(["image"] * (n - 1) + ["text"], dtype=object),
        places=np.full((n, 2), step / 2, np.float32),
    )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "logs" / "run"
    folder.mkdir(parents=True)
    return folder


def test_layout_reads_back_as_it_was_written(run: Path) -> None:
    path = projection_path(writable_folder(run), KEY)
    written = [placed(-1, None), placed(10, 0, 4)]
    write_projection(path, written, {"method": "umap", "seed": 7})
    frame = read_projection(path)
    assert frame is not None
    for before, after in zip(written, placed_snapshots(frame), strict=True):
        assert (before.step, before.epoch) == (after.step, after.epoch)
        assert before.item_ids.tolist() == after.item_ids.tolist()
        assert before.modality.tolist() == after.modality.tolist()
        np.testing.assert_array_equal(before.places, after.places)
    assert read_parameters(path) == {"method": "umap", "seed": 7}
    assert find_projection(run, KEY) == path == run / "projections" / f"{KEY}.parquet"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_facts_read_back_and_older_or_broken_files_have_none(run: Path) -> None:
    path = projection_path(writable_folder(run), KEY)
    assert read_facts(path) is None
    write_projection(path, [placed(10, 0)], {})
    assert read_facts(path) is None
    snapshots = (
        SnapshotFacts(step=10, epoch=0, outcome="start", points=3),
        SnapshotFacts(step=20, epoch=None, outcome="moved", points=3, missing=("text",), data_motion=0.5),
    )
    facts = ProjectionFacts(noise_floor=0.01, items=3, items_of=9, stratified_by="group", snapshots=snapshots)
    write_projection(path, [placed(10, 0)], {"seed": 7}, facts)
    assert read_facts(path) == facts
    assert read_parameters(path) == {"seed": 7}


def test_any_tool_reads_it(run: Path) -> None:
    path = projection_path(writable_folder(run), KEY)
    write_projection(path, [placed(10, 0)], {})
    rows = duckdb.sql(
        f"SELECT step, epoch, item_id, modality, x, y FROM '{path}' ORDER BY item_id"
    ).fetchall()
    assert rows == [
        (10, 0, 0, "image", 5.0, 5.0),
        (10, 0, 1, "image", 5.0, 5.0),
        (10, 0, 2, "text", 5.0, 5.0),
    ]


def test_frame_of_layouts_in_memory_equals_the_one_from_a_file(run: Path) -> None:
    path = projection_path(writable_folder(run), KEY)
    written = [placed(10, 0), placed(20, 1)]
    write_projection(path, written, {})
    frame = read_projection(path)
    assert frame is not None
    assert to_frame(written).astype(str).equals(frame.astype(str))
    assert list(to_frame([]).columns) == list(frame.columns)


def test_torn_or_missing_file_reads_as_nothing(run: Path) -> None:
    path = projection_path(writable_folder(run), KEY)
    assert read_projection(path) is None
    write_projection(path, [placed(10, 0)], {})
    path.write_bytes(path.read_bytes()[:-9])
    assert read_projection(path) is None


def test_failed_write_leaves_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = projection_path(writable_folder(run), KEY)

    def broken(*_args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_projection(path, [placed(10, 0)], {})
    assert list(path.parent.iterdir()) == []


def test_read_only_run_uses_the_cache(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: run not in Path(path).parents and real(path, mode))
    folder = writable_folder(run)
    assert tmp_path / "cache" in folder.parents
    write_projection(projection_path(folder, KEY), [placed(10, 0)], {})
    assert find_projection(run, KEY) == folder / f"{KEY}.parquet"
    other = run.parent.parent / "other" / "run"
    assert find_projection(other, KEY) is None


@pytest.mark.parametrize("key", ["", "../../x", "xyz", "A" * 32])
def test_key_that_is_none_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 8 to 64 hex digits"):
        projection_path(tmp_path, key)
