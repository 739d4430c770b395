"""What the writer puts into the files, value by value."""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.support.steps import a_step, eventually, log_steps
from uwml_core.runlog.parts import parse_part_name
from uwml_core.runlog.reader import Run, open_run
from uwml_core.runlog.schema import PAIRS, STEPS, TABLES
from uwml_core.runlog.writer import NullLogger, RunLogger
from uwml_core.weighting import UWMLConfig


def one_step(root: Path, **changes: object) -> Run:
    with RunLogger(root, "run") as log:
        log.log_step(a_step(7), item_ids=[10, 11], captions=[3, 4], step=7, epoch=1, **changes)
    return open_run(root / "run")


def test_pairs_hold_every_anchor_of_both_directions_in_order(tmp_path: Path) -> None:
    rows = one_step(tmp_path).table("pairs").to_pylist()
    assert [(row["direction"], row["item_id"], row["caption"]) for row in rows] == [
        ("i2t", 10, 3),
        ("i2t", 11, 4),
        ("t2i", 10, 3),
        ("t2i", 11, 4),
    ]
    assert [(row["negative_item_id"], row["negative_caption"]) for row in rows] == [(11, 4), (10, 3)] * 2
    assert [(row["step"], row["epoch"]) for row in rows] == [(7, 1)] * 4
    assert [row["margin"] for row in rows] == [np.float32(7.3 + place) for place in (0, 1, 100, 101)]
    assert [row["gradient_share"] for row in rows] == [np.float32(7.7 + place) for place in (0, 1, 100, 101)]


def test_pairs_of_steps_with_different_batches_stay_with_their_step(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        for step, batch in enumerate([3, 1, 2]):
            ids = np.arange(batch) + 100 * step
            log.log_step(a_step(step, batch), item_ids=ids, captions=None if step else ids)
    rows = open_run(tmp_path / "run").table("pairs").to_pylist()
    assert [row["step"] for row in rows] == [0] * 6 + [1] * 2 + [2] * 4
    assert [row["item_id"] for row in rows] == [0, 1, 2, 0, 1, 2, 100, 100, 200, 201, 200, 201]
    assert [row["caption"] for row in rows] == [0, 1, 2, 0, 1, 2] + [None] * 6
    assert [row["negative_item_id"] for row in rows] == [1, 2, 0, 1, 2, 0, 100, 100, 201, 200, 201, 200]
    expected = [
        step + 0.3 + 100 * d + k for step, n in enumerate([3, 1, 2]) for d in (0, 1) for k in range(n)
    ]
    np.testing.assert_allclose([row["margin"] for row in rows], expected, rtol=1e-6)


def test_steps_hold_the_values_of_both_directions_as_float64(tmp_path: Path) -> None:
    gap = np.array([0.1, 1 / 3])
    with RunLogger(tmp_path, "run") as log:
        log.log_step(
            a_step(0, gap=torch.tensor(gap), direction_loss=gap),
            item_ids=[1, 2],
            learning_rate=0.1,
            gradient_norm=torch.tensor(2.5),
            phase="warmup",
            step_time_ms=3.5,
        )
    table = open_run(tmp_path / "run").table("steps")
    assert table.schema.field("gap_t2i").type == pa.float64()
    (row,) = table.to_pylist()
    assert (row["gap_i2t"], row["gap_t2i"]) == (0.1, 1 / 3)
    assert (row["loss"], row["loss_i2t"], row["loss_t2i"]) == (0.5, 0.1, 1 / 3)
    assert (row["learning_rate"], row["gradient_norm"], row["step_time_ms"]) == (0.1, 2.5, 3.5)
    assert (row["phase"], row["batch_size"], row["rank_count"]) == ("warmup", 2, 1)
    assert row["margin_scale_i2t"] is None
    assert row["dead_share_t2i"] is None
    assert row["telemetry_time_ms"] is None


def test_torch_and_numpy_diagnostics_give_the_same_rows(tmp_path: Path) -> None:
    plain = a_step(3, 4)
    tensors = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in vars(plain).items()}
    tables = []
    for name, last, ids in (("a", plain, np.arange(4)), ("b", a_step(3, 4, **tensors), torch.arange(4))):
        with RunLogger(tmp_path, name) as log:
            log.log_step(last, item_ids=ids, captions=ids)
        tables.append(open_run(tmp_path / name).table("pairs"))
    assert tables[0].equals(tables[1])


def test_an_array_may_be_reused_after_the_call(tmp_path: Path) -> None:
    ids = np.array([1, 2])
    with RunLogger(tmp_path, "run") as log:
        for step in range(3):
            ids[:] = step
            log.log_step(a_step(step), item_ids=ids)
    assert open_run(tmp_path / "run").frame("pairs")["item_id"].tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_anchor_without_negatives_has_no_negative_and_keeps_its_nan(tmp_path: Path) -> None:
    margin = np.array([[np.nan, 1.0], [2.0, 3.0]], np.float32)
    index = np.array([[-1, 0], [1, 0]])
    with RunLogger(tmp_path, "run") as log:
        log.log_step(a_step(0, margin=margin, negative_index=index), item_ids=[5, 6], captions=[0, 1])
    rows = open_run(tmp_path / "run").table("pairs").to_pylist()
    assert [row["negative_item_id"] for row in rows] == [None, 5, 6, 5]
    assert [row["negative_caption"] for row in rows] == [None, 0, 1, 0]
    assert math.isnan(rows[0]["margin"])
    assert [row["margin"] for row in rows[1:]] == [1.0, 2.0, 3.0]


def test_suspected_false_negative_is_a_negative_above_the_positive_by_a_tenth(tmp_path: Path) -> None:
    positive = np.array([[0.5, 0.5], [0.5, np.nan]], np.float32)
    negative = np.array([[0.5, 0.61], [0.59, 0.9]], np.float32)
    last = a_step(0, positive_similarity=positive, negative_similarity=negative)
    with RunLogger(tmp_path, "run") as log:
        log.log_step(last, item_ids=[0, 1])
    suspected = open_run(tmp_path / "run").frame("pairs")["suspected_false_negative"]
    assert suspected.tolist() == [False, True, False, False]


def test_numbers_that_are_not_finite_are_kept_and_told_once(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        for step, loss in enumerate([1.0, math.nan, math.inf, 2.0]):
            log.log_step(
                a_step(step, loss=loss), item_ids=[0, 1], gradient_norm=-math.inf if loss != loss else 1
            )
    run = open_run(tmp_path / "run")
    steps = run.table("steps").to_pylist()
    assert [row["loss"] for row in steps][2:] == [math.inf, 2.0]
    assert math.isnan(steps[1]["loss"])
    assert steps[1]["gradient_norm"] == -math.inf
    events = [(row["step"], row["level"], row["kind"]) for row in run.table("events").to_pylist()]
    assert events == [(1, "error", "non_finite"), (3, "info", "non_finite")]


def test_a_new_phase_is_an_event(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        log_steps(log, [0, 1], phase="warmup")
        log.flush()
        log_steps(log, [2], phase="warmup")
        log_steps(log, [3], phase="train")
    events = open_run(tmp_path / "run").table("events").to_pylist()
    assert [(row["step"], json.loads(row["data"])["phase"]) for row in events] == [
        (0, "warmup"),
        (3, "train"),
    ]


def test_own_scalars_become_columns_that_are_read_by_name(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        log.log_step(a_step(0), item_ids=[0, 1], auxiliary=torch.tensor(0.25))
        log.log_step(a_step(1), item_ids=[0, 1])
        log.log_step(a_step(2), item_ids=[0, 1], temperature=0.5, gap_t2i=9.0, auxiliary=np.float32(1.5))
    run = open_run(tmp_path / "run")
    assert run.table("steps").schema.names == STEPS.schema(("i2t", "t2i")).names
    rows = run.table("steps", columns=["step", "auxiliary", "temperature"]).to_pydict()
    assert rows == {"step": [0, 1, 2], "auxiliary": [0.25, None, 1.5], "temperature": [0.07, 0.07, 0.5]}
    assert run.table("steps")["gap_t2i"].to_pylist() == [-0.2, 0.8, 9.0]


class Answering:
    """Diagnostics that answer to names which nobody can list, and one whose type lists them."""

    steepness = 3.0

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    @property
    def stage_factor(self) -> float:
        return 0.5

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None


class Slotted:
    __slots__ = (*vars(a_step()),)

    def __init__(self) -> None:
        for name, value in vars(a_step(4)).items():
            setattr(self, name, value)


def test_diagnostics_of_any_kind_are_told(tmp_path: Path) -> None:
    plain = a_step(0)
    del plain.temperature, plain.gap, plain.masked_false_negatives
    with RunLogger(tmp_path, "run", flush_steps=100) as log:
        answers = {name: value for name, value in vars(a_step(2)).items() if name != "stage_factor"}
        for last in (plain, Answering(answers), Slotted()):
            log.log_step(last, item_ids=[0, 1], masked_false_negatives=2)
    rows = open_run(tmp_path / "run").table("steps").to_pydict()
    assert rows["temperature"] == [None, 0.07, 0.07]
    assert rows["steepness"] == [2.0, 3.0, 2.0]
    assert rows["stage_factor"] == [0.25, 0.5, 0.25]
    gap = [tuple(a_step(step).gap) for step in (2, 4)]
    assert list(zip(rows["gap_i2t"], rows["gap_t2i"], strict=True)) == [(None, None), *gap]
    assert rows["loss"] == [0.5, 2.5, 4.5]
    # a scalar that the schema knows keeps its type, also where no diagnostics had it
    assert rows["masked_false_negatives"] == [2, 2, 2]
    types = {part.name: part.type for part in pq.read_schema(next((log.path / "steps").glob("part-*")))}
    assert types["masked_false_negatives"] == pa.int64()


def test_steps_number_themselves_and_time_themselves(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        for _ in range(3):
            log.log_step(a_step(0), item_ids=[0, 1])
        log.log_eval(split="val", metrics=[(None, "rsum", 1.0, 2, None)])
        log.log_step(a_step(0), item_ids=[0, 1], step=9)
        log.log_step(a_step(0), item_ids=[0, 1])
    run = open_run(tmp_path / "run")
    rows = run.table("steps").to_pydict()
    assert rows["step"] == [0, 1, 2, 9, 10]
    assert [value is None for value in rows["step_time_ms"]] == [True, False, False, True, False]
    assert rows["elapsed_s"] == sorted(rows["elapsed_s"])
    assert all(value > 0 for value in rows["telemetry_time_ms"][1:])
    assert run.table("evals")["step"].to_pylist() == [2]


def test_evals_and_ranks_of_one_step_never_hide_each_other(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        for split in ("val", "test", "train"):
            log.log_eval(split=split, metrics=[("i2t", "R@1", 12.5, 8, 0.0)], step=-1)
            log.log_ranks(
                split=split,
                direction="t2i",
                item_ids=[1, 2],
                captions=[0, 1],
                ranks=[1.5, 2],
                step=-1,
                epoch=-1,
            )
            log.log_event("note", f"evaluated {split}", step=-1, größe="µ")
            log.flush()
    run = open_run(tmp_path / "run")
    assert [row["split"] for row in run.table("evals").to_pylist()] == ["val", "test", "train"]
    ranks = run.table("ranks").to_pylist()
    assert [row["split"] for row in ranks] == ["val", "val", "test", "test", "train", "train"]
    assert ranks[1] == {
        "step": -1,
        "segment": 0,
        "epoch": -1,
        "split": "val",
        "direction": "t2i",
        "item_id": 2,
        "caption": 1,
        "rank": 2.0,
    }
    events = run.table("events").to_pylist()
    assert [row["message"] for row in events] == ["evaluated val", "evaluated test", "evaluated train"]
    assert json.loads(events[0]["data"]) == {"größe": "µ"}


def test_snapshot_is_a_file_of_fixed_size_half_floats(tmp_path: Path) -> None:
    image, text = np.eye(3)[:2], torch.eye(3)[1:] / 2
    with RunLogger(tmp_path, "run") as log:
        log.log_snapshot(
            step=-1,
            epoch=None,
            embeddings={"image": image, "text": text},
            item_ids=[4, 5],
            labels=[1, 1],
            splits=["train", "val"],
        )
    run = open_run(tmp_path / "run")
    (part,) = run.parts("snapshots")
    assert (part.segment, part.first, part.last) == (0, -1, -1)
    assert pq.read_schema(part.path).field("embedding").type == pa.list_(pa.field("element", pa.float16()), 3)
    rows = run.table("snapshots").to_pylist()
    assert [(row["item_id"], row["modality"], row["split"]) for row in rows] == [
        (4, "image", "train"),
        (5, "image", "val"),
        (4, "text", "train"),
        (5, "text", "val"),
    ]
    assert [list(row["embedding"]) for row in rows] == [[1, 0, 0], [0, 1, 0], [0, 0.5, 0], [0, 0, 0.5]]


def test_files_carry_meaning_unit_and_version(tmp_path: Path) -> None:
    run = one_step(tmp_path)
    schema = pq.read_schema(run.parts("steps")[0].path)
    assert schema.metadata[b"uwml_schema_version"] == b"1"
    assert schema.metadata[b"uwml_table"] == b"steps"
    assert schema.field("gap_i2t").metadata[b"unit"] == b"cosine"
    assert b"mean margin" in schema.field("gap_i2t").metadata[b"meaning"]
    assert schema.names == STEPS.schema(("i2t", "t2i")).names


def test_columns_are_encoded_as_the_schema_says(tmp_path: Path) -> None:
    group = pq.ParquetFile(one_step(tmp_path).parts("pairs")[0].path).metadata.row_group(0)
    for index in range(group.num_columns):
        column = group.column(index)
        name = column.path_in_schema
        # nearly free, as the file is joined with others later
        assert column.compression == "LZ4"
        assert column.is_stats_set == (name in ("step", "epoch")), name
        assert column.has_dictionary_page == (name in PAIRS.dictionary), name
        assert ("BYTE_STREAM_SPLIT" in column.encodings) == (name in PAIRS.byte_stream_split), name


def test_a_full_batch_of_steps_makes_a_part_without_waiting(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", flush_seconds=3600, flush_steps=10) as log:
        log_steps(log, range(10))
        run = open_run(tmp_path / "run")
        assert eventually(lambda: run.table("steps").num_rows == 10)
        log_steps(log, range(10, 20))
        assert eventually(lambda: run.table("steps").num_rows == 20)
        assert [(part.first, part.last) for part in run.parts("pairs")] == [(0, 9), (10, 19)]


def test_a_single_step_is_readable_after_flush_seconds(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", flush_seconds=0.05) as log:
        log_steps(log, [0])
        assert eventually(lambda: open_run(log.path).table("steps").num_rows == 1)


def test_flush_makes_everything_readable(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run", flush_seconds=3600)
    log_steps(log, range(3))
    assert log.flush()
    run = open_run(tmp_path / "run")
    assert run.status == "running"
    assert run.table("steps")["step"].to_pylist() == [0, 1, 2]
    log.close()
    log.close()
    assert run.status == "finished"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "finished"),
        (RuntimeError("no"), "failed"),
        (KeyboardInterrupt(), "stopped"),
        (SystemExit(1), "stopped"),
    ],
)
def test_status_says_how_the_loop_ended(tmp_path: Path, error: BaseException | None, status: str) -> None:
    def loop() -> None:
        with RunLogger(tmp_path, "run") as log:
            log_steps(log, range(2))
            if error is not None:
                raise error

    if error is None:
        loop()
    else:
        with pytest.raises(type(error)):
            loop()
    run = open_run(tmp_path / "run")
    assert run.status == status
    assert run.table("steps").num_rows == 2
    failures = [row["message"] for row in run.table("events").to_pylist() if row["kind"] == "failure"]
    assert failures == (["RuntimeError: no"] if status == "failed" else [])


def test_a_loop_that_never_closes_keeps_its_rows(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from tests.support.steps import log_steps\n"
        "from uwml_core.runlog.writer import RunLogger\n"
        "log_steps(RunLogger(sys.argv[1], 'run', flush_seconds=3600), range(5))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=120)
    run = open_run(tmp_path / "run")
    assert run.status == "stopped"
    assert run.table("steps").num_rows == 5


def test_run_json_tells_what_was_run_but_not_where_or_by_whom(tmp_path: Path) -> None:
    home = str(Path.home())
    RunLogger(
        tmp_path,
        "run",
        name="Größe 猫 <script>",
        config={"data": {"path": f"{home}/data"}, "loss": UWMLConfig(), "odd": (1, float("nan"))},
        seed=3,
        parent="earlier",
        total_steps=9,
    ).close()
    text = (tmp_path / "run" / "run.json").read_text(encoding="utf-8")
    content = json.loads(text)
    assert content["name"] == "Größe 猫 <script>"
    assert content["config"]["loss"] == UWMLConfig().to_dict()
    assert content["config"]["odd"] == [1, "nan"]
    assert content["config"]["data"]["path"] == "~/data"
    assert (content["seed"], content["parent"], content["total_steps"]) == (3, "earlier", 9)
    assert content["directions"] == ["i2t", "t2i"]
    assert {"python", "pyarrow", "numpy", "torch"} <= set(content["packages"])
    assert [entry["first_step"] for entry in content["segments"]] == [0]
    import getpass
    import socket

    assert socket.gethostname() not in text
    assert getpass.getuser() not in json.dumps({k: v for k, v in content.items() if k != "config"})


def test_loss_configuration_alone_is_stored_under_loss(tmp_path: Path) -> None:
    RunLogger(tmp_path, "run", config=UWMLConfig(center=0.0)).close()
    assert open_run(tmp_path / "run").config["loss"]["center"] == 0.0


@pytest.mark.parametrize(
    "run_id",
    ["../x", "a/b", "a\\b", ".hidden", "_items", "", "a..b", "x" * 101, "a\0b", "/etc", "a b", "ü", 7],
)
def test_unsafe_run_id_is_refused_and_leaves_nothing(tmp_path: Path, run_id: object) -> None:
    with pytest.raises(ValueError, match="run_id="):
        RunLogger(tmp_path / "logs", run_id)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    RunLogger(tmp_path, "run").close()
    with pytest.raises(ValueError, match=r"exists in .*resume_from_step"):
        RunLogger(tmp_path, "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item_ids": [1]}, "item_ids has 1 entries for a batch of 2"),
        ({"captions": [1, 2, 3]}, "captions has 3 entries for a batch of 2"),
        ({"item_ids": [0.5, 1.0]}, "item_ids has shape .* whole number"),
        ({"item_ids": [2**31, 0]}, "item_ids runs from 0 to 2147483648"),
        ({"captions": [0, -40000]}, "captions runs from -40000"),
        ({"last": a_step(0, directions=("v2t", "t2v"))}, r"last has directions \('v2t', 't2v'\)"),
        ({"step": -1}, "step=-1 is not after step -1"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with RunLogger(tmp_path, "run") as log, pytest.raises(ValueError, match=message):
        log.log_step(**{"last": a_step(0), "item_ids": [0, 1], **changes})
    assert open_run(tmp_path / "run").table("steps").num_rows == 0


def test_a_step_may_not_come_twice(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        log_steps(log, [5])
        with pytest.raises(ValueError, match="step=5 is not after step 5"):
            log_steps(log, [5])


def test_wrong_rows_are_named(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        with pytest.raises(ValueError, match="direction='x2y' is unknown"):
            log.log_eval(split="val", metrics=[("x2y", "R@1", 1.0, 1, None)])
        with pytest.raises(ValueError, match="2 item_ids, 2 captions and 1 ranks"):
            log.log_ranks(split="val", direction="i2t", item_ids=[1, 2], captions=None, ranks=[1.0])
        with pytest.raises(ValueError, match="embeddings have shapes"):
            log.log_snapshot(embeddings={"image": np.ones((2, 3))}, item_ids=[1], labels=[1], splits="val")
        with pytest.raises(ValueError, match="status='done'"):
            log.close("done")


def test_closed_log_says_so(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run")
    log.close()
    with pytest.raises(RuntimeError, match="run 'run' is closed"):
        log_steps(log, [0])


def test_null_logger_takes_every_call_of_the_run_logger(tmp_path: Path) -> None:
    def methods(kind: type) -> set[str]:
        return {
            name
            for name, value in inspect.getmembers(kind, callable)
            if not name.startswith("_") or name in {"__enter__", "__exit__"}
        }

    assert methods(RunLogger) == methods(NullLogger)
    for name in methods(RunLogger) - {"__exit__"}:
        full = inspect.signature(getattr(RunLogger, name)).parameters
        null = inspect.signature(getattr(NullLogger, name)).parameters
        assert set(null) <= set(full) | {"values", "named", "described"}, name
    with NullLogger() as log:
        log_steps(log, range(2), phase="train", learning_rate=1.0)
        log.log_eval(split="val", metrics=[], step=1, epoch=0)
        log.log_ranks(split="val", direction="i2t", item_ids=[], captions=None, ranks=[])
        log.log_snapshot(embeddings={}, item_ids=[], labels=[], splits="val")
        log.log_event("kind", "message", level="info", extra=1)
        assert log.log_items(item_keys=[]) == ""
        assert log.flush()


def test_file_names_say_segment_and_range(tmp_path: Path) -> None:
    run = one_step(tmp_path)
    for table in ("steps", "pairs"):
        assert [p.path.name for p in run.parts(table)] == ["part-0000-000000007-000000007.parquet"]
    names = [path.name for path in (tmp_path / "run").rglob("*.parquet")]
    assert all(parse_part_name(name) for name in names)
    assert not list((tmp_path / "run").rglob(".*"))
    folders = {path.parent.relative_to(run.path).as_posix() for path in run.path.rglob("*.parquet")}
    assert set(TABLES) >= folders


def test_negatives_from_earlier_batches_are_named_by_the_memory(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "memory") as log:
        for step, memory in enumerate([(), (70, None, "seven"), (80,)]):
            # candidates 0 and 1 are the batch, the others the memory
            index = np.array([[1, 2], [-1, 3]]) if memory else np.array([[1, 0], [1, 0]])
            last = a_step(step, negative_index=index, further_item_ids=memory)
            log.log_step(last, item_ids=[10, 11], captions=[4, 5], step=step)
    rows = open_run(log.path).table("pairs").to_pylist()
    named = [(row["negative_item_id"], row["negative_caption"]) for row in rows]
    assert named[:4] == [(11, 5), (10, 4), (11, 5), (10, 4)]
    assert named[4:8] == [(11, 5), (70, None), (None, None), (None, None)]
    assert named[8:] == [(11, 5), (80, None), (None, None), (None, None)]
