"""What the reader shows of finished, growing, damaged and foreign runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.steps import log_steps
from tests.support.synthetic import make_run, rewrite_run_json
from uwml_core.runlog import scan as scan_module
from uwml_core.runlog.reader import Run, SchemaTooNew, open_run
from uwml_core.runlog.schema import TABLES
from uwml_core.runlog.writer import RunLogger

DIRECTIONS = ("i2t", "t2i")
PLAIN = [name for name in TABLES if name != "snapshots"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(
        tmp_path_factory.mktemp("logs"),
        name="猫 <b>",
        nan_steps=(5,),
        spikes=(9,),
        lonely_steps=(3,),
        resume_at=30,
    )


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Run:
    shutil.copytree(finished.parent, tmp_path / "logs")
    return open_run(tmp_path / "logs" / finished.name)


# layouts are no record of training: files by key, tested in test_projections.py
@pytest.mark.parametrize("table", sorted(set(TABLES) - {"projections"}))
def test_duckdb_over_the_files_sees_the_same_rows(run: Run, table: str) -> None:
    # the rule of a resume, written for a query
    query = f"""
        SELECT * EXCLUDE (filename, file_row_number)
        FROM read_parquet('{run.path}/{table}/*.parquet', filename = true, file_row_number = true)
        WHERE step < 30 OR parse_filename(filename) LIKE 'part-0001-%'
        ORDER BY filename, file_row_number
    """
    with duckdb.connect() as connection:
        other = connection.sql(query).df()
    own = run.frame(table)
    assert len(own) > 0
    assert list(other.columns) == list(own.columns)
    for name in own.columns:
        if table == "snapshots" and name == "embedding":
            ours = [np.asarray(row, np.float32).tolist() for row in own[name]]
            assert ours == [np.asarray(row, np.float32).tolist() for row in other[name]]
        else:
            left, right = (pd.Series(frame[name]).astype(object) for frame in (own, other))
            both = left.isna().to_numpy() & right.isna().to_numpy()
            assert (left.to_numpy()[~both] == right.to_numpy()[~both]).all(), name


@pytest.mark.parametrize("table", sorted(TABLES))
def test_tables_have_the_columns_and_types_of_the_schema(run: Run, table: str) -> None:
    schema = TABLES[table].schema(DIRECTIONS)
    read = run.table(table)
    assert read.schema.names == schema.names
    assert read.schema.types == schema.types
    assert read.schema.metadata == schema.metadata
    assert run.frame(table).columns.tolist() == schema.names


def test_resumed_run_has_each_step_once(run: Run) -> None:
    assert run.table("steps")["step"].to_pylist() == list(range(60))
    assert run.table("pairs").num_rows == 60 * 32


def test_values_that_are_not_finite_survive(run: Run) -> None:
    steps = run.frame("steps")
    assert np.isnan(steps.loc[5, "loss"])
    assert np.isnan(steps.loc[5, "gradient_norm"])
    assert run.table("steps")["loss"].null_count == 0
    lonely = run.frame("pairs", filter=pc.field("step") == 3)
    assert lonely["margin"].isna().sum() == 2
    assert lonely["negative_item_id"].isna().sum() == 2


def test_columns_come_in_the_order_asked_for_and_missing_ones_are_null(run: Run) -> None:
    table = run.table("pairs", columns=["margin", "step", "nothing"])
    assert table.schema.names == ["margin", "step", "nothing"]
    assert table["nothing"].null_count == table.num_rows > 0


def test_filter_reads_only_the_rows_asked_for(run: Run) -> None:
    chosen = (pc.field("direction") == "t2i") & (pc.field("step") >= 50)
    frame = run.frame("pairs", columns=["margin"], filter=chosen)
    everything = run.frame("pairs")
    expected = everything[(everything["direction"] == "t2i") & (everything["step"] >= 50)]
    assert frame["margin"].tolist() == expected["margin"].tolist()
    assert len(frame) == 160


def test_unknown_table_is_named(run: Run) -> None:
    with pytest.raises(ValueError, match="table='pears' is unknown; choose one of steps"):
        run.table("pears")
    with pytest.raises(ValueError, match=r"table='\.\./x' is unknown"):
        run.parts("../x")


def test_missing_tables_are_empty_frames_in_schema_order(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, without=("ranks", "snapshots", "items")))
    for table in ("ranks", "snapshots"):
        assert not run.has(table)
        assert run.table(table).num_rows == 0
        assert run.frame(table).columns.tolist() == TABLES[table].schema(DIRECTIONS).names
        assert run.map_parts(table, len) == []
    assert run.items() is None
    assert not run.has("items")


@pytest.mark.parametrize("steps", [0, 1])
def test_run_of_no_or_one_step_is_read(tmp_path: Path, steps: int) -> None:
    run = open_run(make_run(tmp_path, steps=steps))
    assert run.frame("steps")["step"].tolist() == list(range(steps))
    assert run.health() == ()
    assert run.status == "finished"
    assert run.total_steps == steps


def test_meta_data_of_a_run(run: Run) -> None:
    assert (run.run_id, run.name, run.status) == ("demo", "猫 <b>", "finished")
    assert (run.directions, run.modalities) == (DIRECTIONS, ("image", "text"))
    assert run.config["loss"]["center"] == 0.15
    assert run.total_steps == 60
    assert abs((datetime.now(UTC) - run.created_at).total_seconds()) < 3600
    assert run.health() == ()


def test_directions_follow_the_modalities(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, directions=("v2t", "t2v"), steps=4))
    assert run.directions == ("v2t", "t2v")
    assert run.modalities == ("video", "text")
    assert "gap_t2v" in run.frame("steps")
    assert set(run.frame("pairs")["direction"]) == {"v2t", "t2v"}


def test_items_are_read_with_their_pictures(run: Run) -> None:
    items = run.items()
    assert items is not None
    assert items["item_id"].tolist() == list(range(64))
    assert items.loc[3, "captions"][1] == "thing 3, caption 1 ✓ <b>"
    assert items.loc[0, "thumbnail"][8:12] == b"WEBP"
    assert items.loc[63, "thumbnail"] is None


def test_fingerprint_that_is_a_path_is_not_followed(run: Run) -> None:
    rewrite_run_json(run.path, data_fingerprint="../demo/steps/part-0000-000000000-000000036")
    assert run.items() is None


@pytest.mark.parametrize(
    ("status", "age_s", "shown"),
    [
        ("running", 5, "running"),
        ("running", 31, "stale"),
        ("finished", 1e6, "finished"),
        ("failed", 0, "failed"),
    ],
)
def test_status_of_a_run_without_heartbeat_is_stale(run: Run, status: str, age_s: float, shown: str) -> None:
    beat = (datetime.now(UTC) - timedelta(seconds=age_s)).isoformat()
    rewrite_run_json(run.path, status=status, heartbeat_at=beat)
    assert run.status == shown


def test_synthetic_runs_have_every_status(tmp_path: Path) -> None:
    for status in ("finished", "running", "stopped", "failed", "stale"):
        assert open_run(make_run(tmp_path, run_id=status, status=status, steps=2)).status == status


def damaged(run: Run, table: str, change: str) -> str:
    """Spoil a copy of the table's first part; returns the copy's name."""
    whole = run.parts(table)[0].path
    data = bytearray(whole.read_bytes())
    if change == "cut":
        data = data[: len(data) // 2]
    elif change == "empty":
        data = data[:0]
    elif change == "tail":
        data = data[:-1]
    elif change == "data":
        data[8:200] = os.urandom(192)
    elif change == "footer":
        data[-200:-8] = os.urandom(192)
    else:
        data = bytearray(b"PAR1 this is a text, but it ends like a file PAR1")
    name = "part-0001-000009000-000009001.parquet"
    (run.path / table / name).write_bytes(data)
    return f"{table}/{name}"


@pytest.mark.parametrize("change", ["cut", "empty", "tail", "data", "footer", "text"])
@pytest.mark.parametrize("table", ["steps", "pairs", "evals"])
def test_damaged_part_is_skipped_everywhere_and_named(run: Run, table: str, change: str) -> None:
    before = run.frame(table)
    results = run.map_parts(table, count_rows)
    name = damaged(run, table, change)
    pd.testing.assert_frame_equal(run.frame(table), before)
    assert run.map_parts(table, count_rows) == results
    (issue,) = run.health()
    assert issue.file == name
    assert issue.kind == ("unreadable" if change in {"data", "footer"} else "torn")
    assert name in issue.message
    assert name.split("/")[1] not in [part.path.name for part in run.parts(table)]


def test_part_of_a_newer_version_is_skipped_and_named(run: Run) -> None:
    before, part = run.frame("pairs"), run.parts("pairs")[-1]
    table = pq.read_table(part.path)
    newer = {**table.schema.metadata, b"uwml_schema_version": b"12"}
    path = part.path.with_name("part-0001-000009000-000009001.parquet")
    pq.write_table(table.replace_schema_metadata(newer), path)
    pd.testing.assert_frame_equal(run.frame("pairs"), before)
    (issue,) = run.health()
    assert (issue.file, issue.kind) == (f"pairs/{path.name}", "unreadable")
    assert "schema version 12 is newer than 1" in issue.message


def test_mended_part_is_read_again(run: Run) -> None:
    part = run.parts("steps")[-1]
    whole, rows = part.path.read_bytes(), run.table("steps").num_rows
    part.path.write_bytes(whole[:-10])
    assert run.table("steps").num_rows < rows
    part.path.write_bytes(whole)
    assert run.table("steps").num_rows == rows
    assert run.health() == ()


def test_files_that_are_not_ours_are_named_and_hidden_ones_are_not(run: Run) -> None:
    (run.path / "pairs" / "notes.txt").write_text("x")
    pq.write_table(pa.table({"step": [1]}), run.path / "pairs" / "other.parquet")
    (run.path / "pairs" / ".part-0000-000000000-000000001.parquet.7.tmp").write_bytes(b"half")
    (run.path / "pairs" / "folder.parquet").mkdir()
    assert run.table("pairs").num_rows == 60 * 32
    assert [(issue.file, issue.kind) for issue in run.health()] == [
        ("pairs/notes.txt", "foreign"),
        ("pairs/other.parquet", "foreign"),
    ]


def test_part_inside_a_wider_one_is_ignored(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", flush_seconds=3600) as log:
        for start in (0, 5, 10):
            log_steps(log, range(start, start + 5))
            log.flush()
        shutil.copytree(log.path, tmp_path / "copy")
    run = open_run(tmp_path / "copy")
    folder = run.path / "steps"
    both = [pq.read_table(part.path) for part in run.parts("steps")[:2]]
    # a column may be required in one part alone
    wide = pa.concat_tables(both, promote_options="permissive")
    pq.write_table(wide, folder / "part-0000-000000000-000000009.parquet")
    assert [(part.first, part.last) for part in run.parts("steps")] == [(0, 9), (10, 14)]
    assert run.table("steps")["step"].to_pylist() == list(range(15))
    assert run.health() == ()


def test_torn_wide_part_does_not_hide_whole_ones(run: Run) -> None:
    first = run.parts("steps")[0]
    wide = first.path.with_name("part-0000-000000000-000000500.parquet")
    wide.write_bytes(first.path.read_bytes()[:-50])
    assert run.table("steps")["step"].to_pylist() == list(range(60))


def test_part_that_vanishes_between_listing_and_reading_is_no_error(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run.parts("steps")[0].path
    wide = first.with_name("part-0000-000000000-000000500.parquet")
    real, calls = scan_module._scan_group, []

    def compacted_meanwhile(*arguments: object) -> pa.Table:
        if not calls:
            first.rename(wide)
        calls.append(1)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(scan_module, "_scan_group", compacted_meanwhile)
    assert run.table("steps")["step"].to_pylist() == list(range(60))
    assert len(calls) > 1


def count_rows(table: pa.Table) -> int:
    calls.append(table.num_rows)
    return table.num_rows


calls: list[int] = []


def test_following_costs_new_parts_only(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run", flush_seconds=3600)
    run = open_run(log.path)
    versions = {run.version()}
    calls.clear()
    for start in (0, 4, 8):
        log_steps(log, range(start, start + 4))
        log.flush()
        results = run.map_parts("steps", count_rows, columns=["step"])
        versions.add(run.version())
    assert results == [4, 4, 4]
    assert calls == [4, 4, 4]
    assert len(versions) == 4
    log.close()
    assert run.version() not in versions


def test_map_parts_knows_the_columns_and_the_limit_of_a_part(run: Run) -> None:
    assert sum(run.map_parts("pairs", count_rows)) == 60 * 32
    names = run.map_parts("pairs", column_names, columns=["step", "margin"])
    assert names == [["step", "margin"]] * len(run.parts("pairs"))


def column_names(table: pa.Table) -> list[str]:
    return table.schema.names


def test_newer_schema_is_refused_in_words(run: Run) -> None:
    rewrite_run_json(run.path, schema_version=2)
    with pytest.raises(SchemaTooNew, match=r"run 'demo' has schema version 2, .* update"):
        open_run(run.path)
    for read in (lambda: run.table("steps"), lambda: run.map_parts("steps", len), run.items):
        with pytest.raises(SchemaTooNew):
            read()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"x"', "{}", '{"schema_version": "1"}', "\udcff", "[" * 100_000]
)
def test_broken_run_json_is_named_and_the_tables_are_read(run: Run, text: str) -> None:
    (run.path / "run.json").write_text(text, errors="surrogateescape")
    assert run.status == "foreign"
    assert [issue.kind for issue in run.health()] == ["run_file"]
    assert run.info == {}
    assert run.name == "demo"
    assert run.directions == DIRECTIONS
    assert run.table("evals").num_rows > 0


def test_odd_values_in_run_json_do_no_harm(run: Run) -> None:
    rewrite_run_json(
        run.path,
        name=["x"],
        config=3,
        directions=["i2t"],
        modalities=None,
        segments=[1, {"segment": True, "first_step": 0}, {"segment": 0}],
        created_at="yesterday",
        heartbeat_at=7,
        status="odd",
        total_steps="many",
        data_fingerprint={},
    )
    assert (run.name, run.config, run.total_steps) == ("demo", {}, None)
    assert (run.directions, run.modalities) == (DIRECTIONS, ("image", "text"))
    assert (run.status, run.heartbeat_at) == ("stale", None)
    assert run.created_at.tzinfo is not None
    assert run.items() is None
    assert isinstance(run.version(), str)


def test_foreign_parquet_is_read_by_column_name(tmp_path: Path) -> None:
    (tmp_path / "other" / "pairs").mkdir(parents=True)
    values = {
        "step": pa.array([2, 1], pa.int32()),
        "margin": pa.array([0.25, 0.5], pa.float64()),
        "direction": ["v2t", "t2v"],
        "item_id": pa.array([7, 8], pa.int64()),
        "colour": ["red", "blue"],
    }
    pq.write_table(pa.table(values), tmp_path / "other" / "pairs" / "mine.parquet")
    pq.write_table(pa.table({"step": [0], "gap_v2t": [0.5]}), tmp_path / "other" / "steps.parquet")
    run = open_run(tmp_path / "other")
    assert (run.status, run.directions, run.modalities) == ("foreign", ("v2t", "t2v"), ("video", "text"))
    assert run.table("pairs", columns=["step", "margin", "direction", "colour", "weight"]).to_pydict() == {
        "step": [2, 1],
        "margin": [0.25, 0.5],
        "direction": ["v2t", "t2v"],
        "colour": ["red", "blue"],
        "weight": [None, None],
    }
    assert run.table("pairs").schema.types == TABLES["pairs"].schema(("v2t", "t2v")).types
    assert run.frame("steps")["gap_v2t"].tolist() == [0.5]
    assert run.health() == ()
    before = run.version()
    pq.write_table(pa.table({"step": [0, 1], "gap_v2t": [0.5, 1.0]}), tmp_path / "other" / "steps.parquet")
    assert run.version() != before


def test_foreign_column_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "other" / "steps").mkdir(parents=True)
    pq.write_table(pa.table({"step": ["first"]}), tmp_path / "other" / "steps" / "a.parquet")
    pq.write_table(pa.table({"step": [3]}), tmp_path / "other" / "steps" / "b.parquet")
    run = open_run(tmp_path / "other")
    assert run.table("steps")["step"].to_pylist() == [3]
    assert [(issue.file, issue.kind) for issue in run.health()] == [("steps/a.parquet", "unreadable")]


def test_empty_folder_is_a_run_with_nothing_in_it(tmp_path: Path) -> None:
    run = open_run(tmp_path)
    assert run.status == "foreign"
    assert (run.directions, run.config, run.health()) == (DIRECTIONS, {}, ())
    assert all(run.frame(table).empty and not run.has(table) for table in TABLES)
    assert run.items() is None


def test_what_is_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere' is no folder"):
        open_run(tmp_path / "nowhere")


def test_run_folder_that_vanishes_reads_as_empty(run: Run) -> None:
    shutil.rmtree(run.path)
    assert run.table("steps").num_rows == 0
    assert run.status == "foreign"
    assert isinstance(run.version(), str)


def test_reading_imports_neither_torch_nor_streamlit(finished: Path) -> None:
    code = (
        "import sys, json\n"
        "from uwml_core.runlog.reader import open_run\n"
        "n = open_run(sys.argv[1]).frame('steps').shape[0]\n"
        "print(json.dumps([n, sorted({'torch', 'streamlit', 'plotly'} & set(sys.modules))]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(finished)], capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout) == [60, []]
