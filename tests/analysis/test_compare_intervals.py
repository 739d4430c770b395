"""Intervals of a comparison against scipy, loops over drawn items, and DuckDB on the raw files."""

import math

import duckdb
import numpy as np
import pyarrow.compute as pc
import pytest
from scipy import stats

from tests.support.synthetic import make_run
from uwml_core.analysis.compare.bootstrap import FEWEST_ITEMS, _counts, resample
from uwml_core.analysis.compare.comparison import metric_value
from uwml_core.analysis.compare.outcomes import (
    RANK_COLUMNS,
    SUMMARY_COLUMNS,
    Outcome,
    Ranks,
    choose,
    evaluations,
    metric_names,
    outcome_of,
    summarise,
)
from uwml_core.analysis.compare.seeds import paired_differences, t_interval, t_quantile
from uwml_core.analysis.compare.wins import mcnemar, won_queries
from uwml_core.runlog.reader import open_run


def outcome(seed: int, items: int = 60, better: float = 1.0, captions: int = 5) -> Outcome:
    """Ranks that depend on the item, so that its captions are not independent; up to ``captions`` each."""
    random = np.random.default_rng(3)
    hardness = random.gamma(1.0, 4.0, items)
    asked = np.concatenate([np.full(1 + k % captions, k) for k in range(items)])
    noise = np.random.default_rng(seed)
    ranks = {}
    for direction, item in (("i2t", np.arange(items)), ("t2i", asked)):
        rank = 1.0 + np.floor(hardness[item] * noise.gamma(1.0, 1.0 / better, len(item)))
        rank += 0.5 * (noise.random(len(item)) < 0.1)
        start = np.r_[0, np.flatnonzero(np.diff(item)) + 1]
        caption = np.arange(len(item)) - np.repeat(start, np.diff(np.r_[start, len(item)]))
        ranks[direction] = Ranks(item=item, caption=caption, rank=rank)
    return Outcome(step=9, epoch=1, ranks=ranks)


def per_item(ranks: Ranks, k: int, items: int) -> tuple[np.ndarray, np.ndarray]:
    hits = np.array([np.sum(ranks.rank[ranks.item == i] <= k) for i in range(items)], dtype=float)
    return hits, np.array([np.sum(ranks.item == i) for i in range(items)], dtype=float)


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("k", [1, 5])
def test_interval_over_queries_is_that_of_scipy(direction: str, k: int) -> None:
    first, second = outcome(0, 240), outcome(1, 240, better=1.6)
    found = resample([[first], [second]], ("i2t", "t2i"), draws=8000)
    place = found.names.index((direction, f"R@{k}"))
    one, counts = per_item(first.ranks[direction], k, 240)
    two, _counts_again = per_item(second.ranks[direction], k, 240)

    def difference(a: np.ndarray, b: np.ndarray, n: np.ndarray, axis: int) -> np.ndarray:
        return 100 * (b.sum(axis=axis) - a.sum(axis=axis)) / n.sum(axis=axis)

    expected = stats.bootstrap(
        (one, two, counts), difference, paired=True, vectorized=True, n_resamples=8000, batch=500,
        method="percentile", rng=np.random.default_rng(5),
    )  # fmt: skip
    low, high = found.interval(1, 0)[:, place]
    # quantiles of 8,000 draws on both sides: about 0.03 standard errors each; hits are whole
    tolerance = 0.15 * expected.standard_error + 100 / len(first.ranks[direction])
    assert low == pytest.approx(expected.confidence_interval.low, abs=tolerance)
    assert high == pytest.approx(expected.confidence_interval.high, abs=tolerance)
    assert found.value[1, place] - found.value[0, place] == pytest.approx(
        difference(one, two, counts, axis=0), rel=1e-12
    )


def test_interval_is_wider_than_one_that_takes_captions_for_independent() -> None:
    first, second = outcome(0), outcome(1, better=1.6)
    found = resample([[first], [second]], ("i2t", "t2i"))
    low, high = found.interval(0)[:, found.names.index(("t2i", "R@1"))]
    hits = first.ranks["t2i"].rank <= 1
    assert high - low > 1.2 * 2 * 1.96 * 100 * hits.std() / math.sqrt(len(hits))


def test_every_resample_is_what_a_loop_over_drawn_items_gives() -> None:
    methods = [[outcome(0, 24), outcome(2, 24)], [outcome(1, 24)]]
    # a query without a rank misses everywhere and counts as last
    methods[1][0].ranks["t2i"].rank[3] = np.nan
    found = resample(methods, ("i2t", "t2i"), draws=30, seed=4)
    (drawn,) = _counts(24, 30, 4)
    assert found.draws.shape == (30, 2, len(found.names))
    for r in range(30):
        for m, runs in enumerate(methods):
            for k, (direction, metric) in enumerate(found.names):
                values = []
                for run in runs:
                    taken = {
                        d: Ranks(
                            item=np.repeat(one.item, drawn[r][one.item].astype(int)),
                            caption=np.repeat(one.caption, drawn[r][one.item].astype(int)),
                            rank=np.repeat(one.rank, drawn[r][one.item].astype(int)),
                        )
                        for d, one in run.ranks.items()
                    }
                    values.append(metric_value(Outcome(step=0, epoch=0, ranks=taken), direction, metric))
                assert found.draws[r, m, k] == pytest.approx(np.mean(values), rel=1e-9), (r, m, metric)


def test_the_same_outcomes_give_the_same_interval_and_no_difference_to_themselves() -> None:
    first = outcome(0)
    found, again = (resample([[first], [outcome(1)]], ("i2t", "t2i")) for _ in range(2))
    assert np.array_equal(found.interval(1, 0), again.interval(1, 0))
    assert len(found.draws) == 2000
    same = resample([[first], [first]], ("i2t", "t2i"))
    assert np.array_equal(same.interval(1, 0), np.zeros((2, 9)))


def test_few_items_have_values_and_no_interval() -> None:
    n = FEWEST_ITEMS - 1
    found = resample([[outcome(0, n)], [outcome(1, n)]], ("i2t", "t2i"))
    assert np.isfinite(found.value).all()
    assert np.isnan(found.interval(1, 0)).all()


def test_resampling_many_queries_stays_in_bounded_memory() -> None:
    drawn = [(counts.size, (counts.sum(axis=1) == 5000).all()) for counts in _counts(5000, 900, 0)]
    assert max(size for size, _whole in drawn) <= 2_000_000
    assert sum(size for size, _whole in drawn) == 900 * 5000
    assert all(whole for _size, whole in drawn)


@pytest.mark.parametrize("n", [2, 3, 5, 12, 60])
def test_interval_over_seeds_is_that_of_scipy(n: int) -> None:
    values = np.random.default_rng(n).normal(1.0, 2.0, n)
    found = t_interval(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-6)
    assert (found.mean, found.n) == (pytest.approx(values.mean()), n)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 30, 400])
def test_quantile_of_t_is_that_of_scipy(freedom: int) -> None:
    assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-6)


def test_one_seed_has_no_interval_and_none_no_mean() -> None:
    one, none = t_interval(np.array([2.0])), t_interval(np.array([np.nan]))
    assert (one.mean, one.n) == (2.0, 1)
    assert math.isnan(one.low)
    assert none.n == 0
    assert math.isnan(none.mean)
    assert paired_differences({0: 1.0, 1: 2.0, 5: 9.0}, {5: 8.0, 0: 3.0, 2: 0.0}).tolist() == [2.0, -1.0]


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (8, 2), (16, 21), (500, 430), (4000, 4100)])
def test_mcnemar_is_the_binomial_test_of_scipy(gained: int, lost: int) -> None:
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(expected, rel=1e-6)
    assert mcnemar(gained, lost) == mcnemar(lost, gained)


def test_won_queries_are_those_that_one_method_alone_finds() -> None:
    first, second = outcome(0), outcome(1)
    rows = won_queries([first], [second], ("i2t", "t2i"))
    expected = set()
    for direction in ("i2t", "t2i"):
        was, now = first.ranks[direction], second.ranks[direction]
        for q in range(len(was)):
            if (was.rank[q] <= 1) != (now.rank[q] <= 1):
                expected.add((direction, int(was.item[q]), int(was.caption[q]), was.rank[q], now.rank[q]))
    columns = ["direction", "item_id", "caption", "rank_before", "rank_after"]
    assert set(rows[columns].itertuples(index=False, name=None)) == expected
    assert len(rows) == len(expected) > 10
    assert ((rows["change"] > 0) == (rows["rank_after"] <= 1)).all()


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    folder = make_run(tmp_path_factory.mktemp("logs"), run_id="a", epochs=4, steps_per_epoch=6, items=120)
    connection = duckdb.connect()
    for table in ("ranks", "evals"):
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{folder / table}/*.parquet'")
    return open_run(folder), connection


def read(run, at):
    found = evaluations(run.map_parts("ranks", summarise, columns=list(SUMMARY_COLUMNS)))
    step, epoch = choose(found, "val", at)
    table = run.table("ranks", columns=list(RANK_COLUMNS), filter=pc.field("step") == step)
    return found, outcome_of(table, step, epoch, run.directions)


@pytest.mark.parametrize("at", ["last", "best"])
def test_metrics_are_those_of_duckdb_on_the_raw_ranks(logged, at: str) -> None:
    run, connection = logged
    _found, one = read(run, at)
    wanted = "max(step)" if at == "last" else "arg_max(step, r1)"
    (step,) = connection.execute(
        f"""SELECT {wanted} FROM (SELECT step, avg(r) AS r1 FROM (
            SELECT step, direction, avg((rank <= 1)::INT) AS r FROM ranks GROUP BY ALL) GROUP BY step)"""
    ).fetchone()
    assert one.step == step
    values = connection.execute(
        f"""SELECT direction, 100 * avg((rank <= 1)::INT), 100 * avg((rank <= 5)::INT),
            100 * avg((rank <= 10)::INT), median(rank) FROM ranks WHERE step = {step} GROUP BY direction"""
    ).fetchall()
    expected = {(row[0], name): v for row in values for name, v in zip(
        ("R@1", "R@5", "R@10", "median_rank"), row[1:], strict=True
    )}  # fmt: skip
    expected["", "rsum"] = sum(v for (_d, metric), v in expected.items() if metric.startswith("R@"))
    resampled = resample([[one]], run.directions)
    for k, name in enumerate(metric_names(run.directions)):
        assert metric_value(one, *name) == pytest.approx(expected[name], rel=1e-12)
        assert resampled.value[0, k] == pytest.approx(expected[name], rel=1e-12)


def test_evaluations_have_the_r1_of_duckdb(logged) -> None:
    run, connection = logged
    found, _one = read(run, "last")
    expected = connection.execute(
        """SELECT step, avg(value) FROM evals WHERE metric = 'R@1' AND split = 'val'
        GROUP BY step ORDER BY step"""
    ).fetchall()
    assert list(zip(found["step"], found["r1"], strict=True)) == [
        (step, pytest.approx(value, rel=1e-12)) for step, value in expected
    ]
