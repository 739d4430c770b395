from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.loss_settings import loss_config, loss_kind, loss_unit
from uwml_core.analysis.runs import (
    LAST_STEP_COLUMNS,
    RUN_COLUMNS,
    last_step,
    run_row,
    runs_headline,
    runs_table,
    search_runs,
)

START = pd.Timestamp("2026-01-02T03:04:05", tz="UTC")


def meta(**changes):
    values = {
        "run_id": "a",
        "name": "Größe <script>",
        "status": "finished",
        "config": {"loss": {"base": "infonce"}},
        "created_at": START,
        "directions": ("i2t", "t2i"),
    }
    return SimpleNamespace(**(values | changes))


def evals():
    rows = [
        (9, "val", "i2t", "R@1", 10.0, 7),
        (9, "val", "t2i", "R@1", 20.0, 8),
        (9, "val", None, "rsum", 200.0, 15),
        (19, "val", "i2t", "R@1", 30.0, 7),
        (19, "val", "t2i", "R@1", 16.0, 8),
        (19, "val", None, "rsum", 190.0, 15),
        (19, "train", "i2t", "R@1", 99.0, 7),
    ]
    frame = pd.DataFrame(rows, columns=["step", "split", "direction", "metric", "value", "n"])
    return frame.assign(epoch=frame["step"] // 10, tied_share=0.0)


def test_row_of_a_run_with_evaluations():
    last = {"step": 19, "epoch": 1, "time": START + pd.Timedelta("90s"), "elapsed_s": 12.0}
    row = run_row(meta(), last, evals())
    assert row == {
        "run_id": "a",
        "name": "Größe <script>",
        "status": "finished",
        "loss": "UWML on InfoNCE",
        "started": START,
        "duration_s": 90.0,
        "steps": 20,
        "epoch": 1.0,
        "first_direction": "i2t",
        "second_direction": "t2i",
        "r1_first": 30.0,
        "r1_second": 20.0,
        "n_first": 7,
        "n_second": 8,
        "rsum": 200.0,
        "sparkline": [15.0, 23.0],
    }
    assert tuple(row) == RUN_COLUMNS


def test_row_of_a_run_with_nothing_logged():
    row = run_row(meta(config={}, created_at=None), None, None)
    assert (row["steps"], row["n_first"], row["sparkline"], row["loss"]) == (0, 0, [], "other")
    assert np.isnan([row["epoch"], row["duration_s"], row["r1_first"], row["rsum"]]).all()
    assert pd.isna(row["started"])


def test_duration_falls_back_on_the_monotonic_clock():
    row = run_row(meta(created_at=None), {"step": 0, "epoch": None, "time": pd.NaT, "elapsed_s": 3.5}, None)
    assert row["duration_s"] == 3.5


def test_table_without_runs_has_all_columns_and_a_headline():
    table = runs_table([])
    assert tuple(table.columns) == RUN_COLUMNS
    assert runs_headline(table) == "No runs yet: start the demo, or log your own loop with RunLogger."
    assert search_runs(table, "x").empty


def test_headline_counts_running_and_names_the_best():
    table = runs_table(
        [run_row(meta(), None, evals()), run_row(meta(run_id="b", name="b", status="running"), None, None)]
    )
    assert runs_headline(table) == (
        "2 runs, 1 running. Highest rsum on val: 200.0 by Größe <script> "
        "(R@1 30.0 % i2t, 20.0 % t2i; n = 7 and 8)."
    )


def test_headline_without_evaluations_says_so():
    table = runs_table([run_row(meta(status="stale"), None, None)])
    assert runs_headline(table) == "1 run, 0 running. No evaluation logged yet."


@pytest.mark.parametrize(
    ("text", "found"),
    [("", ["a", "b"]), ("GRÖßE", ["a"]), ("infonce running", ["b"]), ("(", []), ("  ", ["a", "b"])],
)
def test_search_takes_every_word_whatever_the_case(text, found):
    table = runs_table(
        [run_row(meta(), None, None), run_row(meta(run_id="b", name="b", status="running"), None, None)]
    )
    assert search_runs(table, text)["run_id"].tolist() == found


def test_rows_of_a_real_run(run):
    steps = run.frame("steps", columns=list(LAST_STEP_COLUMNS))
    row = run_row(run, last_step(steps), run.frame("evals"))
    assert (row["steps"], row["epoch"], row["status"], row["run_id"]) == (90, 2.0, "finished", "unicode")
    assert len(row["sparkline"]) == 3
    assert row["duration_s"] >= 0.0
    assert len(runs_table([row])) == 1


def test_last_step_of_no_rows_is_none(empty_frames):
    assert last_step(empty_frames[0]) is None


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"loss": {"base": "triplet"}}, "UWML on triplet"),
        ({"loss": {"curve": "uniform", "direction_mode": "off"}}, "InfoNCE"),
        ({"loss": {"curve": "uniform"}}, "InfoNCE, directions weighted"),
        ({"base": "triplet", "curve": "uniform", "direction_mode": "off"}, "VSE++"),
        ({"base": "triplet", "over_negatives": "sum", "curve": "uniform", "direction_mode": "off"}, "VSE0"),
        ({"base": "triplet", "over_negatives": "sum"}, "UWML on triplet sum"),
        ({"base": "sigmoid", "curve": "uniform", "direction_mode": "off"}, "SigLIP"),
        ({"base": "sigmoid", "curve": "hard"}, "hard weighting on SigLIP"),
        ({"base": "wei2020_max"}, "Wei 2020 Max"),
        ({"base": "wei2020_calibrated"}, "Wei 2020, calibrated"),
        ({"loss": {"curve": "hard"}}, "hard weighting on InfoNCE"),
        ({"loss": {"center": 99}}, "other"),
        ({"loss": "mine"}, "other"),
        ({"optimizer": {"lr": 1}}, "other"),
        ({"loss": {"modalities": 3}}, "other"),
        ({}, "other"),
    ],
)
def test_loss_kind_of_any_configuration(config, kind):
    assert loss_kind(config) == kind


def test_loss_config_takes_a_section_or_the_parameters_themselves():
    assert loss_config({"loss": {"center": 0.1}, "data": {}}).center == 0.1
    assert loss_config({"center": 0.2}).center == 0.2
    assert loss_config({"loss": {"base": "someone_else"}}) is None


def test_headline_compares_only_runs_with_the_queries_of_the_newest():
    clips = evals().assign(n=3, value=90.0)
    later = START + pd.Timedelta("1h")
    rows = [
        run_row(meta(run_id="b", name="b", created_at=later), None, evals()),
        run_row(meta(run_id="v", name="clips", directions=("v2t", "t2v")), None, clips),
        run_row(meta(run_id="c", name="c"), None, clips),
    ]
    assert runs_headline(runs_table(rows)) == (
        "3 runs, 0 running. Highest rsum on val: 200.0 by b (R@1 30.0 % i2t, 20.0 % t2i; n = 7 and 8). "
        "2 runs on other queries cannot be compared with it."
    )


@pytest.mark.parametrize(
    ("base", "unit"),
    [
        ("infonce", "nat"),
        ("sigmoid", "nat"),
        ("dcl", "nat"),
        ("hn_nce", "nat"),
        ("triplet", "cosine"),
        ("wei2020_max", ""),
        ("wei2020_calibrated", ""),
    ],
)
def test_unit_of_a_loss_follows_from_its_base(base, unit):
    assert loss_unit(loss_config({"base": base})) == unit


def test_unknown_loss_has_no_unit():
    assert loss_unit(loss_config({"optimizer": "sgd"})) == ""
