"""What the comparison of logs measures with; its other contestants are not installed here."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.logger_files import level_db
from benchmarks.logger_peers import CONTESTANTS
from benchmarks.loggers import ARRAYS, BATCH, SCALARS, Logger, Ours, OursTwo, Steps, verdict
from benchmarks.logging_child import measure, processor_s
from benchmarks.logging_run import Failure, net, run_child

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize("kind", [Ours, OursTwo])
def test_our_log_reads_back_exactly(kind: type[Ours], tmp_path: Path) -> None:
    result = measure(kind(tmp_path), Steps(7), 0.0)
    assert (result["scalars"], result["arrays"]) == ("exact", "exact")
    assert result["bytes"] * 7 > result["pair_bytes"] * 7 * 2 * BATCH > 0


def test_nothing_is_read_back_where_nothing_was_logged(tmp_path: Path) -> None:
    result = measure(Logger(tmp_path), Steps(3), 0.0)
    assert (result["scalars"], result["arrays"], result["bytes"]) == ("not kept", "not kept", 0.0)


def test_everyone_is_asked_to_keep_what_cannot_be_guessed() -> None:
    columns = Steps(5).columns()
    assert {name: columns[name].shape for name in (*SCALARS, *ARRAYS)} == {
        **dict.fromkeys(SCALARS, (5,)),
        **dict.fromkeys(ARRAYS, (5, 256)),
    }
    # float32 would round the scalars
    assert all((columns[name] != columns[name].astype(np.float32)).all() for name in SCALARS)
    assert all(set(ARRAYS) <= set(kind.arrays) for kind in CONTESTANTS.values() if kind.package)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"a": [0.1, 0.2], "b": [0.3, 0.4]}, "exact"),
        ({"a": [0.1, 0.2], "b": [0.3, np.float32(0.4)]}, "rounded"),
        ({"a": [0.1, 0.2], "b": [0.3, 0.5]}, "not kept"),
        ({"a": [0.1, 0.2], "b": [0.3, np.nan]}, "not kept"),
        ({"a": [0.1, 0.2], "b": [0.3]}, "not kept"),
        ({"a": [0.1, 0.2]}, "not kept"),
    ],
)
def test_verdict_is_the_worst_of_the_columns(kept: dict[str, list[float]], said: str) -> None:
    logged = {"a": np.array([0.1, 0.2]), "b": np.array([0.3, 0.4])}
    assert verdict({name: np.array(values) for name, values in kept.items()}, logged, ("a", "b")) == said


def test_processor_time_is_that_of_children_too() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    before = processor_s()
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = processor_s() - before
        child.communicate("\n", timeout=20)
    assert alive > 0.25
    assert processor_s() - before >= alive - 0.02


def test_cost_is_less_that_of_the_loop_in_the_same_round() -> None:
    results = {
        Logger.title: [{"step_us": 5.0}, {"step_us": 7.0}],
        "a": [{"step_us": 15.0}, {"step_us": 27.0}],
    }
    assert net(results) == {Logger.title: [0.0, 0.0], "a": [10.0, 20.0]}


def test_what_fails_is_told_with_its_reason() -> None:
    with pytest.raises(Failure, match="negative dimensions are not allowed"):
        run_child(Logger.title, sys.executable, steps=-1, step_ms=0.0)


def test_records_are_read_across_blocks() -> None:
    block, record = 32768, bytes(range(256)) * 200
    first = block - 7 - 7
    head, tail = record[:first], record[first:]
    content = b"7 bytes" + struct.pack("<IHB", 0, len(head), 2) + head
    content += struct.pack("<IHB", 0, len(tail), 4) + tail + struct.pack("<IHB", 0, 3, 1) + b"end"
    assert list(level_db(content)) == [record, b"end"]


def test_scripts_of_the_folder_still_find_the_standard_logging() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import logging, logging.handlers;"
        "print(logging.getLogger('a').name, 'benchmarks' in logging.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["a", "False"]


@pytest.mark.slow
def test_it_starts_as_a_script_too() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "logging.py"), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "--python" in done.stdout
