"""Runs in object storage: the same numbers as on disk, each file fetched once, faults said and survived."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from pyarrow import fs

from tests.support.object_store import BUCKET, KEY, SECRET, ObjectStore
from tests.support.steps import log_steps
from tests.support.synthetic import make_run, rewrite_run_json
from uwml_core.__main__ import main
from uwml_core.runlog import cache_folder, last_good, remote, remote_run
from uwml_core.runlog.checkup import check_run
from uwml_core.runlog.joining import join_parts
from uwml_core.runlog.location import parse_remote
from uwml_core.runlog.parts import parse_part_name
from uwml_core.runlog.reader import Run, SchemaTooNew, list_runs, open_run, root_health
from uwml_core.runlog.schema import PAIRS, TABLES
from uwml_core.runlog.writer import RunLogger


@pytest.fixture
def store(
    server: ObjectStore, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[ObjectStore]:
    """The server with a root of its own for each test; what was listed is kept until ``later``."""
    for name in ("_OPEN_S", "_CLOSED_S", "_ITEMS_S"):
        monkeypatch.setattr(remote_run, name, 1e6)
    monkeypatch.setattr(remote, "_RELIST_S", 1e6)
    for name, value in {"FIRST_DELAY_S": 0.0, "LONGEST_DELAY_S": 0.0}.items():
        monkeypatch.setattr(last_good, name, value)
    server.root = request.node.name.replace("[", "-").replace("]", "").replace("/", "-")
    server.requests.clear()
    yield server
    server.down, server.before_head = False, lambda key: None


def later(store: ObjectStore) -> None:
    """Let the time pass after which a listing is looked at again."""
    mirror = remote.mirror_of(parse_remote(store.url()))
    for place in (mirror, *mirror._folders.values()):
        place.listing.expire()


def assert_same(run: Run, other: Run, table: str) -> None:
    """Equal in every row and type, NaN being equal to NaN."""
    assert run.table(table).schema.equals(other.table(table).schema)
    pd.testing.assert_frame_equal(run.frame(table), other.frame(table), check_exact=True)


def names(store: ObjectStore) -> list[str]:
    return [key.removeprefix(f"{store.root}/") for key in store.read()]


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every run.json be old enough to be taken for unchanged."""
    monkeypatch.setattr(remote, "_YOUNG_NS", -(10**12))


def test_every_table_equals_the_local_one_and_duckdb(store: ObjectStore, finished: Path) -> None:
    store.upload(finished.parent)
    run, local = open_run(store.url("/demo")), open_run(finished)
    for table in TABLES:
        assert local.has(table)
        assert_same(run, local, table)
    assert run.rollup("margins").equals(local.rollup("margins"))
    pd.testing.assert_frame_equal(run.items(), local.items())
    assert (run.name, run.status, run.created_at) == (local.name, local.status, local.created_at)
    query = f"""
        SELECT count(*), sum(margin), min(step), max(step)
        FROM read_parquet('{finished}/pairs/*.parquet', filename = true)
        WHERE step < 30 OR parse_filename(filename) LIKE 'part-0001-%'
    """
    with duckdb.connect() as connection:
        (counted,) = connection.execute(query).fetchall()
    pairs = run.frame("pairs")
    assert (len(pairs), pairs["step"].min(), pairs["step"].max()) == (counted[0], counted[2], counted[3])
    assert pairs["margin"].astype(float).sum() == pytest.approx(counted[1], rel=1e-12)
    assert run.health() == ()


def test_only_the_tables_that_are_asked_for_are_fetched(store: ObjectStore, finished: Path) -> None:
    store.upload(finished.parent)
    (run,) = list_runs(store.url())
    assert names(store) == ["demo/run.json"]
    assert run.version() == run.version()
    assert run.status == "finished"
    assert names(store) == []
    run.frame("steps")
    assert {name.rpartition("/")[0] for name in names(store)} == {"demo/steps"}
    assert run.health() == ()
    assert run.has("items")
    assert [name.partition("/")[0] for name in names(store)] == ["_items"]


def test_nothing_is_fetched_twice_also_by_another_process(
    store: ObjectStore, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    store.upload(finished.parent)
    run = open_run(store.url("/demo"))
    for _ in range(2):
        later(store)
        rows = sum(run.table(table).num_rows for table in TABLES)
        assert run.items() is not None
    fetched = names(store)
    assert len(fetched) == len(set(fetched)) > 10
    code = f"""
import sys
from uwml_core.runlog import remote
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.schema import TABLES
remote._YOUNG_NS = -10**12
run = open_run({store.url("/demo")!r})
assert run.items() is not None
print(sum(run.table(table).num_rows for table in TABLES))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True
    )
    assert int(done.stdout) == rows
    assert ("GET", "?") in store.requests
    assert names(store) == []


def test_file_uploaded_again_unchanged_is_not_fetched_again(store: ObjectStore, finished: Path) -> None:
    store.upload(finished.parent)
    run = open_run(store.url("/demo"))
    rows = run.frame("steps")
    names(store)
    time.sleep(1.0)  # the store shows whole seconds
    store.upload(finished.parent)
    store.requests.clear()
    later(store)
    pd.testing.assert_frame_equal(run.frame("steps"), rows)
    assert [method for method, key in store.requests if "steps/" in key] == ["HEAD", "HEAD"]


def test_following_a_growing_run_costs_the_new_parts_only(store: ObjectStore, tmp_path: Path) -> None:
    with RunLogger(tmp_path, "demo", flush_seconds=60.0, flush_steps=10_000) as log:
        for first in range(0, 40, 10):
            log_steps(log, range(first, first + 10))
            log.flush()
            store.upload(tmp_path, new_only=True)
            later(store)
            run = open_run(store.url("/demo"))
            assert run.frame("steps")["step"].tolist() == list(range(first + 10))
            assert [name for name in names(store) if "steps/" in name] == [
                f"demo/steps/part-0000-{first:09d}-{first + 9:09d}.parquet"
            ]
    assert run.status == "running"
    store.upload(tmp_path, new_only=True)
    later(store)
    assert run.status == "finished"


def test_stop_within_the_second_of_a_heartbeat_is_seen(store: ObjectStore, tmp_path: Path) -> None:
    make_run(tmp_path, steps=4, status="running")
    store.upload(tmp_path)
    run = open_run(store.url("/demo"))
    assert run.status == "running"
    # of equal length, and in most cases within the second of the store's clock
    rewrite_run_json(tmp_path / "demo", status="stopped")
    store.upload(tmp_path, new_only=True)
    later(store)
    assert run.status == "stopped"


def test_parts_that_were_joined_are_replaced_without_a_row_lost(store: ObjectStore, tmp_path: Path) -> None:
    with RunLogger(tmp_path, "demo", flush_steps=10) as log:
        for first in range(0, 30, 10):
            log_steps(log, range(first, first + 10))
            log.flush()
        store.upload(tmp_path)
        run = open_run(store.url("/demo"))
        before = run.table("pairs")
        joined = tmp_path / "joined" / "pairs"
        shutil.copytree(tmp_path / "demo" / "pairs", joined)
    old = sorted(path.name for path in joined.iterdir())
    parts = [part for name in old if (part := parse_part_name(name))]
    for _ in join_parts(joined, parts, PAIRS, ("i2t", "t2i")):
        pass
    (new,) = joined.iterdir()

    def compact(key: str) -> None:
        store.before_head = lambda key: None
        for name in old:
            store.remove(f"{store.root}/demo/pairs/{name}")

    store.put(f"{store.root}/demo/pairs/{new.name}", new.read_bytes())
    store.before_head = compact
    later(store)
    assert run.table("pairs").equals(before)
    later(store)
    assert run.table("pairs").equals(before)
    assert [path.name for path in (run.path / "pairs").iterdir()] == [new.name]


def test_part_that_vanishes_before_it_is_read_is_not_missed(store: ObjectStore, tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=6)
    store.upload(tmp_path)
    run = open_run(store.url("/demo"))
    (part,) = (folder / "steps").iterdir()
    wider = part.read_bytes()

    def compact(key: str) -> None:
        if "steps/" in key:
            store.before_head = lambda key: None
            store.put(f"{store.root}/demo/steps/part-0000-000000000-000000099.parquet", wider)
            store.remove(f"{store.root}/demo/steps/{part.name}")

    store.before_head = compact
    assert run.frame("steps")["step"].tolist() == list(range(6))


def test_server_that_is_down_leaves_the_last_good_state(store: ObjectStore, finished: Path) -> None:
    store.upload(finished.parent)
    (run,) = list_runs(store.url())
    rows, version, items = run.table("ranks"), run.version(), run.items()
    store.down = True
    later(store)
    assert [other.run_id for other in list_runs(store.url())] == ["demo"]
    assert run.table("ranks").equals(rows)
    pd.testing.assert_frame_equal(run.items(), items)
    assert (run.status, run.version()) == ("finished", version)
    # never fetched, and now out of reach: as if it were not there
    assert run.frame("pairs").empty
    (issue,) = run.health()
    assert (issue.kind, issue.file) == ("remote", f"s3://{BUCKET}/{store.root}/demo")
    assert issue.since is not None
    assert issue.since[:10] == f"{datetime.now(UTC):%Y-%m-%d}"
    assert f"was not refreshed since {issue.since}" in issue.message
    assert root_health(store.url())[0].kind == "remote"
    store.down = False
    later(store)
    assert run.health() == ()
    list_runs(store.url())
    assert root_health(store.url()) == ()
    assert run.table("pairs").equals(open_run(finished).table("pairs"))


def test_running_run_out_of_reach_is_not_called_stale(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path, steps=2, status="running")
    store.upload(tmp_path)
    run = open_run(store.url("/demo"))
    assert run.status == "running"
    store.down = True
    # the heartbeat is older than that by now
    monkeypatch.setattr("uwml_core.runlog.info.STALE_AFTER_S", 0.0)
    monkeypatch.setattr(run._remote.listing, "read_at", run.heartbeat_at)
    later(store)
    assert run.status == "running"
    store.down = False
    later(store)
    assert run.status == "stale"


def test_server_that_was_down_from_the_beginning_is_named(store: ObjectStore) -> None:
    store.down = True
    assert list_runs(store.url()) == []
    (issue,) = root_health(store.url())
    assert issue.since is None
    assert issue.message.startswith(f"s3://{BUCKET}/{store.root} could not be read (")
    with pytest.raises(OSError, match=f"s3://{BUCKET}/{store.root}/demo could not be read"):
        open_run(store.url("/demo"))
    text = issue.message + repr(issue)
    assert KEY not in text
    assert SECRET not in text
    assert "endpoint_override" not in text


def test_failures_are_asked_about_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [0.0], []
    monkeypatch.setattr(last_good.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(last_good.time, "sleep", lambda seconds: None)

    def ask() -> int:
        asked.append(now[0])
        if 10 < now[0] < 200:
            raise OSError("no route\nmore")
        return len(asked)

    kept = last_good.LastGood(ask, 0)
    for second in range(250):
        now[0] = float(second)
        assert kept.get(1.0) > 0
        assert kept.problem == ("no route" if 10 < asked[-1] < 200 else "")
    waits = [b - a for a, b in itertools.pairwise(asked) if 10 < a < 200]
    assert waits == sorted(waits)
    assert max(waits) == last_good.LONGEST_DELAY_S
    assert asked[-1] > 200


def test_torn_part_is_skipped_and_named(store: ObjectStore, tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=6, epochs=1)
    whole = next((folder / "steps").iterdir()).read_bytes()
    (folder / "steps" / "part-0000-000000006-000000009.parquet").write_bytes(whole[: len(whole) // 2])
    store.upload(tmp_path)
    run = open_run(store.url("/demo"))
    assert run.frame("steps")["step"].tolist() == list(range(6))
    (issue,) = run.health()
    assert (issue.kind, issue.file) == ("torn", "steps/part-0000-000000006-000000009.parquet")
    # mended: fetched again under the same name
    store.put(f"{store.root}/demo/{issue.file}", whole)
    later(store)
    assert len(run.frame("steps")) == 12
    assert run.health() == ()


def test_newer_schema_is_refused(store: ObjectStore, tmp_path: Path) -> None:
    rewrite_run_json(make_run(tmp_path, steps=2), schema_version=99)
    store.upload(tmp_path)
    assert [run.run_id for run in list_runs(store.url())] == ["demo"]
    with pytest.raises(SchemaTooNew, match="schema version 99"):
        open_run(store.url("/demo"))


def test_foreign_run_is_read(store: ObjectStore, tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=6)
    (folder / "run.json").unlink()
    (folder / "steps.parquet").write_bytes(next((folder / "steps").iterdir()).read_bytes())
    shutil.rmtree(folder / "steps")
    (tmp_path / "demo" / "pairs" / "mine.parquet").write_bytes(
        next((folder / "pairs").iterdir()).read_bytes()
    )
    store.upload(tmp_path)
    (run,) = list_runs(store.url())
    assert run.status == "foreign"
    assert abs((datetime.now(UTC) - run.created_at).total_seconds()) < 60
    for table in ("steps", "pairs"):
        assert run.table(table).equals(open_run(folder).table(table))


HOSTILE = [
    "demo/../evil.parquet",
    "demo/steps/../../../evil.parquet",
    "demo/steps//etc/passwd",
    "demo/steps/a\\..\\b.parquet",
    "demo/steps/\x9b2Jx.parquet",
    "demo/steps/" + "n" * 240 + ".parquet",
    "../up/run.json",
]


def test_hostile_keys_are_ignored_and_named(store: ObjectStore, tmp_path: Path) -> None:
    make_run(tmp_path / "logs", steps=4)
    store.upload(tmp_path / "logs")
    for key in HOSTILE:
        store.put(f"{store.root}/{key}", b"PAR1")
    store.put(f"{store.root}/demo/steps/notes.txt", b"x")
    runs = list_runs(store.url())
    assert [run.run_id for run in runs] == ["demo"]
    assert runs[0].frame("steps")["step"].tolist() == list(range(4))
    issues = runs[0].health()
    assert {issue.kind for issue in issues} == {"foreign"}
    assert len(issues) == len(HOSTILE)
    assert all(issue.message.isprintable() and "\x9b" not in issue.file for issue in issues)
    assert [issue.file for issue in root_health(store.url())] == ["'..'"]
    mirror = runs[0].path.parent
    there = sorted(path.relative_to(mirror).as_posix() for path in mirror.rglob("*") if path.is_file())
    assert there == ["demo/run.json", "demo/steps/part-0000-000000000-000000003.parquet"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/etc", "a/../b", "a//b", "a\nb", "a\\b", "\u202ea", "é" * 101]
)
def test_names_that_must_not_become_paths(name: str) -> None:
    assert not remote.safe_name(name)
    assert remote.safe_name("steps/猫-0.parquet")


@pytest.mark.parametrize("run_id", ["..", "nothing", "_items"])
def test_missing_run_is_named(store: ObjectStore, finished: Path, run_id: str) -> None:
    store.upload(finished.parent)
    with pytest.raises((FileNotFoundError, ValueError), match=r"is no run|is no place"):
        open_run(store.url(f"/{run_id}"))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://AKIA:geheim@bucket/logs", "holds credentials"),
        ("s3://bucket/logs?endpoint_override=u:geheim@host", "holds credentials"),
        ("s3://bucket/logs?secret_key=geheim", r"s3://bucket/logs has the options \['secret_key'\]"),
        ("warp://bucket/logs", "warp://bucket/logs cannot be opened"),
        ("s3://", "no place of runs"),
    ],
)
def test_urls_that_are_refused_without_repeating_a_secret(url: str, message: str) -> None:
    for use in (list_runs, open_run):
        with pytest.raises(ValueError, match=message) as caught:
            use(f"{url}/demo" if use is open_run and "?" not in url else url)
        assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "root", ["s3://k:geheim@bucket/logs?region=x", Path("s3://k:geheim@b/logs"), "gs://b"]
)
def test_logger_refuses_a_remote_root(
    root: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ValueError, match="is remote, and runs are written on this machine; write into a local folder"
    ):
        RunLogger(root)
    assert list(tmp_path.iterdir()) == []


def test_health_and_bundle_commands_take_urls(
    store: ObjectStore, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.upload(finished.parent)
    layout = finished / "projections" / "0123456789abcdef.parquet"
    store.put(f"{store.root}/demo/projections/{layout.name}", b"PAR1")
    assert main(["health", store.url("/demo")]) == 0
    shown = capsys.readouterr().out
    assert "nothing wrong found" in shown
    assert check_run(open_run(store.url("/demo"))).tables == check_run(open_run(finished)).tables
    assert main(["bundle", store.url("/demo"), "-o", str(tmp_path / "one.zip")]) == 0
    with zipfile.ZipFile(tmp_path / "one.zip") as bundle:
        held = set(bundle.namelist())
    expected = {f"run/{path.relative_to(finished).as_posix()}" for path in finished.rglob("*.parquet")} | {
        f"run/projections/{layout.name}",
        "run/run.json",
        "manifest.json",
    }
    assert held - expected == {f"items/{next((finished.parent / '_items').iterdir()).name}"}
    assert expected <= held
    store.down = True
    capsys.readouterr()
    # what cannot be fetched is not left out in silence
    shutil.rmtree(open_run(store.url("/demo")).path / "pairs")
    later(store)
    assert main(["bundle", store.url("/demo"), "-o", str(tmp_path / "two.zip")]) == 2
    assert "the bundle would be incomplete" in capsys.readouterr().err
    assert not (tmp_path / "two.zip").exists()
    assert main(["health", store.url("/other")]) == 2
    assert "could not be read" in capsys.readouterr().err


def test_any_pyarrow_filesystem_can_be_handed_over(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished.parent, tmp_path / "logs")
    files = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    (run,) = list_runs("logs", filesystem=files)
    local = open_run(finished)
    for table in TABLES:
        assert_same(run, local, table)
    assert open_run("logs/demo", filesystem=files).path == run.path != local.path
    assert_same(open_run((tmp_path / "logs" / "demo").as_uri()), local, "steps")


def test_cache_is_for_the_user_alone_and_makes_room(
    store: ObjectStore, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path))
    store.upload(finished.parent)
    run = open_run(store.url("/demo"))
    run.frame("steps")
    assert run.path.parent.parent == tmp_path / "remote"
    assert run.path.parent.stat().st_mode & 0o077 == 0
    ages = {"old": 9, "newer": 5, "used": 0}
    for name, days in ages.items():
        folder = run.path.parent.with_name("other") / name
        folder.mkdir(parents=True)
        (folder / "x.parquet").write_bytes(b"x" * 2**20)
        os.utime(folder / "x.parquet", (time.time() - days * 86_400,) * 2)
    (run.path.parent.parent / ".trimmed").unlink()
    # room for two of the three, and then for none
    for limit, left in ((2.5, {"newer", "used"}), (0.5, {"used"})):
        monkeypatch.setenv("UWML_REMOTE_CACHE_GIB", str(limit / 1024))
        cache_folder.trimmed_folder("s3://another", "another")
        assert {path.parent.name for path in folder.parent.rglob("*.parquet")} == left
        (run.path.parent.parent / ".trimmed").unlink()
    assert run.path.is_dir()
    monkeypatch.setenv("UWML_REMOTE_CACHE_GIB", "many")
    with pytest.raises(ValueError, match="UWML_REMOTE_CACHE_GIB='many' is no size"):
        cache_folder.trimmed_folder("s3://another", "another")


def test_cache_that_was_deleted_is_filled_again(store: ObjectStore, finished: Path) -> None:
    store.upload(finished.parent)
    run = open_run(store.url("/demo"))
    rows = run.table("pairs")
    shutil.rmtree(run.path.parent)
    later(store)
    assert run.table("pairs").equals(rows)
    assert run.status == "finished"


def test_fsspec_filesystem_is_read(finished: Path) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.put(str(finished.parent), "/memory-logs", recursive=True)
    files = fs.PyFileSystem(fs.FSSpecHandler(memory))
    try:
        (run,) = list_runs("/memory-logs", filesystem=files)
        for table in ("steps", "pairs"):
            assert_same(run, open_run(finished), table)
        assert run.health() == ()
    finally:
        memory.rm("/memory-logs", recursive=True)


def test_several_runs_are_listed_newest_first(store: ObjectStore, tmp_path: Path) -> None:
    for day, run_id in enumerate(("b", "c", "a")):
        folder = make_run(tmp_path, run_id=run_id, steps=1)
        rewrite_run_json(folder, created_at=f"2026-01-0{day + 1}T00:00:00+00:00")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "readme.txt").write_text("no run")
    store.upload(tmp_path)
    assert [run.run_id for run in list_runs(store.url())] == ["a", "c", "b"]
    store.requests.clear()
    assert [run.run_id for run in list_runs(store.url())] == ["a", "c", "b"]
    assert store.requests == []
