"""TensorBoard's event files as runs, against TensorBoard's own writer and reader."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util import tensor_util
from torch.utils.tensorboard import SummaryWriter

from uwml_core.__main__ import main
from uwml_core.runlog.conversion import column_names, convert_events
from uwml_core.runlog.event_files import read_event_file
from uwml_core.runlog.reader import open_run

BEGAN = 1_750_000_000.0


def write(
    folder: Path, *, steps: int = 20, first: int = 0, new_style: bool = False, began: float = BEGAN
) -> None:
    with SummaryWriter(str(folder)) as writer:
        for step in range(first, first + steps):
            time = began + step * 0.25
            writer.add_scalar("train/loss", 1 / (step + 1), step, time, new_style=new_style)
            writer.add_scalar("lr", 1e-3 * step, step, time, new_style=new_style)
            if step % 5 == 0:
                writer.add_scalar(
                    "val/R@1 ✓", math.nan if step == 5 else step, step, time, new_style=new_style
                )
        writer.add_histogram("weights", np.arange(10.0), first)
        writer.add_text("note", "hello", first)


def the_file(folder: Path) -> Path:
    (path,) = folder.glob("*tfevents*")
    return path


@pytest.mark.parametrize("new_style", [False, True])
def test_scalars_equal_those_that_tensorboard_reads(tmp_path: Path, new_style: bool) -> None:
    write(tmp_path, new_style=new_style)
    own = read_event_file(the_file(tmp_path))
    accumulator = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    for tag in ("train/loss", "lr", "val/R@1 ✓"):
        mine = [(s.step, s.wall_time, s.value) for s in own.scalars if s.tag == tag]
        if new_style:
            theirs = [
                (e.step, e.wall_time, tensor_util.make_ndarray(e.tensor_proto).item())
                for e in accumulator.Tensors(tag)
            ]
        else:
            theirs = [(e.step, e.wall_time, e.value) for e in accumulator.Scalars(tag)]
        assert len(theirs) >= 4
        np.testing.assert_array_equal(mine, theirs)
    assert own.others == {"weights", "note/text_summary"}
    assert own.problem == ""


def test_run_holds_every_scalar_in_steps(tmp_path: Path) -> None:
    write(tmp_path / "events")
    (made,) = convert_events(tmp_path / "events", tmp_path / "logs", names={"loss": "train/loss"})
    assert made.columns == {"train/loss": "loss", "lr": "lr", "val/R@1 ✓": "val_R_1"}
    assert made.left_out == ("note/text_summary", "weights")
    run = open_run(made.path)
    assert (run.run_id, run.name, run.status, run.health()) == ("events", "events", "finished", ())
    assert run.created_at == datetime.fromtimestamp(BEGAN, UTC)
    steps = run.frame("steps", columns=["step", "time", "elapsed_s", "loss", "lr", "val_R_1", "gap_i2t"])
    assert steps["step"].tolist() == list(range(20))
    assert steps["loss"].tolist() == [float(np.float32(1 / (step + 1))) for step in range(20)]
    assert steps["elapsed_s"].tolist() == [0.25 * step for step in range(20)]
    assert steps["time"].iloc[4] == datetime.fromtimestamp(BEGAN + 1, UTC)
    table = run.table("steps", columns=["val_R_1"])
    known = {step: value for step, value in enumerate(table["val_R_1"].to_pylist()) if value is not None}
    assert sorted(known) == [0, 5, 10, 15]
    assert math.isnan(known[5])
    assert steps["gap_i2t"].isna().all()
    assert run.info["converted"] == {"from": "tensorboard", "tags": made.columns}


def test_nothing_of_the_machine_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "events")
    host = the_file(tmp_path / "events").name.split(".")[4]
    (made,) = convert_events(tmp_path / "events", tmp_path / "logs")
    text = (made.path / "run.json").read_text(encoding="utf-8")
    assert f'"{host}' not in text
    assert "tfevents" not in text
    assert str(tmp_path) not in text


def test_run_that_was_restarted_keeps_the_later_values(tmp_path: Path) -> None:
    write(tmp_path / "events", steps=12)
    write(tmp_path / "events", first=8, steps=8, began=BEGAN + 100)
    (made,) = convert_events(tmp_path / "events", tmp_path / "logs")
    steps = open_run(made.path).frame("steps", columns=["step", "elapsed_s", "lr"])
    assert steps["step"].tolist() == list(range(16))
    assert steps["elapsed_s"].iloc[7] == 7 * 0.25
    assert steps["elapsed_s"].iloc[8] == 100 + 8 * 0.25


def test_each_folder_becomes_a_run(tmp_path: Path) -> None:
    for name in ("a", "b/../b/c d"):
        write(tmp_path / "events" / name, steps=3)
    for _ in range(2):
        made = convert_events(tmp_path / "events", tmp_path / "logs")
    assert [open_run(one.path).name for one in made] == ["a", "b/c d"]
    assert [one.path.name for one in made] == ["a-2", "b-c-d-2"]


def test_doubles_and_numbers_beyond_a_tensor_are_told_apart(tmp_path: Path) -> None:
    metadata = summary_pb2.SummaryMetadata(plugin_data={"plugin_name": "scalars"})
    values = {"double": np.float64(1 / 3), "list": np.ones(2, np.float32), "whole": np.int64(3)}
    writer = EventFileWriter(str(tmp_path))
    for tag, value in values.items():
        tensor = tensor_util.make_tensor_proto(value)
        entry = summary_pb2.Summary.Value(tag=tag, tensor=tensor, metadata=metadata)
        writer.add_event(event_pb2.Event(step=-1, wall_time=1.5, summary=summary_pb2.Summary(value=[entry])))
    writer.close()
    found = read_event_file(the_file(tmp_path))
    assert [tuple(scalar) for scalar in found.scalars] == [("double", -1, 1.5, 1 / 3)]
    assert found.others == {"list", "whole"}


def test_file_that_is_cut_off_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    write(tmp_path, steps=4)
    path = the_file(tmp_path)
    whole = path.read_bytes()
    everything = read_event_file(path).scalars
    counts = []
    for length in range(0, len(whole), 11):
        path.write_bytes(whole[:length])
        found = read_event_file(path)
        assert found.scalars == everything[: len(found.scalars)]
        counts.append(len(found.scalars))
    assert counts == sorted(counts)
    assert counts[0] == 0 < counts[-1]


def test_flipped_bit_ends_reading_and_never_gives_another_number(tmp_path: Path) -> None:
    write(tmp_path, steps=3)
    path = the_file(tmp_path)
    whole = path.read_bytes()
    everything = read_event_file(path).scalars
    for place in range(0, len(whole), 17):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        found = read_event_file(path)
        assert found.scalars == everything[: len(found.scalars)]
        assert found.problem or len(found.scalars) == len(everything)


def test_columns_are_safe_and_never_two_of_a_name() -> None:
    tags = ["a/b", "a b", "step", "phase", "../x", "", "猫", "loss", "epoch"]
    filled = column_names(tags, {"temperature": "a b"})
    assert filled == {
        "a b": "temperature", "": "value", "../x": "x", "a/b": "a_b", "epoch": "epoch", "loss": "loss",
        "phase": "phase_2", "step": "step_2", "猫": "value_2",
    }  # fmt: skip
    for column in ("step", "phase", "batch_size", "a/b", "Ä", ""):
        with pytest.raises(ValueError, match="cannot be filled"):
            column_names(["a b"], {column: "a b"})


def test_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "events", steps=3)
    path = the_file(tmp_path / "events")
    path.write_bytes(path.read_bytes()[:-5])
    command = ["convert", str(tmp_path / "events"), "--logs", str(tmp_path / "logs")]
    assert main([*command, "--map", "loss=train/loss"]) == 1
    shown = capsys.readouterr()
    assert shown.out.split() == [str(tmp_path / "logs" / "events")]
    assert "3 steps; loss=train/loss, lr=lr" in shown.err
    assert "file 1 of 1: cut off or damaged after" in shown.err
    for words, message in (
        (["--map", "loss"], "is no COLUMN=TAG"),
        (["--map", "loss=nothing"], "do not occur; there are lr, train/loss, val/R@1 ✓"),
    ):
        assert main([*command, *words]) == 2
        assert message in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "logs")]) == 2
    assert "holds no event files" in capsys.readouterr().err
    assert json.loads((tmp_path / "logs" / "events" / "run.json").read_text())["status"] == "finished"
