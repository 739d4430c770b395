"""What `uwml health` finds, and that it finds nothing where nothing is wrong."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.synthetic import make_run
from uwml_core.__main__ import main
from uwml_core.runlog.checkup import check_run
from uwml_core.runlog.parts import part_name
from uwml_core.runlog.reader import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(make_run(tmp_path, steps=60, epochs=3))


def kinds(run: Run) -> dict[str, int]:
    return dict(Counter(issue.kind for issue in check_run(run).issues))


def messages(run: Run) -> str:
    return "\n".join(issue.message for issue in check_run(run).issues)


def rewrite(run: Run, table: str, change: object) -> None:
    """Replace the rows of a table by one part with what ``change`` makes of them."""
    rows = run.table(table)
    for part in run.parts(table):
        part.path.unlink()
    new = change(rows)  # type: ignore[operator]
    pq.write_table(new, run.path / table / part_name(0, 0, 59))


def test_nothing_is_wrong_with_a_whole_run_or_one_that_was_resumed(run: Run, tmp_path: Path) -> None:
    assert kinds(run) == {}
    assert kinds(Run(make_run(tmp_path, run_id="resumed", steps=60, resume_at=31))) == {}


def test_rows_and_ranges_equal_what_duckdb_counts(run: Run) -> None:
    tables = check_run(run).tables
    assert {"steps", "pairs", "evals"} <= {summary.table for summary in tables}
    for summary in tables:
        files = f"'{run.path}/{summary.table}/*.parquet'"
        counted = duckdb.sql(f"SELECT count(*), min(step), max(step) FROM {files}").fetchall()
        assert counted == [(summary.rows, summary.first_step, summary.last_step)], summary.table


def test_a_gap_is_named_with_its_steps(run: Run) -> None:
    lost = pa.array([7, 8, 9, 30])
    rewrite(run, "steps", lambda rows: rows.filter(pc.invert(pc.is_in(rows["step"], lost))))
    assert kinds(run) == {"gap": 1, "mismatch": 1}
    assert "4 steps between 0 and 59 are missing: 7-9, 30;" in messages(run)


def test_a_lost_beginning_is_named(run: Run) -> None:
    for table in ("steps", "pairs"):
        rewrite(run, table, lambda rows: rows.filter(pc.greater_equal(rows["step"], 20)))
    assert "the first 20 steps, from 0 on, are missing" in messages(run)


def test_rollups_that_count_other_rows_are_named(run: Run) -> None:
    assert run.has("rollups/margins")
    rows = sum(part.size > 0 for part in run.parts("rollups/margins"))
    for part in run.parts("rollups/margins"):
        table = pq.read_table(part.path)
        place = table.schema.get_field_index("count")
        more = pc.add(table["count"], 1)
        pq.write_table(table.set_column(place, table.schema.field(place), more), part.path)
    assert rows > 0
    assert kinds(run) == {"mismatch": 1}
    assert "the histograms count" in messages(run)


def test_a_step_that_is_there_twice_is_named(run: Run) -> None:
    rewrite(run, "steps", lambda rows: pa.concat_tables([rows, rows.slice(5, 1)]))
    assert "1 steps are there more than once: 5" in messages(run)


def test_pairs_that_are_missing_or_doubled_are_named(run: Run) -> None:
    rewrite(run, "pairs", lambda rows: pa.concat_tables([rows.slice(3), rows.slice(len(rows) - 2)]))
    assert kinds(run) == {"gap": 1, "duplicate": 1, "mismatch": 1}
    assert "fewer rows than anchors: 0" in messages(run)
    assert "more rows than anchors: 59" in messages(run)


@pytest.mark.parametrize("seconds", [-3600, 86400])
def test_a_clock_jump_is_named_with_its_size(run: Run, seconds: int) -> None:
    def later(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index("time")
        moved = pc.add(rows["time"], pa.scalar(timedelta(seconds=seconds)))
        moved = pc.if_else(pc.greater_equal(rows["step"], 20), moved, rows["time"])
        return rows.set_column(place, rows.schema.field(place), moved.cast(rows["time"].type))

    rewrite(run, "steps", later)
    assert kinds(run) == {"clock": 1}
    assert f"jumped by {seconds:+d} s before step 20" in messages(run)


def test_a_torn_file_is_named_and_the_rest_stays_usable(run: Run) -> None:
    path = run.parts("pairs")[0].path
    path.write_bytes(path.read_bytes()[:-20])
    assert kinds(run)["torn"] == 1
    tables = {summary.table: summary for summary in check_run(run).tables}
    assert tables["steps"].rows == 60
    assert "pairs" not in tables or tables["pairs"].rows < 60 * 32


def test_a_page_that_is_broken_inside_is_named(run: Run) -> None:
    path = run.parts("steps")[0].path
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    path.write_bytes(content)
    assert "unreadable" in kinds(Run(run.path))


def test_a_killed_run_says_when_it_was_alive_last(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path, steps=10, status="stale"))
    assert kinds(run) == {"stale": 1}
    assert "probably killed" in messages(run)


def test_a_newer_schema_is_the_only_thing_said(run: Run) -> None:
    content = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps(content | {"schema_version": 99}))
    result = check_run(Run(run.path))
    assert [issue.kind for issue in result.issues] == ["schema"]
    assert result.tables == ()


def test_an_empty_folder_and_one_step_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert kinds(Run(tmp_path / "empty")) == {"foreign": 1}
    assert kinds(Run(make_run(tmp_path, run_id="one", steps=1, epochs=1))) == {}


def test_the_command_tells_by_its_exit_code(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", str(run.path)]) == 0
    assert "nothing wrong found" in capsys.readouterr().out
    (run.path / "steps" / "ev\x1b[2Jil.parquet").write_bytes(b"x")
    assert main(["health", str(run.path)]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "is no part of the run log" in out
    assert main(["health", str(run.path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [issue["kind"] for issue in told["issues"]] == ["foreign"]
    assert main(["health", str(run.path / "none")]) == 2
