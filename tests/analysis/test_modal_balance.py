"""Modal balance recomputed by another engine from the files, and on logs that fit on a screen."""

import dataclasses

import duckdb
import numpy as np
import pandas as pd
import pytest

from tests.support.synthetic import make_run
from uwml_core.analysis.controller_log import balance_columns
from uwml_core.analysis.lag import find_lag
from uwml_core.analysis.modal_balance import (
    CONTROLLER_PARAMETERS,
    balance_headline,
    balance_in_use,
    lag_mark,
    modal_balance,
    try_controller,
    updates_note,
)
from uwml_core.runlog.reader import open_run
from uwml_core.weighting import DirectionController, UWMLConfig

DIRECTIONS = ("i2t", "t2i")
IN_USE = UWMLConfig()
TRIED = UWMLConfig(window=15, update_every=4, smoothing=0.5, sensitivity=0.02)


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    folder = make_run(tmp_path_factory.mktemp("logs"), steps=240, epochs=4, batch=24)
    run = open_run(folder)
    return folder, run.frame("steps", columns=balance_columns(run.directions))


@pytest.fixture(scope="module")
def query(logged):
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW steps AS SELECT * FROM '{logged[0] / 'steps' / '*.parquet'}'")
    return lambda sql: np.array(connection.execute(sql).fetchall(), dtype=float)


def line(balance, quantity, name, direction):
    frame = balance.lines.frame if quantity in ("gap", "weight") else balance.contributions.frame
    rows = (frame["quantity"] == quantity) & (frame["line"] == name) & (frame["direction"] == direction)
    return frame[rows]


def steps_frame(**columns):
    n = len(next(iter(columns.values())))
    return pd.DataFrame({"step": np.arange(n), "epoch": 0, "batch_size": 8, **columns})


def test_gaps_weights_and_window_means_are_those_of_the_files(logged, query):
    balance = modal_balance(logged[1], IN_USE, TRIED, DIRECTIONS)
    for direction in DIRECTIONS:
        rows = query(
            f"""SELECT step, gap_{direction}, direction_weight_{direction}, gap_window_{direction},
            avg(gap_{direction}) OVER (ORDER BY step ROWS 14 PRECEDING),
            count(*) OVER (ORDER BY step ROWS 14 PRECEDING) FROM steps ORDER BY step"""
        )
        raw, weight = line(balance, "gap", "raw", direction), line(balance, "weight", "before", direction)
        assert raw["step"].tolist() == rows[:, 0].tolist()
        assert raw["value"].tolist() == rows[:, 1].tolist()
        assert weight["value"].tolist() == rows[:, 2].tolist()
        np.testing.assert_allclose(line(balance, "gap", "before", direction)["value"], rows[:, 3], rtol=1e-12)
        tried = line(balance, "gap", "after", direction)
        np.testing.assert_allclose(tried["value"], rows[:, 4], rtol=1e-11)
        assert tried["n"].tolist() == rows[:, 5].tolist()


def test_summary_is_recomputed_from_the_files(logged, query):
    summary = modal_balance(logged[1], IN_USE, TRIED, DIRECTIONS).summary.set_index("direction")
    for direction in DIRECTIONS:
        row = summary.loc[direction]
        want = query(
            f"""WITH s AS (SELECT step, direction_weight_{direction} AS w,
                100 * direction_weight_{direction} * loss_{direction}
                    / (direction_weight_i2t * loss_i2t + direction_weight_t2i * loss_t2i) AS share,
                abs(w - lag(w) OVER (ORDER BY step)) AS move
                FROM steps)
            SELECT arg_max(w, step), avg(w), stddev_samp(w), 100 * avg(move), avg(share), stddev_samp(share),
                count(share) FROM s"""
        )[0]
        names = ["weight_last", "weight_mean", "weight_sd", "jitter", "share_mean", "share_sd", "share_steps"]
        np.testing.assert_allclose([row[f"{name}_before"] for name in names], want, rtol=1e-9)
        spread = query(
            f"""SELECT stddev_samp(tv), count(*) FROM (SELECT sum(move) AS tv FROM (
                SELECT step, abs(direction_weight_{direction}
                    - lag(direction_weight_{direction}) OVER (ORDER BY step)) AS move FROM steps)
                WHERE step BETWEEN 1 AND 200 GROUP BY (step - 1) // 100)"""
        )[0]
        np.testing.assert_allclose(
            [row["jitter_sd_before"], row["jitter_stretches_before"]], spread, rtol=1e-9
        )
        assert (row["updates_before"], row["updates_after"], row["steps"]) == (24, 60, 240)


def test_contributions_add_up_to_the_logged_loss(logged, query):
    balance = modal_balance(logged[1], IN_USE, IN_USE, DIRECTIONS)
    window = 240 // 50
    rows = query(
        f"""SELECT avg(direction_weight_i2t * loss_i2t) OVER w, avg(direction_weight_t2i * loss_t2i) OVER w,
        avg(loss) OVER w FROM steps WINDOW w AS (ORDER BY step ROWS {window - 1} PRECEDING) ORDER BY step"""
    )
    got = [line(balance, "contribution", "after", d)["value"].to_numpy() for d in DIRECTIONS]
    np.testing.assert_allclose(np.column_stack(got), rows[:, :2], rtol=1e-10)
    np.testing.assert_allclose(sum(got), rows[:, 2], rtol=1e-10)
    share = [line(balance, "share", "after", d)["value"].to_numpy() for d in DIRECTIONS]
    np.testing.assert_allclose(sum(share), 100.0)


def test_lag_is_recomputed_from_the_files(logged, query):
    lag = find_lag(modal_balance(logged[1], IN_USE, IN_USE, DIRECTIONS).log)
    first = lag.first_step
    mean, n = query(f"SELECT avg(gap_i2t) - avg(gap_t2i), count(*) FROM steps WHERE step >= {first}")[0]
    assert (lag.lagging, lag.behind.n) == (1, n)
    assert lag.behind.mean == pytest.approx(mean, rel=1e-10)


def test_tried_weights_are_those_of_a_live_controller(logged):
    balance = modal_balance(logged[1], IN_USE, TRIED, DIRECTIONS)
    controller = DirectionController.from_config(TRIED)
    gaps = logged[1][["gap_i2t", "gap_t2i"]].to_dict("records")
    live = [controller.update({"i2t": row["gap_i2t"], "t2i": row["gap_t2i"]}) for row in gaps]
    for direction in DIRECTIONS:
        got = line(balance, "weight", "after", direction)
        assert got["value"].tolist() == [row[direction] for row in live]
        assert got["n"].tolist() == [(k + 1) // 4 for k in range(240)]
    assert balance.updates["step"].tolist() == list(range(3, 240, 4))
    assert balance.updates["shown"].all()
    assert updates_note(balance.updates) == ""


def test_nothing_tried_leaves_the_ghost_out(logged):
    balance = modal_balance(logged[1], IN_USE, IN_USE, DIRECTIONS)
    assert balance.unchanged
    assert set(balance.lines.frame["line"]) == {"raw", "after"}
    assert set(balance.contributions.frame["line"]) == {"after"}


def test_parameters_of_the_curve_do_not_count_as_tried(logged):
    curve = dataclasses.replace(IN_USE, curve="hard", center=0.3)
    assert modal_balance(logged[1], IN_USE, curve, DIRECTIONS).unchanged
    assert not modal_balance(logged[1], IN_USE, TRIED, DIRECTIONS).unchanged


@pytest.mark.parametrize("name", CONTROLLER_PARAMETERS)
def test_each_parameter_of_the_controller_counts_as_tried(logged, name):
    other = {"direction_mode": "fixed", "window": 7, "update_every": 3}.get(name, 0.3)
    balance = modal_balance(logged[1], IN_USE, dataclasses.replace(IN_USE, **{name: other}), DIRECTIONS)
    assert not balance.unchanged


def test_long_runs_are_thinned_and_say_so():
    n, random = 5000, np.random.default_rng(0)
    gap = random.normal(0.1, 0.01, (n, 2))
    gap[1234, 0] = 5.0
    gap[7, 1] = np.nan
    steps = steps_frame(gap_i2t=gap[:, 0], gap_t2i=gap[:, 1])
    balance = modal_balance(
        steps, IN_USE, dataclasses.replace(IN_USE, update_every=1), DIRECTIONS, max_points=100
    )
    raw = line(balance, "gap", "raw", "i2t")
    assert {0, 1234, n - 1} <= set(raw["step"])
    assert len(raw) <= 100
    assert balance.lines.note.endswith("of 40,000 points; 1 value is not finite, marked at the edge")
    assert np.isnan(line(balance, "gap", "raw", "t2i").set_index("step").loc[7, "value"])
    assert len(balance.updates) == n - 1
    assert balance.updates["shown"].sum() <= 200
    assert updates_note(balance.updates) == "200 of 4,999 updates marked"


def test_range_of_a_long_run_is_drawn_step_by_step():
    n, random = 5000, np.random.default_rng(0)
    gap = random.normal(0.1, 0.01, (n, 2))
    gap[2_050, 1] = np.nan
    steps = steps_frame(gap_i2t=gap[:, 0], gap_t2i=gap[:, 1])
    tried = dataclasses.replace(IN_USE, update_every=1)
    in_use = balance_in_use(steps, IN_USE, DIRECTIONS, max_points=100)
    whole, balance = try_controller(in_use, tried), try_controller(in_use, tried, (2_000.0, 2_079.0))
    every = modal_balance(steps, IN_USE, tried, DIRECTIONS, max_points=n)
    for quantity, name in (("gap", "raw"), ("weight", "before"), ("weight", "after"), ("gap", "after")):
        rows, around, known = (line(each, quantity, name, "t2i") for each in (balance, whole, every))
        inner = rows[rows["step"].between(2_000, 2_079)]
        assert inner["step"].tolist() == list(range(2_000, 2_080))
        expected = known[known["step"].between(2_000, 2_079)]
        np.testing.assert_array_equal(inner[["value", "n"]], expected[["value", "n"]])
        outer, before = (f[~f["step"].between(2_000, 2_079)] for f in (rows, around))
        assert outer["step"].tolist() == before["step"].tolist()
    assert balance.lines.note.startswith("639 of 640 points in steps 2,000 to 2,079; 1 value is not finite")
    updates = balance.updates[balance.updates["step"].between(2_000, 2_079)]
    assert updates["shown"].all()
    pd.testing.assert_frame_equal(balance.summary, whole.summary)


def test_weights_that_were_not_logged_are_those_of_the_parameters_in_use():
    gap = np.column_stack([np.full(60, 0.3), np.full(60, 0.1)])
    steps = steps_frame(gap_i2t=gap[:, 0], gap_t2i=gap[:, 1])
    balance = modal_balance(steps, IN_USE, TRIED, DIRECTIONS)
    assert line(balance, "weight", "before", "t2i")["value"].iloc[-1] > 0.5
    assert balance.contributions.frame.empty
    assert balance.summary["share_mean_after"].isna().all()
    assert "No direction weight was logged." in balance_headline(
        find_lag(balance.log), modal_balance(steps, IN_USE, IN_USE, DIRECTIONS), IN_USE, DIRECTIONS
    )


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_step_is_no_error(n):
    steps = steps_frame(
        gap_i2t=np.full(n, 0.2), gap_t2i=np.full(n, 0.1), direction_weight_i2t=np.full(n, 0.5)
    )
    balance = modal_balance(steps, IN_USE, TRIED, DIRECTIONS)
    text = balance_headline(find_lag(balance.log), balance, TRIED, DIRECTIONS)
    assert text.startswith("Too little data yet to say which direction lags")


def test_loss_of_zero_has_no_shares():
    steps = steps_frame(
        gap_i2t=[0.1, 0.2], gap_t2i=[0.1, 0.1], loss_i2t=[0.0, 1.0], loss_t2i=[0.0, 3.0],
        direction_weight_i2t=[0.5, 0.5], direction_weight_t2i=[0.5, 0.5],
    )  # fmt: skip
    summary = modal_balance(steps, IN_USE, IN_USE, DIRECTIONS).summary.set_index("direction")
    assert summary.loc["i2t", "share_mean_before"] == 25.0
    assert summary.loc["t2i", "share_steps_before"] == 1


def headline(ahead, epochs, before=IN_USE, after=IN_USE, **columns):
    random = np.random.default_rng(5)
    base = random.normal(0.1, 0.02, len(ahead))
    gap = np.column_stack([base + ahead + random.normal(0, 0.01, len(ahead)), base])
    weights = DirectionController.from_config(before).update_many(gap)
    steps = steps_frame(
        gap_i2t=gap[:, 0],
        gap_t2i=gap[:, 1],
        direction_weight_i2t=weights[:, 0],
        direction_weight_t2i=weights[:, 1],
    ).assign(epoch=epochs)
    balance = modal_balance(steps, before, after, DIRECTIONS)
    lag = find_lag(balance.log)
    return balance_headline(lag, balance, after, DIRECTIONS), lag_mark(lag)


def test_headline_names_direction_distance_and_epoch():
    text, mark = headline(np.repeat([0.0, 0.0, 0.04, 0.04], 60), np.repeat(np.arange(4), 60))
    assert text.startswith("t2i lags i2t by 0.04")
    assert "since epoch 2 (n = 120 steps)." in text
    assert "t2i now weighs 0." in text
    assert "jitter" in text
    assert mark == (120, "lagging since epoch 2")


def test_headline_of_a_lag_from_the_start_has_no_mark():
    text, mark = headline(np.full(60, -0.04), np.zeros(60))
    assert text.startswith("i2t lags t2i by 0.0")
    assert "since the first step (n = 60 steps)" in text
    assert mark is None


def test_headline_says_that_neither_lags():
    text, mark = headline(np.zeros(60), np.zeros(60))
    assert text.startswith("Neither direction lags: t2i − i2t is ")
    assert "over the last 60 steps" in text
    assert mark is None


def test_headline_says_before_and_after():
    text, _mark = headline(np.full(60, 0.04), np.zeros(60), after=dataclasses.replace(IN_USE, smoothing=0.0))
    assert "Tried: t2i weighs 0.5" in text
    assert "→" in text.split("jitter")[1]


def test_headline_of_weights_that_are_not_adapted():
    off = UWMLConfig(direction_mode="off")
    text, _mark = headline(np.full(60, 0.04), np.zeros(60), before=off, after=off)
    assert text.endswith("The direction weights are not adapted (direction_mode: off).")
