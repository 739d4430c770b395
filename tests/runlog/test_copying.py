"""A copy of a run grows with it, is a run at every moment, and gives way to nobody and to nothing."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.object_store import BUCKET, ObjectStore
from tests.support.steps import eventually, log_batches
from tests.support.synthetic import rewrite_run_json
from uwml_core.__main__ import main
from uwml_core.runlog import copy_thread, last_good, remote, remote_run
from uwml_core.runlog.copying import COPY_LOCK, CopyRefused, RunCopy
from uwml_core.runlog.destination import Destination, destination
from uwml_core.runlog.location import parse_remote
from uwml_core.runlog.reader import Run, open_run
from uwml_core.runlog.runfile import RunLock
from uwml_core.runlog.schema import TABLES
from uwml_core.runlog.writer import RunInUseError, RunLogger, TelemetryWarning


@pytest.fixture
def store(
    server: ObjectStore, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[ObjectStore]:
    for name in ("_OPEN_S", "_CLOSED_S", "_ITEMS_S"):
        monkeypatch.setattr(remote_run, name, 0.0)
    monkeypatch.setattr(remote, "_RELIST_S", 0.0)
    monkeypatch.setattr(last_good, "_PAUSES", 0)
    server.root = request.node.name.replace("[", "-").replace("]", "")
    server.requests.clear()
    yield server
    server.down = False


@pytest.fixture
def there(tmp_path: Path) -> Destination:
    """A folder of this machine, which is quicker than a server."""
    return destination((tmp_path / "there").as_uri())


def read(to: Destination, run_id: str = "run") -> Run:
    return open_run(Path(to.base) / run_id)


def steps(run: Run) -> list[int]:
    return run.table("steps")["step"].to_pylist()


def assert_same(run: Run, other: Run) -> None:
    for table in TABLES:
        pd.testing.assert_frame_equal(run.frame(table), other.frame(table), check_exact=True)
    assert run.info == other.info
    assert run.health() == other.health()


def test_copy_in_object_storage_equals_the_run(store: ObjectStore, finished: Path) -> None:
    copy = RunCopy(finished, destination(store.url()))
    count = copy.bring_up()
    assert count > 10
    # a small file is one request, and nothing is asked for twice
    puts = [key for method, key in store.requests if method == "PUT"]
    assert not [key for method, key in store.requests if method == "POST"]
    assert len(puts) == len(set(puts)) + 1 == count + 2
    assert puts.count(f"{store.root}/demo/run.json") == 2
    assert puts[-1] == f"{store.root}/demo/run.json"
    run = open_run(store.url("/demo"))
    assert_same(run, open_run(finished))
    items = run.items()
    assert items is not None
    pd.testing.assert_frame_equal(items, open_run(finished).items())
    store.requests.clear()
    assert copy.bring_up() == 0
    copy.close()
    assert [method for method, _ in store.requests if method in {"PUT", "POST", "DELETE"}] == []


def test_copy_that_is_begun_again_puts_only_what_is_missing(store: ObjectStore, finished: Path) -> None:
    for expected in (True, False):
        copy = RunCopy(finished, destination(store.url()))
        store.requests.clear()
        copy.bring_up()
        copy.close()
        parts = [key for method, key in store.requests if method == "PUT" and "part-" in key]
        assert bool(parts) is expected


def test_copy_follows_a_run_and_its_compaction(tmp_path: Path, there: Destination) -> None:
    log = RunLogger(tmp_path, "run", flush_steps=1)
    copy = RunCopy(log.path, there)
    seen = 0
    for step in range(24):
        log_batches(log, [step], per_epoch=9)
        log.flush()
        copy.bring_up()
        run = read(there)
        assert steps(run) == list(range(step + 1))
        assert run.table("pairs").num_rows == 16 * (step + 1)
        assert run.status == "running"
        seen = max(seen, len([*(run.path / "pairs").iterdir()]))
    log.close()
    copy.bring_up()
    assert_same(read(there), open_run(log.path))
    assert read(there).status == "finished"
    # what was joined is gone there, too
    assert seen > 3
    assert len([*(Path(there.base) / "run" / "pairs").iterdir()]) == 1
    copy.close()


@dataclasses.dataclass(frozen=True)
class Broken(Destination):
    """Fails at the n-th thing that it is told to do."""

    left: list[int] = dataclasses.field(default_factory=list)

    def put(self, name: str, content: bytes | Path) -> None:
        self._count()
        super().put(name, content)

    def remove(self, name: str) -> None:
        self._count()
        super().remove(name)

    def _count(self) -> None:
        self.left[0] -= 1
        if not self.left[0]:
            raise OSError("no network")


def test_copy_that_breaks_off_anywhere_is_a_run_and_is_completed(tmp_path: Path, there: Destination) -> None:
    with RunLogger(tmp_path, "run", flush_steps=4) as log:
        log_batches(log, range(20), per_epoch=9)
        log.flush()
        first = RunCopy(log.path, there)
        first.bring_up()
        first.close()
        log_batches(log, range(20, 30), per_epoch=9)
    # steps 15 to 29 are done again otherwise, and the parts are joined
    with RunLogger(tmp_path, "run", resume_from_step=15, flush_steps=4) as log:
        log_batches(log, range(15, 40), per_epoch=9)
    begun = tmp_path / "begun"
    shutil.copytree(there.base, begun)
    broke = at = 0
    while broke == at:
        at += 1
        shutil.rmtree(there.base)
        shutil.copytree(begun, there.base)
        copy = RunCopy(log.path, Broken(there.filesystem, there.base, there.shown, [at]))
        try:
            copy.bring_up()
        except OSError:
            broke += 1
            run = read(there)
            known = steps(run)
            assert known == sorted(set(known))
            assert run.health() == ()
            pairs = run.table("pairs")["step"].to_pylist()
            assert {*known} <= {*pairs}
            assert len(pairs) == 16 * len({*pairs})
            # what was done again is never told beside what it replaced
            assert (run.status == "finished") <= (known == list(range(40)))
            copy.bring_up()
        assert_same(read(there), open_run(log.path))
        copy.close()
    assert at > 5


def test_run_folder_that_vanishes_takes_nothing_away_there(tmp_path: Path, there: Destination) -> None:
    log = RunLogger(tmp_path, "run", flush_steps=2)
    log_batches(log, range(10))
    log.flush()
    copy = RunCopy(log.path, there)
    copy.bring_up()
    shutil.move(log.path, tmp_path / "away")
    with pytest.raises(ValueError, match=r"run.json cannot be read"):
        copy.bring_up()
    assert steps(read(there)) == list(range(10))
    shutil.move(tmp_path / "away", log.path)
    log.close()
    copy.bring_up()
    assert_same(read(there), open_run(log.path))
    copy.close()


def test_another_run_of_that_name_is_left_alone(tmp_path: Path, there: Destination) -> None:
    for folder in ("one", "two"):
        with RunLogger(tmp_path / folder, "run") as log:
            log_batches(log, range(3))
    copy = RunCopy(tmp_path / "one" / "run", there)
    copy.bring_up()
    copy.close()
    before = read(there).info
    copy = RunCopy(tmp_path / "two" / "run", there)
    with pytest.raises(CopyRefused, match=r"there/run is another run; choose another place or run id"):
        copy.bring_up()
    copy.close()
    assert read(there).info == before


def test_run_that_was_continued_from_elsewhere_is_left_alone(tmp_path: Path, there: Destination) -> None:
    with RunLogger(tmp_path / "one", "run") as log:
        log_batches(log, range(3))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for folder in ("two", "one"):
        with RunLogger(tmp_path / folder, "run", resume_from_step=3) as log:
            log_batches(log, range(3, 6))
    copy = RunCopy(tmp_path / "two" / "run", there)
    copy.bring_up()
    copy.close()
    copy = RunCopy(tmp_path / "one" / "run", there)
    with pytest.raises(CopyRefused, match="was continued from somewhere else; choose another place"):
        copy.bring_up()
    copy.close()


def test_second_writer_there_is_noticed(tmp_path: Path, there: Destination) -> None:
    log = RunLogger(tmp_path, "run")
    copy = RunCopy(log.path, there)
    copy.bring_up()
    with pytest.raises(RunInUseError, match="'run' is being copied by another process"):
        RunCopy(log.path, there)
    later = datetime.now(UTC) + timedelta(seconds=5)
    rewrite_run_json(Path(there.base) / "run", heartbeat_at=later.isoformat())
    with pytest.raises(RunInUseError, match="run is written by another process, too; this copy ends"):
        copy.bring_up()
    copy.close()
    copy = RunCopy(log.path, there)
    with pytest.raises(RunInUseError, match="run is being written by another process; wait until it ends"):
        copy.bring_up()
    # one that was killed
    rewrite_run_json(
        Path(there.base) / "run", heartbeat_at=(datetime.now(UTC) - timedelta(seconds=60)).isoformat()
    )
    copy.bring_up()
    copy.close()
    log.close()


def is_run(store: ObjectStore) -> bool:
    # what was listed when nothing was there yet is kept for a while
    remote.mirror_of(parse_remote(store.url())).folder("run").listing.expire()
    try:
        open_run(store.url("/run"))
    except FileNotFoundError:
        return False
    return True


def test_logger_copies_while_it_writes(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_thread, "EVERY_S", 0.05)
    with RunLogger(tmp_path, "run", flush_steps=2, copy_to=store.url()) as log:
        log_batches(log, range(6))
        log.flush()
        assert eventually(lambda: is_run(store))
        run = open_run(store.url("/run"))
        assert eventually(lambda: steps(run) == list(range(6)))
        assert run.status == "running"
        log_batches(log, range(6, 11))
    assert eventually(lambda: run.status == "finished")
    assert_same(run, open_run(log.path))
    with RunLogger(tmp_path, "run", resume_from_step=8, copy_to=store.url()) as log:
        log_batches(log, range(8, 14))
    remote.mirror_of(parse_remote(store.url())).folder("run").listing.expire()
    assert eventually(lambda: steps(run) == list(range(14)))
    assert_same(run, open_run(log.path))


def test_place_out_of_reach_never_stops_training_and_is_told(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(copy_thread, "EVERY_S", 0.05)
    monkeypatch.setattr(copy_thread, "_LONGEST_DELAY_S", 0.05)
    monkeypatch.setattr(copy_thread.CopyThread.close, "__defaults__", (0.1,))
    run = Run(tmp_path / "run")

    def told() -> list[str]:
        events = run.frame("events")
        return events[events["kind"] == "copy"]["message"].tolist()

    log = RunLogger(tmp_path, "run", flush_steps=1, flush_seconds=0.1, copy_to=store.url())
    store.down = True
    log_batches(log, range(3))
    assert eventually(lambda: len(told()) == 1)
    store.down = False
    assert eventually(lambda: len(told()) == 2)
    first, second = told()
    assert first.startswith(f"s3://{BUCKET}/{store.root}/run cannot be written, and is tried again: ")
    assert second == f"s3://{BUCKET}/{store.root}/run is written again"
    store.down = True
    log_batches(log, range(3, 6))
    with pytest.warns(TelemetryWarning, match="its copy is not complete, `uwml copy` completes it"):
        log.close()
    assert run.status == "finished"
    assert steps(run) == list(range(6))
    store.down = False
    assert main(["copy", str(log.path), store.url()]) == 0
    assert capsys.readouterr().out.endswith(f"s3://{BUCKET}/{store.root}/run is complete\n")
    assert_same(open_run(store.url("/run")), run)


def test_run_that_is_being_copied_is_not_copied_twice(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    lock = RunLock(tmp_path / "run", COPY_LOCK)
    log = RunLogger(tmp_path, "run", copy_to=(tmp_path / "there").as_uri())
    with pytest.warns(TelemetryWarning, match="it is not copied from here: run 'run' is being copied"):
        log.log_event("note", "goes on")
    log.close()
    lock.release()
    assert not (tmp_path / "there").exists()


def test_command_follows_until_the_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = RunLogger(tmp_path, "run")
    log_batches(log, range(4))
    log.flush()
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            log_batches(log, range(4, 7))
            log.close()

    monkeypatch.setattr("time.sleep", wait)
    url = (tmp_path / "there").as_uri()
    assert main(["copy", str(log.path), url, "--follow"]) == 0
    monkeypatch.undo()
    assert len(waited) == 2
    assert capsys.readouterr().out.endswith(f"{url}/run is complete\n")
    assert_same(open_run(tmp_path / "there" / "run"), open_run(log.path))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("logs", "'logs' is no URL of a place to copy to"),
        ("s3://key:secret@bucket/logs", "holds credentials"),
        ("nowhere://bucket/logs", "cannot be opened"),
    ],
)
def test_place_that_is_none_is_refused_before_anything_is_made(tmp_path: Path, url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        RunLogger(tmp_path / "logs", "run", copy_to=url)
    assert not (tmp_path / "logs").exists()


def test_what_is_no_run_is_no_run_to_copy(
    tmp_path: Path, there: Destination, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["copy", str(tmp_path), "file:///tmp/somewhere"]) == 2
    assert "run.json cannot be read" in capsys.readouterr().err
    with RunLogger(tmp_path, "run") as log:
        pass
    (Path(there.base) / "run").mkdir(parents=True)
    (Path(there.base) / "run" / "run.json").write_text(json.dumps([1]), encoding="utf-8")
    copy = RunCopy(log.path, there)
    with pytest.raises(ValueError, match=r"run/run.json is no run.json"):
        copy.bring_up()
    copy.close()


def test_only_the_first_of_several_processes_copies(tmp_path: Path) -> None:
    url: Any = (tmp_path / "there").as_uri()
    with RunLogger(tmp_path, "run", world_size=2, copy_to=url) as log:
        other = RunLogger(tmp_path, "run", rank=1, world_size=2, copy_to=url)
        log_batches(log, range(3))
        log_batches(other, range(3))
        other.close()
    assert open_run(tmp_path / "there" / "run").table("pairs").num_rows == 2 * 3 * 16
