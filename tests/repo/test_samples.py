"""The committed sample runs: small, whole, honest, and the same as their own files say."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import subprocess
from pathlib import Path

import duckdb
import numpy as np
import pytest
from PIL import Image

from tests.support.synthetic import make_run
from uwml_core.analysis.controller_log import controller_log
from uwml_core.analysis.replay_validity import replay_validity
from uwml_core.analysis.training import reference_lines
from uwml_core.analysis.validity import validity
from uwml_core.projection.parameters import ProjectionParameters, chain_keys
from uwml_core.runlog.projections import read_projection
from uwml_core.runlog.reader import Run, list_runs, open_run
from uwml_core.runlog.schema import TABLES
from uwml_core.weighting import UWMLConfig

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "logs"
RUNS = ("sample-collapse", "sample-video", "sample-infonce", "sample-uwml")
LIMIT_BYTES = 12_000_000
EPOCHS = 6


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    return open_run(LOGS / request.param)


def loss_of(run: Run) -> UWMLConfig:
    return UWMLConfig.from_dict(run.config["loss"])


def committed(run: Run) -> list[Path]:
    """Files of a run and its items; what a visitor had computed since then is left out."""
    items = LOGS / "_items" / f"{run.info['data_fingerprint']}.parquet"
    present = [items, *(path for path in run.path.rglob("*") if path.is_file())]
    if not (ROOT / ".git").exists():
        return present
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "logs"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    known = {ROOT / name for name in listed.split("\0")}
    return [path for path in present if path in known]


def test_all_four_take_less_than_twelve_megabytes_with_their_items():
    files = {path for name in RUNS for path in committed(open_run(LOGS / name))}
    assert len({path for path in files if path.parent.name == "_items"}) == 2
    assert sum(path.stat().st_size for path in files) < LIMIT_BYTES


def test_a_sample_run_is_finished_and_healthy(run):
    assert run.status == "finished"
    assert run.health() == ()
    assert run.run_id == run.name == run.path.name
    # made before there were rollups, which are then counted from the pairs
    for table in set(TABLES) - {"rollups/margins", "rollups/items"}:
        assert run.has(table), table
    steps = run.table("steps", columns=["step"])["step"].to_numpy()
    assert steps.tolist() == list(range(run.total_steps))


def test_the_one_shown_first_is_the_method_itself():
    newest = next(found for found in list_runs(LOGS) if found.run_id in RUNS)
    assert newest.run_id == "sample-uwml"


def test_each_is_what_its_name_says():
    loss = {name: loss_of(open_run(LOGS / name)) for name in RUNS}
    assert (loss["sample-uwml"].curve, loss["sample-uwml"].direction_mode) == ("bell", "adaptive")
    assert (loss["sample-video"].curve, loss["sample-video"].directions) == ("bell", ("v2t", "t2v"))
    assert (loss["sample-infonce"].curve, loss["sample-infonce"].direction_mode) == ("uniform", "off")
    assert (loss["sample-collapse"].base, loss["sample-collapse"].curve) == ("triplet", "uniform")


def test_a_sample_run_holds_only_what_is_read(run):
    allowed = re.compile(
        r"run\.json|projections/[0-9a-f]{32}\.parquet|"
        rf"({'|'.join(TABLES)})/part-0000-.\d{{8}}-.\d{{8}}\.parquet"
    )
    names = [path.relative_to(run.path).as_posix() for path in committed(run)[1:]]
    assert "run.json" in names
    assert not [name for name in names if not allowed.fullmatch(name)]
    for table in ("steps", "pairs", "evals", "ranks", "events"):
        assert len(run.parts(table)) == 1, table
    for table in ("snapshots", "neighbors"):
        assert len(run.parts(table)) == EPOCHS + 1, table


def test_no_path_host_or_user_is_told(run):
    info = json.dumps(run.info)
    told = [info, *run.frame("events")["message"], *run.frame("events")["data"]]
    for text in told:
        assert not re.search(r"(?<![\w.+:])[/~]\w|\\\\|[A-Za-z]:\\|@", text), text
    assert not {"host", "hostname", "user", "cwd"} & set(run.info)
    assert run.config["run"]["root"] == "logs"


def test_evaluations_follow_from_the_ranks(run):
    found = duckdb.sql(
        f"""
        SELECT step, direction::VARCHAR, count(*), 100 * avg((rank <= 1)::INT), 100 * avg((rank <= 5)::INT),
            100 * avg((rank <= 10)::INT), median(rank), avg(rank)
        FROM '{run.path}/ranks/*.parquet' GROUP BY ALL
        """
    ).fetchall()
    logged = {
        (step, direction, metric): (value, n)
        for step, direction, metric, value, n in duckdb.sql(
            f"SELECT step, direction::VARCHAR, metric, value, n FROM '{run.path}/evals/*.parquet'"
        ).fetchall()
    }
    assert len(found) == 2 * (EPOCHS + 1)
    for step, direction, n, *values in found:
        for metric, value in zip(("R@1", "R@5", "R@10", "median_rank", "mean_rank"), values, strict=True):
            assert logged[step, direction, metric] == (pytest.approx(value, rel=1e-6), n)


def test_logged_weights_are_those_of_the_parameters(run):
    checked = validity(run.table("pairs"), run.frame("steps"), loss_of(run), run.directions)
    assert checked.n == run.table("pairs", columns=["step"]).num_rows
    assert checked.ok, checked.reason
    replayed = replay_validity(controller_log(run.frame("steps"), run.directions), loss_of(run))
    assert replayed.ok, replayed.reason
    assert replayed.n == run.total_steps


def last_epoch_against_reference(name: str) -> float:
    run = open_run(LOGS / name)
    steps = run.frame("steps")
    line = reference_lines(loss_of(run), steps)["value"].item()
    return float(steps.loc[steps["epoch"] == EPOCHS - 1, "loss"].mean()) / line


def last_recall(name: str) -> list[float]:
    evals = open_run(LOGS / name).frame("evals")
    last = evals[(evals["step"] == evals["step"].max()) & (evals["metric"] == "R@1")]
    return sorted(last["value"])


def test_the_collapsed_run_stays_at_its_plateau_and_the_others_leave_theirs():
    assert 0.97 < last_epoch_against_reference("sample-collapse") < 1.05
    assert last_recall("sample-collapse")[1] < 5
    for name in ("sample-uwml", "sample-infonce", "sample-video"):
        assert last_epoch_against_reference(name) < 0.6, name
        assert last_recall(name)[0] > 15, name


def test_where_pairs_are_wrong_the_weighting_finds_more():
    ours, plain = (sum(last_recall(name)) / 2 for name in ("sample-uwml", "sample-infonce"))
    assert ours > plain + 8
    for name in ("sample-uwml", "sample-infonce", "sample-collapse"):
        assert open_run(LOGS / name).config["data"]["swapped"] == 0.4


def test_every_item_of_the_log_is_among_the_items(run):
    items = run.items()
    assert items is not None
    for table in ("pairs", "ranks", "snapshots", "neighbors"):
        columns = [
            name for name in ("item_id", "negative_item_id") if name in TABLES[table].schema(("", "")).names
        ]
        for column in columns:
            logged = run.table(table, columns=[column])[column].drop_null().unique().to_numpy()
            assert np.isin(logged, items["item_id"]).all(), (table, column)
    picture = items["thumbnail"].iloc[len(items) // 2]
    with Image.open(io.BytesIO(picture)) as image:
        assert image.size == ((160, 40) if run.modalities[0] == "video" else (48, 48))


@pytest.mark.parametrize("method", ["umap", "pca"])
def test_the_map_is_laid_out_already(run, method):
    key = chain_keys(run, ProjectionParameters(method=method))[-1]
    layout = read_projection(run.path / "projections" / f"{key}.parquet")
    assert layout is not None
    assert len(layout) == run.table("snapshots", columns=["step"]).num_rows
    assert np.isfinite(layout[["x", "y"]].to_numpy()).all()


def script():
    spec = importlib.util.spec_from_file_location("sample_runs", ROOT / "docs" / "sample_runs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_makes_these_runs():
    assert tuple(script().RUNS) == RUNS
    assert script().LIMIT_BYTES == LIMIT_BYTES


def test_merging_parts_changes_no_row(tmp_path):
    path = make_run(tmp_path, steps=60, batch=8, epochs=3)
    before = {name: open_run(path).table(name) for name in TABLES}
    script().merge_parts(path)
    after = open_run(path)
    assert not after.health()
    for name, table in before.items():
        assert after.table(name).equals(table), name
    assert len(after.parts("pairs")) == len(after.parts("evals")) == 1
