"""Many part files become few, and nobody who reads notices."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.rollups import assert_rollups_equal_recount, assert_same
from tests.support.steps import a_step, eventually, log_batches, log_steps
from tests.support.synthetic import make_run
from uwml_core.__main__ import main
from uwml_core.runlog import compactor, joining
from uwml_core.runlog.compaction import compact_run
from uwml_core.runlog.compactor import COMPACTED
from uwml_core.runlog.parts import parse_part_name
from uwml_core.runlog.reader import Run, open_run
from uwml_core.runlog.schema import TABLES
from uwml_core.runlog.writer import RunInUseError, RunLogger

DIRECTIONS = ("i2t", "t2i")
RAW = ("steps", "pairs", "evals", "ranks", "events", "snapshots", "neighbors")


def everything(run: Run) -> dict[str, Any]:
    """Every raw table and both rollups."""
    tables = {name: run.frame(name) for name in RAW}
    return tables | {name: run.rollup(name).to_pandas() for name in ("margins", "items")}


def assert_equal(own: dict[str, Any], other: dict[str, Any]) -> None:
    for name in RAW:
        pd.testing.assert_frame_equal(own[name], other[name])
    for name in ("margins", "items"):
        assert_same(own[name], other[name])


def files(run: Run, table: str) -> list[str]:
    return sorted(path.name for path in (run.path / table).glob("*"))


STEPS = 30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of small files, two segments and odd values, that nobody has joined."""
    root = tmp_path_factory.mktemp("logs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compactor.Compactor, "step", lambda self: False)
        for first, last in ((0, STEPS // 2 + 7), (STEPS // 2 + 1, STEPS)):
            log = RunLogger(root, "run", resume_from_step=first or None, flush_steps=2)
            for step in range(first, last, 2):
                log_batches(log, range(step, step + 2), per_epoch=2)
                log.log_eval(split="val", metrics=[("i2t", "R@1", float("nan"), step, None)], epoch=step // 2)
                log.log_ranks(split="val", direction="t2i", item_ids=[step], captions=[1], ranks=[1.5])
                log.log_event("note", f"größe {step}", step=step)
                log.flush()
            log.log_snapshot(embeddings={"image": [[1.0, 0.0]]}, item_ids=[1], labels=[1], splits="val")
            log.close()
    return log.path


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Run:
    """A copy of it."""
    shutil.copytree(made, tmp_path / "run")
    return open_run(tmp_path / "run")


def test_command_leaves_few_files_with_the_same_rows(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    before, many = everything(run), len(files(run, "pairs"))
    assert many > 15
    assert main(["compact", str(run.path)]) == 0
    assert "files of" in capsys.readouterr().out
    for table in COMPACTED:
        assert [parse_part_name(name).segment for name in files(run, table)] == [0, 1], table
    assert_equal(everything(run), before)
    assert_rollups_equal_recount(run)
    assert run.health() == ()
    assert main(["compact", str(run.path)]) == 0
    assert_equal(everything(run), before)


def test_files_keep_schema_metadata_and_encoding(run: Run) -> None:
    schema = pq.read_schema(run.parts("pairs")[0].path)
    compact_run(run.path)
    for table in COMPACTED:
        file = pq.ParquetFile(run.parts(table)[0].path)
        assert file.schema_arrow.metadata == TABLES[table].schema(DIRECTIONS).metadata
        for index, name in enumerate(file.schema_arrow.names):
            column = file.metadata.row_group(0).column(index)
            assert column.compression == "ZSTD"
            # Parquet leaves NaN out of the bounds of floats
            assert not (column.is_stats_set and column.physical_type in {"FLOAT", "DOUBLE"})
            assert ("BYTE_STREAM_SPLIT" in column.encodings) == (name in TABLES[table].byte_stream_split)
    assert pq.read_schema(run.parts("pairs")[0].path).equals(schema, check_metadata=True)


def test_a_joined_file_has_row_groups_that_a_filter_skips(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "ROWS_PER_GROUP", 50)
    compact_run(run.path)
    metadata = pq.read_metadata(run.parts("pairs")[0].path)
    sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    assert len(sizes) > 3
    assert all(50 <= size < 100 for size in sizes[:-1])
    low = metadata.row_group(1).column(0).statistics.min
    assert low > metadata.row_group(0).column(0).statistics.max - 1
    assert run.table("pairs", filter=pc.field("step") == 11).num_rows == 16


def test_a_file_of_enough_rows_is_not_joined_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compactor, "FAN_IN", 2)
    monkeypatch.setattr(compactor, "ENOUGH_ROWS", 60)
    joined: list[tuple[int, int]] = []
    real = compactor.join_parts

    def join(folder: Path, names: Any, *arguments: Any, **options: Any) -> Any:
        if folder.name == "pairs":
            joined.extend((name.first, name.last) for name in names)
        return real(folder, names, *arguments, **options)

    monkeypatch.setattr(compactor, "join_parts", join)
    with RunLogger(tmp_path, "run", flush_seconds=3600, flush_steps=2) as log:
        for step in range(0, 18, 2):
            log_batches(log, range(step, step + 2), per_epoch=100)
            log.flush()
    run = open_run(tmp_path / "run")
    assert len(joined) > 7
    assert set(joined) <= {(step, step + 1) for step in range(0, 18, 2)}
    assert [(part.first, part.last) for part in run.parts("steps")] == [(0, 17)]
    assert run.table("pairs").num_rows == 18 * 16
    assert_rollups_equal_recount(run)


@pytest.mark.parametrize("room", [0, 10_000, 2**30])
def test_what_is_kept_in_memory_changes_no_joined_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(compactor, "_KEPT_BYTES", room)
    with RunLogger(tmp_path, "run", flush_seconds=3600, flush_steps=2) as log:
        for step in range(0, 18, 2):
            log_batches(log, range(step, step + 2), per_epoch=4)
            log.log_eval(split="val", metrics=[("i2t", "R@1", float("nan"), step, None)], epoch=step // 4)
            log.flush()
    run = open_run(tmp_path / "run")
    assert all(len(run.parts(table)) == 1 for table in ("steps", "pairs", "evals", "rollups/items"))
    assert run.frame("pairs")["step"].tolist() == np.repeat(np.arange(18), 16).tolist()
    assert run.table("evals")["n"].to_pylist() == list(range(0, 18, 2))
    file, schema = pq.read_table(run.parts("pairs")[0].path), TABLES["pairs"].schema(DIRECTIONS)
    fields = [field.with_nullable(file[field.name].null_count > 0) for field in schema]
    assert file.schema.equals(pa.schema(fields, metadata=schema.metadata), check_metadata=True)
    assert_rollups_equal_recount(run)


def test_files_with_and_without_null_read_alike_and_join(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", flush_seconds=3600) as log:
        for captions in (None, [3, 4], None, [5, 6]):
            for _ in range(2):
                log.log_step(a_step(0, positive_similarity=None), item_ids=[1, 2], captions=captions)
            log.flush()
        files = f"{log.path}/pairs/*.parquet"
        assert len(open_run(log.path).parts("pairs")) == 4
        expected = [None, 3, None, 5]
        for table in (pq.read_table(log.path / "pairs"), duckdb.sql(f"FROM '{files}'").to_arrow_table()):
            assert table.sort_by("step")["caption"].to_pylist()[::8] == expected
        query = f"SELECT count(*), count(caption), count(margin), count(positive_similarity) FROM '{files}'"
        assert duckdb.sql(query).fetchall() == [(32, 16, 32, 0)]
        assert duckdb.sql(f"SELECT count(*) FROM '{files}' WHERE caption IS NULL").fetchall() == [(16,)]
    run = open_run(log.path)
    (part,) = run.parts("pairs")
    assert run.table("pairs")["caption"].to_pylist()[::8] == expected
    assert run.table("pairs").schema.equals(TABLES["pairs"].schema(DIRECTIONS))
    stored = pq.read_schema(part.path)
    assert [stored.field(name).nullable for name in ("step", "margin", "caption")] == [False, False, True]


def test_files_of_more_rows_than_allowed_stay_apart(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uwml_core.runlog.compaction.MOST_ROWS", 200)
    compact_run(run.path)
    rows = [pq.read_metadata(part.path).num_rows for part in run.parts("pairs")]
    assert max(rows) <= 200
    assert 3 < len(rows) < 8


def test_ranks_are_joined_for_themselves(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compactor.Compactor, "step", lambda self: False)
        logs = [RunLogger(tmp_path, "run", rank=rank, world_size=2, flush_steps=2) for rank in range(2)]
        for log in logs:
            log_batches(log, range(20))
            log.close()
    run = open_run(tmp_path / "run")
    before = run.frame("pairs")
    compact_run(run.path)
    assert files(run, "pairs") == [
        "part-0000-000000000-000000019.parquet",
        "part-0000r1-000000000-000000019.parquet",
    ]
    pd.testing.assert_frame_equal(run.frame("pairs"), before)
    assert_rollups_equal_recount(run)


def test_a_writer_joins_its_own_files(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run", flush_steps=1, flush_seconds=3600)
    run = Run(log.path)
    for step in range(22):
        log_batches(log, [step], per_epoch=1000)
        assert eventually(lambda steps=step + 1: run.table("steps").num_rows == steps)
    assert eventually(lambda: len(files(run, "pairs")) < 5)
    assert run.table("pairs").num_rows == 22 * 16
    log.close()
    for table in ("steps", "pairs", "rollups/margins", "rollups/items"):
        assert files(run, table) == ["part-0000-000000000-000000021.parquet"], table
    assert_rollups_equal_recount(run)


def test_small_files_are_joined_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run", flush_steps=1, flush_seconds=3600)
    run = Run(log.path)
    for step in range(6):
        log_batches(log, [step], per_epoch=5)
        assert eventually(lambda steps=step + 1: run.table("steps").num_rows == steps)
    assert eventually(lambda: len(files(run, "pairs")) == 1)
    log.close()


@pytest.mark.parametrize(
    ("status", "every", "last"),
    [("finished", 1, 1), ("stopped", 1, 10), ("failed", 1, 10), ("finished", 2, 10)],
)
def test_rollups_of_past_epochs_become_one_row_each(
    tmp_path: Path, status: str, every: int, last: int
) -> None:
    log = RunLogger(tmp_path, "run", flush_steps=1, pairs_every=every)
    for step in range(30):
        log_batches(log, [step], per_epoch=10)
        log.flush()
    log.close(status)
    run = open_run(tmp_path / "run")

    def spans() -> list[list[int]]:
        rows = run.frame("rollups/margins")[["epoch", "first_step", "step"]]
        return rows.drop_duplicates().to_numpy().tolist()

    # before the run has ended, the last epoch keeps its stretches: a resume may begin between them, and
    # of thinned pairs nobody could count again those that it cuts through
    assert spans()[:2] == [[0, 0, 9], [1, 10, 19]]
    assert len(spans()) == 2 + last
    assert sum(run.rollup("margins")["count"].to_pylist()) == 30 * 16
    compact_run(run.path)
    assert len(spans()) == 2 + last
    if every == 1:
        assert_rollups_equal_recount(run)


def test_resume_inside_the_last_epoch_of_a_run_that_had_ended_counts_it_again(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", flush_steps=1) as log:
        for step in range(30):
            log_batches(log, [step], per_epoch=10)
            log.flush()
    with RunLogger(tmp_path, "run", resume_from_step=26) as log:
        log_batches(log, range(26, 33), per_epoch=10)
    run = open_run(tmp_path / "run")
    assert sum(run.rollup("margins")["count"].to_pylist()) == 33 * 16
    assert_rollups_equal_recount(run)


def test_joined_files_obey_a_later_resume(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", flush_steps=3) as log:
        log_batches(log, range(40), per_epoch=4)
    with RunLogger(tmp_path, "run", resume_from_step=21) as log:
        log_batches(log, range(21, 50), per_epoch=4)
    run = open_run(tmp_path / "run")
    assert run.table("steps")["step"].to_pylist() == list(range(50))
    assert_rollups_equal_recount(run)
    compact_run(run.path)
    assert_rollups_equal_recount(run)


@pytest.mark.parametrize("moment", ["writing", "before the move", "before the deletion", "amid the deletion"])
def test_a_join_that_dies_changes_nothing_and_is_cleaned_up(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    before = everything(run)
    names = [parse_part_name(name) for name in files(run, "pairs") if name.startswith("part-0000")]
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    spec = TABLES["pairs"]
    for _ in joining.join_parts(copy / "pairs", names, spec, ("i2t", "t2i")):
        pass
    (wide,) = (path for path in (copy / "pairs").glob("part-0000-*"))
    half = run.path / "pairs" / f".{wide.name}.1.tmp"
    if moment == "writing":
        half.write_bytes(wide.read_bytes()[:1000])
    elif moment == "before the move":
        shutil.copy(wide, half)
    else:
        shutil.copy(wide, run.path / "pairs")
        for name in files(run, "pairs")[2:5] if moment == "amid the deletion" else []:
            if name != wide.name:
                (run.path / "pairs" / name).unlink()
    assert_equal(everything(run), before)
    assert run.health() == ()
    RunLogger(tmp_path, "run", resume_from_step=STEPS).close()
    assert not half.exists()
    assert (len(files(run, "pairs")) > 15) == (moment in {"writing", "before the move"})
    pd.testing.assert_frame_equal(run.frame("pairs"), before["pairs"])


def test_torn_file_is_neither_joined_nor_hidden(run: Run) -> None:
    victim = run.parts("pairs")[5].path
    victim.write_bytes(victim.read_bytes()[:-5])
    before = run.frame("pairs")
    compact_run(run.path)
    pd.testing.assert_frame_equal(run.frame("pairs"), before)
    (issue,) = run.health()
    assert issue.file == f"pairs/{victim.name}"
    assert len(files(run, "pairs")) == 4


def test_file_with_damaged_data_leaves_its_neighbours_as_they_are(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = run.parts("pairs")[5].path
    data = bytearray(victim.read_bytes())
    data[8:200] = bytes(192)
    victim.write_bytes(data)
    many = len([name for name in files(run, "pairs") if name.startswith("part-0000")])
    assert main(["compact", str(run.path)]) == 1
    assert "left as they are: pairs:" in capsys.readouterr().err
    assert len([name for name in files(run, "pairs") if name.startswith("part-0000")]) == many
    assert not list(run.path.rglob(".*"))


def test_run_that_is_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = [RunLogger(tmp_path, "run", rank=rank, world_size=2) for rank in range(2)]
    log_steps(logs[0], range(3))
    with pytest.raises(RunInUseError, match="being written by another process"):
        compact_run(tmp_path / "run")
    logs[0].close()
    # the other process still writes its share
    assert main(["compact", str(tmp_path / "run")]) == 2
    assert "being written by another process" in capsys.readouterr().err
    logs[1].close()
    compact_run(tmp_path / "run")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"run\.json cannot be read"):
        compact_run(tmp_path)
    run = open_run(make_run(tmp_path, steps=2))
    (run.path / "run.json").write_text('{"schema_version": 2}')
    with pytest.raises(ValueError, match="schema_version=2"):
        compact_run(run.path)


def test_full_disk_leaves_the_small_files_and_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(joining, "_to_disk", refuse)
    log = RunLogger(tmp_path, "run", flush_steps=1, flush_seconds=3600)
    run = Run(log.path)
    for step in range(20):
        log_batches(log, [step], per_epoch=1000)
        assert eventually(lambda steps=step + 1: run.table("steps").num_rows == steps)
    assert eventually(lambda: log._session._thread._joining is False)
    log.close()
    assert run.status == "finished"
    assert len(files(run, "pairs")) == 20
    assert not list(run.path.rglob(".*"))
    told = [row["message"] for row in run.table("events").to_pylist()]
    assert told == ["part files stay small, joining them failed: [Errno 28] No space left on device"]
    assert_rollups_equal_recount(run)


def test_scalars_of_ones_own_survive(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compactor.Compactor, "step", lambda self: False)
        with RunLogger(tmp_path, "run") as log:
            for step, extra in enumerate([{}, {"auxiliary": 0.5}, {"other": 2.0, "auxiliary": 1.5}]):
                log_steps(log, [step], **extra)
                log.flush()
    run = open_run(tmp_path / "run")
    columns = ["step", "auxiliary", "other"]
    before = run.table("steps", columns=columns).to_pydict()
    assert before["auxiliary"] == [None, 0.5, 1.5]
    compact_run(run.path)
    assert len(files(run, "steps")) == 1
    assert run.table("steps", columns=columns).to_pydict() == before


def test_size_on_disk_does_not_grow(run: Run) -> None:
    done = compact_run(run.path)
    assert done.bytes_after < done.bytes_before
    assert done.files_after < done.files_before
    assert done.left == ()
    assert done.files_after == sum(len(files(run, table)) for table in COMPACTED)
    assert os.path.exists(run.path / "run.lock")


def test_steps_stay_in_order(run: Run) -> None:
    compact_run(run.path)
    assert np.all(np.diff(run.table("pairs")["step"].to_numpy()) >= 0)


@pytest.mark.parametrize("joined", [False, True])
def test_sql_tells_numbers_that_are_not_finite_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joined: bool
) -> None:
    # a tool that trusts bounds from which NaN was left out takes every row for a number
    if not joined:
        monkeypatch.setattr(compactor.Compactor, "step", lambda self: False)
    margins = np.tile(np.float32([[0.5, np.nan, -np.inf], [0.25, 0.75, np.nan]]), (6, 1, 1))
    margins[3] = 0.5
    with RunLogger(tmp_path, "run", flush_seconds=3600, flush_steps=1) as log:
        for step, margin in enumerate(margins):
            log.log_step(a_step(step, 3, margin=margin, loss=margin[0, 1]), item_ids=[1, 2, 3], epoch=0)
            log.flush()
    assert (len(files(open_run(log.path), "pairs")) == 1) == joined

    def found(table: str, condition: str) -> int:
        rows = duckdb.sql(f"SELECT count(*) FROM '{log.path / table}/*.parquet' WHERE {condition}").fetchall()
        return int(rows[0][0])

    for condition, expected in {
        "isnan(margin)": np.isnan(margins),
        "NOT isnan(margin)": ~np.isnan(margins),
        "isfinite(margin)": np.isfinite(margins),
        "margin <= 1": margins <= 1,
        "margin > 0.6 AND isfinite(margin)": np.isfinite(margins) & (margins > 0.6),
    }.items():
        assert found("pairs", condition) == expected.sum(), condition
    assert (found("steps", "isnan(loss)"), found("steps", "isfinite(loss)")) == (5, 1)
