"""Headline numbers and chart frames recomputed by another engine straight from the files."""

import duckdb
import numpy as np
import pytest

from tests.support.synthetic import make_run
from uwml_core.analysis.decimation import decimate_series
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.analysis.margins import margin_histogram, select_epoch
from uwml_core.analysis.nonfinite import count_nonfinite
from uwml_core.analysis.runs import LAST_STEP_COLUMNS, last_step, run_row
from uwml_core.analysis.selection import PREVIEW_COLUMNS, select_steps
from uwml_core.analysis.training import (
    event_marks,
    phase_bands,
    reference_lines,
    retrieval_curves,
    rolling_mean,
    step_series,
)
from uwml_core.analysis.training_summary import training_headline, training_summary
from uwml_core.analysis.what_if import preview
from uwml_core.runlog.reader import open_run


@pytest.fixture(scope="module")
def query(folder):
    connection = duckdb.connect()
    for table in ("steps", "pairs", "evals", "events"):
        files = folder / table / "*.parquet"
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{files}'")
    return lambda sql: connection.execute(sql).fetchall()


def test_headline_numbers_of_training(run, query):
    summary = training_summary(run.frame("steps"), run.frame("evals"), run.directions)
    last, loss, mean, spread, n = query(
        """WITH recent AS (SELECT * FROM steps ORDER BY step DESC LIMIT 100)
        SELECT max(step), arg_max(loss, step), avg(loss) FILTER (isfinite(loss)),
               stddev_samp(loss) FILTER (isfinite(loss)), count(*) FILTER (isfinite(loss)) FROM recent"""
    )[0]
    assert (summary.last_step, summary.loss_n) == (last, n)
    assert summary.last_loss == loss
    assert summary.loss_mean == pytest.approx(mean, rel=1e-12)
    assert summary.loss_sd == pytest.approx(spread, rel=1e-12)
    speed = query(
        "SELECT 1000 * sum(batch_size) / sum(step_time_ms) FROM (FROM steps ORDER BY step DESC LIMIT 100)"
    )
    assert summary.pairs_per_s == pytest.approx(speed[0][0], rel=1e-12)
    assert summary.nonfinite_loss == query("SELECT count(*) FROM steps WHERE NOT isfinite(loss)")[0][0] == 1
    best = query(
        """SELECT direction, metric, max(value), arg_max(n, value) FROM evals
        WHERE split = 'val' AND metric LIKE 'R@%' GROUP BY ALL"""
    )
    assert len(best) == len(summary.best) == 6
    for direction, metric, value, queries in best:
        assert summary.best_value(direction, metric) == value
        assert summary.best_n(direction, metric) == queries


def test_headline_sentence_of_training(run, query):
    first, last = query(
        """SELECT avg(loss) FILTER (step < 20), avg(loss) FILTER (step >= 70)
        FROM steps WHERE isfinite(loss)"""
    )[0]
    text = training_headline(run.frame("steps"), run.frame("evals"), run.directions)
    assert text.startswith("The loss was not finite at 1 of 90 steps, last at step 40. The loss fell by ")
    assert f"from {first:.3f} to {last:.3f} (first and last 20 steps)" in text


def test_frames_of_the_training_charts(run, query):
    steps = run.frame("steps")
    series = step_series(steps, run.directions, "loss")
    rows = query("SELECT loss FROM steps ORDER BY step") + query("SELECT loss_i2t FROM steps ORDER BY step")
    assert np.array_equal(series["value"][:180], [r[0] for r in rows], equal_nan=True)
    view = decimate_series(series, max_points=20)
    sharpest = query("SELECT arg_max(step, loss) FROM steps WHERE isfinite(loss)")[0][0]
    assert sharpest in view.frame.loc[view.frame["direction"].isna(), "step"].tolist()
    smooth = rolling_mean(series, window=5)["value"][:90]
    window = query(
        """SELECT avg(CASE WHEN isfinite(loss) THEN loss END) OVER (ORDER BY step ROWS 4 PRECEDING)
        FROM steps ORDER BY step"""
    )
    assert smooth.to_numpy() == pytest.approx([r[0] for r in window], rel=1e-12)
    share = step_series(steps, run.directions, "ess_share")["value"]
    wanted = query("SELECT 100 * ess_t2i / (batch_size - no_negative_count_t2i) FROM steps ORDER BY step")
    assert share[90:].to_numpy() == pytest.approx([r[0] for r in wanted], rel=1e-12)


def test_recall_phases_events_and_reference(run, query):
    curves = retrieval_curves(run.frame("evals"))
    rows = query(
        """SELECT step, epoch, direction, metric, value, n, tied_share FROM evals
        WHERE split = 'val' AND metric LIKE 'R@%' ORDER BY CAST(metric[3:] AS INT), direction, step"""
    )
    assert [tuple(r) for r in curves.itertuples(index=False, name=None)] == rows
    phases = query("SELECT phase, min(step), max(step) FROM steps GROUP BY phase ORDER BY min(step)")
    assert [tuple(r) for r in phase_bands(run.frame("steps")).values.tolist()] == phases
    marks = query("SELECT count(DISTINCT (step, kind)) FROM events WHERE kind NOT IN ('phase', 'checkpoint')")
    assert len(event_marks(run.frame("events"))) == marks[0][0]
    line = reference_lines(loss_config(run.config), run.frame("steps"))["value"][0]
    assert line == pytest.approx(query("SELECT ln(1 + median(negatives_per_anchor)) FROM steps")[0][0])


def test_nonfinite_counts(run, query):
    counts = count_nonfinite(run.frame("steps")).set_index("column")
    for column in ("loss", "gradient_norm"):
        nan, infinite = query(
            f"""SELECT count(*) FILTER (isnan({column}) OR {column} IS NULL),
                       count(*) FILTER (isinf({column})) FROM steps"""
        )[0]
        assert (counts.loc[column, "nan"], counts.loc[column, "inf"]) == (nan, infinite)


def test_row_of_runs(run, query):
    row = run_row(run, last_step(run.frame("steps", columns=list(LAST_STEP_COLUMNS))), run.frame("evals"))
    assert row["rsum"] == query("SELECT max(value) FROM evals WHERE metric = 'rsum'")[0][0]
    spark = query("SELECT avg(value) FROM evals WHERE metric = 'R@1' GROUP BY step ORDER BY step")
    assert row["sparkline"] == pytest.approx([r[0] for r in spark], rel=1e-12)


def test_margin_histogram(run, query):
    ours = margin_histogram(run.rollup("margins"))
    rows = query(
        """SELECT epoch, direction, floor((margin::DOUBLE + 2.0) * 100.0)::INT AS bin, count(*),
               sum(weight::DOUBLE), sum(weight::DOUBLE ** 2),
               sum(gradient_share::DOUBLE), sum(1 - exp(-pair_loss::DOUBLE))
        FROM pairs WHERE isfinite(margin) GROUP BY ALL ORDER BY ALL"""
    )
    assert ours[["epoch", "direction", "bin", "count"]].values.tolist() == [list(r[:4]) for r in rows]
    assert ours.iloc[:, 4:].to_numpy() == pytest.approx(np.array([r[4:] for r in rows]), rel=1e-9)
    shown = select_epoch(ours, 1)
    assert (
        shown["count"].sum()
        == query("SELECT count(*) FROM pairs WHERE epoch = 1 AND NOT isnan(margin)")[0][0]
    )


REPLAY = """
WITH logged AS (
  SELECT p.direction, p.step, p.weight::DOUBLE AS r, p.margin::DOUBLE AS m, p.pair_loss::DOUBLE AS l,
         p.gradient_share::DOUBLE AS g, s.temperature AS tau,
         2 + (30 - 2) * (1 - cos(pi() * s.progress)) / 2 AS kappa
  FROM pairs p JOIN steps s USING (step) WHERE p.epoch = 1 AND p.weight > 0 AND isfinite(p.margin)),
tail AS (SELECT *, exp(-abs(kappa * (m - 0.05))) AS e FROM logged),
bell AS (SELECT *, 4 * e / (1 + e) ** 2 AS b FROM tail),
curve AS (SELECT *, greatest(CASE WHEN m < 0.05 THEN 0.1 + 0.9 * b ELSE b END, 1e-6) AS w FROM bell),
tried AS (SELECT *, least(w / avg(w) OVER (PARTITION BY direction, step), 1.7) AS r2 FROM curve),
per_step AS (
  SELECT direction, step, count(*) AS n,
         sum(r) ** 2 / sum(r * r) / count(*) AS ess, sum(r2) ** 2 / sum(r2 * r2) / count(*) AS ess2,
         avg((r2 >= 1.7)::INT) AS clamped2,
         sum(r2 * exp(-l - m / tau)) / sum(r2 * (1 - exp(-l))) AS hardest2,
         sum(g * r2 / r) FILTER (m >= 0.05 AND m < 0.25) / sum(g * r2 / r) AS informative2,
         coalesce(sum(g) FILTER (m < 0) / sum(g), 0) AS misaligned
  FROM tried GROUP BY direction, step)
SELECT direction, count(*), sum(n), avg(ess), avg(ess2), avg(clamped2), avg(hardest2),
       avg(coalesce(informative2, 0)), avg(misaligned)
FROM per_step GROUP BY direction ORDER BY direction"""


def test_weight_curve_preview(run, query):
    config = loss_config(run.config)
    after = type(config).from_dict(
        config.to_dict() | {"center": 0.05, "steepness_end": 30.0, "hard_floor": 0.1, "max_weight": 1.7}
    )
    steps = run.frame("steps")
    selection = select_steps(steps, 1)
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS), filter=selection.filter)
    result = preview(pairs, steps, config, after, run.directions)
    names = [
        "steps",
        "rows",
        "ess_share_before",
        "ess_share_after",
        "clamped_share_after",
        "hardest_share_after",
    ]
    bands = result.bands.set_index(["direction", "band"])
    for row, wanted in zip(result.summary.to_dict("records"), query(REPLAY), strict=True):
        assert row["direction"] == wanted[0]
        assert [row[name] for name in names] == pytest.approx(list(wanted[1:7]), rel=1e-5)
        assert bands.loc[(wanted[0], "informative"), "share_after"] == pytest.approx(wanted[7], rel=1e-5)
        assert bands.loc[(wanted[0], "misaligned"), "share_before"] == pytest.approx(wanted[8], rel=1e-5)


def test_logged_ess_and_clamped_share_are_what_the_preview_computes(run, query):
    steps = run.frame("steps")
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS))
    config = loss_config(run.config)
    summary = preview(pairs, steps, config, config, run.directions).summary
    for row in summary.to_dict("records"):
        d = row["direction"]
        ess, clamped = query(
            f"""SELECT avg(ess_{d} / (batch_size - no_negative_count_{d})), avg(clamped_share_{d}
                * batch_size / (batch_size - no_negative_count_{d})) FROM steps"""
        )[0]
        assert row["ess_share_before"] == pytest.approx(ess, rel=1e-5)
        assert row["clamped_share_before"] == pytest.approx(clamped, rel=1e-5)


def test_a_resumed_run_counts_no_step_twice(tmp_path):
    run = open_run(make_run(tmp_path, epochs=2, steps_per_epoch=20, resume_at=25))
    whole = open_run(make_run(tmp_path, run_id="whole", epochs=2, steps_per_epoch=20))
    ours, expected = (margin_histogram(r.rollup("margins")) for r in (run, whole))
    assert ours["count"].sum() == expected["count"].sum() == 2 * 40 * 16
    assert len(step_series(run.frame("steps"), run.directions, "learning_rate")) == 40
