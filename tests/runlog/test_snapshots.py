"""Snapshots as arrays: what can be used is used, the rest is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.snapshots import log_run, pair_vectors, snapshot, table
from tests.support.synthetic import make_run
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.scan import Limited
from uwml_core.runlog.snapshots import read_snapshot, snapshot_steps, snapshots_in

NAN = float("nan")


def test_points_come_by_modality_and_item_with_unit_vectors() -> None:
    rows = [
        (3, 0, 9, "image", [0, 2], 90, "train"),
        (3, 0, 4, "image", [3, 4], 40, "val"),
        (3, 0, 4, "text", [1, 0], 40, "val"),
    ]
    (found,) = snapshots_in(table(rows))
    assert (found.step, found.epoch, found.modalities, found.left_out) == (3, 0, ("image", "text"), 0)
    assert found.item_ids.tolist() == [4, 9, 4]
    assert found.modality.tolist() == [0, 0, 1]
    assert found.labels.tolist() == [40, 90, 40]
    assert found.splits.tolist() == ["val", "train", "val"]
    np.testing.assert_allclose(found.vectors, [[0.6, 0.8], [0, 1], [1, 0]], atol=1e-3)


@pytest.mark.parametrize("vector", [[NAN, 1.0], [np.inf, 0.0], [0.0, 0.0], [1.0], [1.0, 2.0, 3.0], None, []])
def test_row_without_a_usable_vector_is_left_out_and_counted(vector: list[float] | None) -> None:
    rows = [
        (1, 0, 1, "image", [1, 0], 1, "train"),
        (1, 0, 2, "image", vector, 2, "train"),
        (1, 0, 1, "text", [0, 1], 1, "train"),
    ]
    (found,) = snapshots_in(table(rows))
    assert (found.item_ids.tolist(), found.left_out) == ([1, 1], 1)


def test_item_logged_twice_counts_once() -> None:
    rows = [(1, 0, 5, "image", [1, 0], 5, "train"), (1, 0, 5, "image", [0, 1], 5, "train")]
    (found,) = snapshots_in(table(rows))
    assert (found.item_ids.tolist(), found.left_out) == ([5], 1)
    np.testing.assert_allclose(found.vectors, [[1, 0]])


def test_missing_label_split_and_epoch_are_told_apart_from_values() -> None:
    (found,) = snapshots_in(table([(1, None, 5, "image", [1, 0], None, None)]))
    assert (found.epoch, found.labels.tolist(), found.splits.tolist()) == (None, [-1], [""])


def test_no_usable_row_gives_a_snapshot_without_points() -> None:
    (found,) = snapshots_in(table([(1, 0, 5, "image", None, 1, "train")]))
    assert len(found.item_ids) == 0
    assert found.vectors.shape[0] == 0
    assert found.pairs(("image", "text"))[0].tolist() == []


def test_empty_table_has_no_snapshot() -> None:
    assert snapshots_in(table([(1, 0, 5, "image", [1], 1, "a")]).slice(0, 0)) == []


def test_pairs_are_the_items_that_have_both() -> None:
    rows = [(1, 0, item, "image", [1, item], 1, "a") for item in (3, 1, 2)]
    rows += [(1, 0, item, "text", [1, item], 1, "a") for item in (2, 5, 3)]
    (found,) = snapshots_in(table(rows))
    first, second = found.pairs(("image", "text"))
    assert found.item_ids[first].tolist() == found.item_ids[second].tolist() == [2, 3]
    assert found.rows("sound").tolist() == []


def test_names_of_a_foreign_run_come_from_the_snapshot() -> None:
    x, y = pair_vectors(4)
    assert snapshot(x, y, names=("audio", "text")).named(("image", "text")) == ("audio", "text")
    assert snapshot(x, None).named(("image", "text")) == ("image", "text")


def test_a_run_gives_each_snapshot_by_its_step(tmp_path: Path) -> None:
    logged = [pair_vectors(6, seed=seed) for seed in range(3)]
    run = open_run(log_run(tmp_path, "a", logged, first_step=-1))
    assert snapshot_steps(run) == [(-1, 0), (9, 1), (19, 2)]
    found = read_snapshot(run, 9)
    assert found is not None
    np.testing.assert_allclose(found.vectors[found.rows("text")], logged[1][1], atol=1e-3)
    assert read_snapshot(run, 10) is None


def test_only_files_that_may_hold_a_step_are_read_for_it(tmp_path: Path) -> None:
    path = log_run(tmp_path, "a", [pair_vectors(6, seed=seed) for seed in range(3)], first_step=-1)
    parts = Limited("snapshots", open_run(path).parts("snapshots"), {})
    assert [part.first for part, _limit in parts.within(9, 9).parts] == [9]
    assert [part.first for part, _limit in parts.within(-1, -1).parts] == [-1]
    # of another name nobody knows what it holds
    (path / "run.json").unlink()
    old = path / "snapshots" / "export.parquet"
    max((path / "snapshots").glob("part-*")).rename(old)
    foreign = Limited("snapshots", open_run(path).parts("snapshots"), {}).within(9, 9)
    assert [part.path.name for part, _limit in foreign.parts if part.path == old] == [old.name]
    assert len(foreign.parts) == 2


def test_points_logged_in_any_order_are_the_same(tmp_path: Path) -> None:
    rows = [(1, 0, item, name, [item, 1], item, "a") for name in ("image", "text") for item in (1, 2, 3)]
    (sorted_,), (mixed,) = (snapshots_in(table(order)) for order in (rows, rows[2::-1] + rows[:2:-1]))
    assert mixed.item_ids.tolist() == sorted_.item_ids.tolist() == [1, 2, 3] * 2
    assert mixed.vectors.tolist() == sorted_.vectors.tolist()


def test_a_resume_replaces_what_came_after_it(tmp_path: Path) -> None:
    make_run(tmp_path, run_id="r", steps=40, epochs=4, resume_at=20)
    assert [epoch for _step, epoch in snapshot_steps(open_run(tmp_path / "r"))] == [0, 1, 2, 3]
