"""The nearest wrong candidates: one file per snapshot, rows as they were handed in."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.support.synthetic import make_run
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import Nearest, NullLogger, RunLogger

NAN = float("nan")


def nearest(**changes: object) -> Nearest:
    values = {
        "negative_item_ids": np.array([[7, 8], [9, 0]]),
        "similarities": np.array([[0.5, 0.25], [0.125, NAN]]),
        "positive_similarities": np.array([0.75, -0.5]),
    }
    return Nearest(**{**values, **changes})


def logged(tmp_path: Path, **found: Nearest) -> Path:
    with RunLogger(tmp_path, "run") as log:
        log.log_neighbors(nearest=found, item_ids=[3, 4], splits=["train", "val"], step=9, epoch=0)
    return tmp_path / "run"


def test_rows_are_what_was_handed_in_without_missing_candidates(tmp_path: Path) -> None:
    folder = logged(tmp_path, i2t=nearest(), t2i=nearest(similarities=np.full((2, 2), NAN)))
    assert [path.name for path in (folder / "neighbors").iterdir()] == [
        "part-0000-000000009-000000009.parquet"
    ]
    rows = duckdb.sql(f"select * from '{folder}/neighbors/*.parquet'").fetchall()
    assert rows == [
        (9, 0, 0, "train", "i2t", 3, 0, 7, 0, 0.5, 1, 0.75),
        (9, 0, 0, "train", "i2t", 3, 0, 8, 0, 0.25, 2, 0.75),
        (9, 0, 0, "val", "i2t", 4, 0, 9, 0, 0.125, 1, -0.5),
    ]
    assert open_run(folder).frame("neighbors").to_numpy().tolist() == [list(row) for row in rows]


def test_a_resume_replaces_later_snapshots(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, epochs=3, steps_per_epoch=20, resume_at=15))
    found = run.frame("neighbors")
    assert found.groupby("step")["segment"].unique().map(list).to_dict() == {19: [1], 39: [1], 59: [1]}
    assert not found.duplicated(["step", "direction", "item_id", "rank"]).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"similarities": np.zeros((2, 3))}, r"nearest has shapes .*expected \[2, k\] twice and \[2\]"),
        ({"positive_similarities": np.zeros(3)}, "nearest has shapes"),
        ({"negative_item_ids": np.zeros(2, int)}, "nearest has shapes"),
        ({"negative_item_ids": np.full((2, 2), 2**40)}, "negative_item_ids runs from"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        logged(tmp_path, i2t=nearest(**changes))


def test_unknown_direction_and_wrong_splits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="direction='v2t' is unknown"):
        logged(tmp_path, v2t=nearest())
    with RunLogger(tmp_path, "other") as log, pytest.raises(ValueError, match="2 item_ids and 1 splits"):
        log.log_neighbors(nearest={"i2t": nearest()}, item_ids=[3, 4], splits=["train"], step=0)


def test_no_direction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nearest=\{\} is empty"):
        logged(tmp_path)


def test_null_logger_takes_the_same_call() -> None:
    NullLogger().log_neighbors(nearest={}, item_ids=[], splits="val", step=0)
