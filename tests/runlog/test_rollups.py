"""Rollups equal a recount from the raw rows, whatever happened to the run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.rollups import assert_rollups_equal_recount, assert_same, recounted
from tests.support.steps import a_step, eventually, log_batches
from tests.support.synthetic import make_run
from uwml_core.runlog import rollup_log
from uwml_core.runlog.info import RunInfo
from uwml_core.runlog.reader import Run, open_run
from uwml_core.runlog.rollups import ROLLUPS
from uwml_core.runlog.settling import merged_until
from uwml_core.runlog.writer import RunLogger


def ranges(run: Run, table: str) -> list[tuple[int, int, int]]:
    return [(part.segment, part.first, part.last) for part in run.parts(table)]


def test_values_by_hand(tmp_path: Path) -> None:
    margin = np.array([[0.104, 0.106], [-0.5, math.nan]], np.float32)
    weight = np.array([[0.5, 1.5], [2.0, 0.0]], np.float32)
    loss = np.array([[math.log(2), math.inf], [0.0, 1.0]], np.float32)
    share = np.array([[0.25, 0.75], [math.nan, 0.0]], np.float32)
    with RunLogger(tmp_path, "run") as log:
        last = a_step(0, margin=margin, weight=weight, pair_loss=loss, gradient_share=share)
        log.log_step(last, item_ids=[7, 7], epoch=13)
    run = open_run(tmp_path / "run")
    rows = run.rollup("margins").to_pylist()
    found = [(row["epoch"], row["direction"], row["bin"], row["count"]) for row in rows]
    assert found == [(13, "i2t", 210, 2), (13, "t2i", 150, 1), (13, "t2i", None, 1)]
    first = rows[0]
    assert (first["weight_sum"], first["weight_sq_sum"], first["gradient_share_sum"]) == (2.0, 2.5, 1.0)
    assert first["one_minus_p_sum"] == pytest.approx(0.5)
    assert [row["no_pair_loss_count"] for row in rows] == [1, 0, 0]
    assert [row["no_gradient_share_count"] for row in rows] == [0, 1, 0]
    assert [row["weight_sum"] for row in rows] == [2.0, 2.0, 0.0]
    items = run.rollup("items").to_pylist()
    assert [(row["epoch"], row["direction"], row["item_id"], row["n"]) for row in items] == [
        (10, "i2t", 7, 2),
        (10, "t2i", 7, 1),
    ]
    assert items[0]["margin_mean"] == pytest.approx(0.105)
    assert items[0]["margin_min"] == np.float32(0.104)
    assert items[0]["margin_spread"] == pytest.approx(0.001, rel=1e-5)
    assert (items[0]["weight_mean"], items[1]["weight_mean"]) == (1.0, 1.0)
    assert (items[1]["margin_mean"], items[1]["margin_spread"], items[1]["no_margin_count"]) == (-0.5, 0.0, 1)


@pytest.mark.parametrize(
    ("margin", "bin_"),
    [
        (-2.0, 0),
        (2.0, 399),
        (np.nextafter(np.float32(2), np.float32(3)), 400),
        (np.nextafter(np.float32(-2), np.float32(-3)), -1),
        (0.0, 200),
        (-1e-7, 199),
        (1e30, 400),
        (math.inf, None),
        (-math.inf, None),
    ],
)
def test_edges_of_the_bins(tmp_path: Path, margin: float, bin_: int | None) -> None:
    with RunLogger(tmp_path, "run") as log:
        log.log_step(a_step(0, 1, margin=np.full((2, 1), margin, np.float32)), item_ids=[0])
    run = open_run(tmp_path / "run")
    assert run.rollup("margins")["bin"].to_pylist() == [bin_, bin_]
    assert_rollups_equal_recount(run)


def test_item_without_a_finite_number_has_counts_and_no_statistics(tmp_path: Path) -> None:
    bad = np.full((2, 1), math.nan, np.float32)
    with RunLogger(tmp_path, "run") as log:
        log.log_step(a_step(0, 1, margin=bad, weight=bad), item_ids=[3])
    run = open_run(tmp_path / "run")
    row = run.rollup("items").to_pylist()[0]
    statistics = ("margin_mean", "margin_min", "margin_spread", "weight_mean")
    assert [row[name] for name in statistics] == [None] * 4
    assert (row["epoch"], row["n"], row["no_margin_count"], row["no_weight_count"]) == (None, 0, 1, 1)
    assert_rollups_equal_recount(run)


def test_spread_of_nearly_equal_margins_keeps_its_digits(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", flush_steps=3) as log:
        for step in range(30):
            margin = np.full((2, 1), 0.7 + 1e-6 * (step % 2), np.float32)
            log.log_step(a_step(step, 1, margin=margin), item_ids=[0], epoch=0)
            if step % 7 == 0:
                log.flush()
    run = open_run(tmp_path / "run")
    assert len(run.parts("rollups/items")) >= 1
    spread = run.rollup("items")["margin_spread"].to_pylist()[0]
    values = run.table("pairs")["margin"].to_numpy().astype(np.float64)
    assert spread == pytest.approx(values.std(), rel=1e-9)
    assert 1e-7 < spread < 1e-6


def test_synthetic_run_with_a_resume_equals_its_recount(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, nan_steps=(5,), lonely_steps=(3,), resume_at=30))
    assert run.table("rollups/margins").num_rows
    assert_rollups_equal_recount(run)


@pytest.mark.parametrize("flush_steps", [1, 7, 1000])
def test_any_flush_rhythm_gives_the_same_rollups(tmp_path: Path, flush_steps: int) -> None:
    with RunLogger(tmp_path, "run", flush_steps=flush_steps) as log:
        log_batches(log, range(60))
    run = open_run(tmp_path / "run")
    assert_rollups_equal_recount(run)
    # all of it is covered: nothing is left for a recount
    assert sum(run.table("rollups/margins")["count"].to_pylist()) == run.table("pairs").num_rows


def test_a_run_without_rollups_is_counted_from_its_pairs(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run") as log:
        log_batches(log, range(20))
    run = open_run(tmp_path / "run")
    before = [run.rollup(name) for name in ("margins", "items")]
    for path in (run.path / "rollups").rglob("*.parquet"):
        path.unlink()
    assert not run.has("rollups/margins")
    for name, earlier in zip(("margins", "items"), before, strict=True):
        assert_same(run.rollup(name).to_pandas(), earlier.to_pandas())
    assert_rollups_equal_recount(run)


def test_a_resume_at_a_flush_drops_whole_stretches(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run", pairs_every=4)
    log_batches(log, range(13), per_epoch=100)
    log.flush()
    log_batches(log, range(13, 20), per_epoch=100)
    log.close()
    assert ranges(Run(log.path), "rollups/items") == [(0, 0, 19)]
    with RunLogger(tmp_path, "run", resume_from_step=13, pairs_every=4) as log:
        log_batches(log, range(13, 25), per_epoch=100)
    run = open_run(tmp_path / "run")
    with RunLogger(tmp_path, "whole") as whole:
        log_batches(whole, range(25), per_epoch=100)
    # thinned pairs cannot be counted again, so this is exact because of the cut alone
    raw = open_run(whole.path).table("pairs")
    for name in ("margins", "items"):
        assert_same(run.rollup(name).to_pandas(), recounted(raw, name))


def test_a_resume_inside_a_stretch_is_counted_from_the_raw_rows(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", flush_steps=6) as log:
        log_batches(log, range(40), per_epoch=100)
    with RunLogger(tmp_path, "run", resume_from_step=27) as log:
        log_batches(log, range(27, 31), per_epoch=100)
    with RunLogger(tmp_path, "run", resume_from_step=15) as log:
        log_batches(log, range(15, 35), per_epoch=100)
    run = open_run(tmp_path / "run")
    assert run.table("pairs").num_rows == 35 * 16
    assert_rollups_equal_recount(run)


def test_what_is_behind_the_last_file_is_counted_while_the_run_goes_on(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run", flush_seconds=3600, flush_steps=4)
    run = Run(log.path)
    seen = 0
    for first in range(0, 80, 4):
        log_batches(log, range(first, first + 4), per_epoch=30)
        assert eventually(lambda steps=first + 4: run.table("steps").num_rows == steps)
        assert_rollups_equal_recount(run)
        rows = sum(run.rollup("margins")["count"].to_pylist())
        assert rows >= seen
        seen = rows
    log.close()
    assert sum(run.rollup("margins")["count"].to_pylist()) == 80 * 16


def test_growing_stretch_leaves_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup_log.RollupLog.__init__, "__defaults__", (1,))
    log = RunLogger(tmp_path, "run", flush_seconds=3600, flush_steps=2, pairs_every=2)
    log_batches(log, range(12), per_epoch=100)
    log.flush()
    assert ranges(Run(log.path), "rollups/margins") == [(0, 0, 11)]
    assert [path.name for path in (log.path / "rollups" / "items").iterdir()] == [
        "part-0000-000000000-000000011.parquet"
    ]
    log.close()


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_thinned_pairs_are_those_of_each_kth_step_and_rollups_count_all(tmp_path: Path, every: int) -> None:
    for run_id, thinning in (("thin", every), ("whole", 1)):
        with RunLogger(tmp_path, run_id, pairs_every=thinning, flush_steps=4) as log:
            log_batches(log, range(30))
    thin, whole = open_run(tmp_path / "thin"), open_run(tmp_path / "whole")
    kept = whole.table("pairs").filter(pa.array(np.arange(30).repeat(16) % every == 0))
    assert thin.table("pairs").equals(kept)
    assert thin.table("steps").num_rows == 30
    for name in ("margins", "items"):
        assert_same(thin.rollup(name).to_pandas(), recounted(whole.table("pairs"), name))
    assert [entry["pairs_every"] for entry in thin.info["segments"]] == [every]


def test_pairs_every_must_be_a_number_of_steps(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pairs_every=0: expected 1"):
        RunLogger(tmp_path, "run", pairs_every=0)
    assert list(tmp_path.iterdir()) == []


def test_every_process_counts_its_own(tmp_path: Path) -> None:
    logs = [RunLogger(tmp_path, "run", rank=rank, world_size=3, flush_steps=5) for rank in range(3)]
    for log in logs:
        log_batches(log, range(25))
        log.close()
    run = open_run(tmp_path / "run")
    assert set(run.table("rollups/items")["process"].to_pylist()) == {0, 1, 2}
    assert_rollups_equal_recount(run)
    assert sum(run.rollup("margins")["count"].to_pylist()) == 25 * 3 * 16


def test_one_query_over_the_files_gives_the_histogram(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run", flush_steps=5) as log:
        log_batches(log, range(25))
    run = open_run(tmp_path / "run")
    files = [str(part.path) for part in run.parts("rollups/margins")]
    whole = pa.concat_tables([pq.read_table(file) for file in files])
    counts = whole.group_by(["epoch", "direction"]).aggregate([("count", "sum")])
    assert counts["count_sum"].to_pylist() == [40] * 10
    assert pc.sum(whole["count"]).as_py() == 25 * 16


def test_a_filter_over_the_keys_gives_some_of_the_rows(tmp_path: Path) -> None:
    log = RunLogger(tmp_path, "run", flush_steps=5)
    log_batches(log, range(25))
    log.flush()
    log_batches(log, range(25, 29))
    run = Run(log.path)
    assert eventually(lambda: run.table("steps").num_rows == 29)
    chosen = (pc.field("epoch") == 0) & (pc.field("direction") == "t2i")
    for name in ("margins", "items"):
        whole = run.rollup(name)
        assert run.rollup(name, filter=chosen).equals(whole.filter(chosen))
        assert 0 < run.rollup(name, filter=chosen).num_rows < whole.num_rows
    log.close()


@pytest.mark.parametrize("name", ["margins", "items"])
def test_chosen_columns_are_those_of_the_whole_rollup(tmp_path: Path, name: str) -> None:
    log = RunLogger(tmp_path, "run", flush_steps=5)
    # a settled window, one in several stretches, and steps that no file counts yet
    log_batches(log, range(125))
    log.flush()
    log_batches(log, range(125, 132))
    run = Run(log.path)
    assert eventually(lambda: run.table("steps").num_rows == 132)
    whole = run.rollup(name)
    keys = ROLLUPS[name].keys
    for column in whole.column_names:
        found = run.rollup(name, columns=[column])
        assert {*keys, column} <= {*found.column_names}
        assert found.equals(whole.select(found.column_names))
        assert run.rollup(name, columns=[]).num_rows == whole.num_rows
    log.close()
    with pytest.raises(
        ValueError, match=r"columns \['first_step'\] are unknown; rollups/.* has epoch, direc"
    ):
        run.rollup(name, columns=["first_step"])


def test_only_what_is_in_pieces_or_out_of_order_is_merged() -> None:
    def until(*epochs: int) -> int:
        rows = {"epoch": np.array(epochs), "direction": np.zeros(len(epochs), int)}
        return merged_until(ROLLUPS["margins"], rows | {"bin": np.arange(len(epochs)) % 2})

    # two bins an epoch
    assert until() == 0
    assert until(0, 0, 1, 1, 2, 2) == 6
    assert until(0, 0, 1, 1, 1, 1) == 2
    assert until(0, 0, 3, 3, 1, 1) == 2
    assert until(1, 1, 2, 2, 0, 0) == 0
    assert until(0, 0, 1, 1, 2, 2, 1) == 2


def test_unknown_rollup_is_named(tmp_path: Path) -> None:
    with RunLogger(tmp_path, "run"):
        pass
    with pytest.raises(ValueError, match="rollup='pairs' is unknown; choose one of margins, items"):
        open_run(tmp_path / "run").rollup("pairs")
    assert open_run(tmp_path / "run").rollup("items").num_rows == 0


class Overtaken(Run):
    """A run whose rollup files are put in place between two looks at them, as a writer may do."""

    def map_parts(self, table: str, function: Any, *, columns: Any = None) -> Any:
        found = super().map_parts(table, function, columns=columns)
        for hidden in self.path.glob("rollups/*/.later-*"):
            hidden.rename(hidden.with_name(hidden.name.removeprefix(".later-")))
        return found


def test_a_rollup_that_is_written_meanwhile_is_not_counted_twice(tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=60, epochs=3)
    for path in folder.glob("rollups/*/*.parquet"):
        path.rename(path.with_name(f".later-{path.name}"))
    run = Overtaken(folder)
    rows = run.table("pairs").num_rows
    assert rows > 0
    assert sum(run.rollup("margins")["count"].to_pylist()) == rows
    assert sum(run.rollup("margins")["count"].to_pylist()) == rows


def test_the_limits_of_many_segments_are_those_of_a_plain_search() -> None:
    random = np.random.default_rng(0)
    firsts = random.integers(0, 1000, 200).tolist()
    segments = [{"segment": number, "first_step": first} for number, first in enumerate(firsts)]
    limits = RunInfo({"segments": segments}).limits()
    assert limits == {number: min(firsts[number + 1 :]) for number in range(len(firsts) - 1)}
    assert RunInfo({"segments": segments[:1]}).limits() == {}
