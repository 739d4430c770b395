"""Every number of every rule's findings, counted again by DuckDB from the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.support.ill_runs import ILL_RUNS
from uwml_core.analysis.diagnosis.examine import diagnose
from uwml_core.analysis.diagnosis.finding import Finding
from uwml_core.analysis.diagnosis.rules import RULES
from uwml_core.runlog.reader import open_run

# 80 steps: the last quarter and the last tenth of them
LATE, LAST = "step >= 60", "step >= 72"
BROKEN = """(select step from steps where not isfinite(loss) or not isfinite(gradient_norm)
    union select step from events where kind = 'non_finite' and level <> 'info')"""
BEYOND = "greatest(abs(positive_similarity::double), abs(negative_similarity::double))"
NEWEST = """(select unnest([positive_similarity, negative_similarity])::double v from pairs
    where step > (select max(step) - 20 from pairs))"""
RECALL = "(select step, avg(value) r from evals where split = 'val' and epoch >= 0 group by step)"
LEARNED = """(select *, positive_similarity::double - similarity::double as margin from neighbors
    where rank = 1 and split = 'train')"""
ITEM = """(select item_id, avg(m) m from (select item_id, direction, avg(margin::double) m, count(*) c
    from pairs group by all) group by item_id having sum(c) >= 6)"""
DRAWN = """(select item_id, label, lower(trim(t)) t, count(*) / any_value(len(captions)) w
    from (select *, unnest(captions) t from items where split = 'train')
    group by item_id, label, lower(trim(t)))"""
SHARED = f"""(select distinct a.item_id from {DRAWN} a join {DRAWN} b using (t) where a.label <> b.label)"""
TRAIN = "(select count(*) from items where split = 'train')"
MOVED = """(select b.step, b.modality,
        avg(list_cosine_similarity(a.embedding::double[], b.embedding::double[])) s
    from snapshots a join snapshots b on a.item_id = b.item_id and a.modality = b.modality
        and a.step = (select max(step) from snapshots where step < b.step) group by all)"""
EASY = """(select 1 - least(sum(weight::double * exp(least(-pair_loss::double
            - margin::double / temperature, 0))) / sum(weight::double * (1 - exp(-pair_loss::double))), 1) e
    from pairs join steps using (step) group by step)"""

RECOUNTED = {
    "non_finite": {
        "steps": f"select count(*) from {BROKEN}",
        "first_step": f"select min(step) from {BROKEN}",
    },
    "collapse": {
        "similarity_spread": f"select stddev_pop(v) from {NEWEST}",
        "loss": f"select median(loss) from steps where {LATE}",
    },
    "not_learning": {
        "accuracy": f"select median((accuracy_i2t + accuracy_t2i) / 2) from steps where {LATE}",
        "chance": f"select 1 / (median(negatives_per_anchor) + 1) from steps where {LATE}",
    },
    "stuck": {
        "first_gradient_norm": "select median(gradient_norm) from steps where step < 2",
        "gradient_norm": f"select median(gradient_norm) from steps where {LATE}",
        "first_loss": "select median(loss) from steps where step < 5",
        "loss": f"select median(loss) from steps where {LATE}",
    },
    "not_normalised": {
        "largest_similarity": f"select max({BEYOND}) from pairs",
        "beyond_share": f"select avg(({BEYOND} > 1.01)::int) from pairs",
    },
    "one_direction": {
        "direction_weight_t2i": f"select median(direction_weight_t2i) from steps where {LATE}",
    },
    "unstable": {
        "gradient_ratio": """select min(high) / any_value(m) from (select quantile_cont(gradient_norm, 0.95)
            high from steps where step >= 40 group by step < 60), (select median(gradient_norm) m
            from steps where step >= 40)""",
    },
    "logit_scale": {
        "end_scale": f"select median(1 / temperature) from steps where {LAST}",
        "highest_scale": "select max(1 / temperature) from steps",
    },
    "small_temperature": {
        "temperature": f"select median(temperature) from steps where {LATE}",
        "recall_jump": f"select avg(j) from (select abs(r - lag(r) over (order by step)) j from {RECALL})",
    },
    "overfitting": {
        "recall_fall": f"select max(r) - arg_max(r, step) from {RECALL}",
        "train_accuracy": f"select avg((accuracy_i2t + accuracy_t2i) / 2) from steps where {LAST}",
    },
    "memorised": {
        "memorised_share": f"""select avg((b.margin > a.margin)::int) from {LEARNED} a join {LEARNED} b
            using (direction, item_id) where a.epoch = 0 and b.epoch = 3""",
    },
    "wrong_pairs": {
        "lopsidedness": f"""select (median(m) - quantile_cont(m, 0.05)) / (quantile_cont(m, 0.95) - median(m))
            from {ITEM}""",
        "suspected_share": f"""select avg((m < 2 * typical - top)::int)
            from {ITEM}, (select median(m) typical, quantile_cont(m, 0.99) top from {ITEM})""",
        "typical_margin": f"select median(m) from {ITEM}",
    },
    "false_negatives": {
        "shared_share": f"select count(*) / {TRAIN} from {SHARED}",
        "false_negatives_per_anchor": f"""select sum(a.w * b.w) * (8 - 1) / ({TRAIN} * ({TRAIN} - 1))
            from {DRAWN} a join {DRAWN} b using (t) where a.label <> b.label""",
    },
    "frozen_encoder": {
        "least_similarity": f"select max(s) from (select min(s) s from {MOVED} group by modality)",
        "other_similarity": f"select min(s) from {MOVED}",
    },
    "stale_queue": {
        "queue_age_epochs": "select 60 / median(n) from (select count(*) n from steps group by epoch)",
        "similarity_within_epoch": f"""select avg(s) from (select min(s) s from {MOVED}
            where step > (select min(step) from {MOVED}) group by step)""",
    },
    "claimed_batch": {
        "negatives_per_anchor": f"select median(negatives_per_anchor) from steps where {LATE}",
        "claimed_batch": "select median(effective_batch_size) from steps",
    },
    "no_negatives": {
        "no_negative_share": """select avg((no_negative_count_i2t + no_negative_count_t2i) / (2 * batch_size))
            from steps""",
    },
    "few_pairs": {
        "ess_share": f"select median(least(ess_i2t, ess_t2i) / batch_size) from steps where {LATE}"
    },
    "easy_negatives": {"easy_share": f"select avg(e) from {EASY}"},
    "dead_zone": {
        "lost_share": f"""select median((dead_share_i2t + dead_share_t2i + wrong_sign_share_i2t
            + wrong_sign_share_t2i) / 2) from steps where {LATE}""",
    },
    "ties": {
        "tied_share": """select min(tied_share) from evals where metric = 'R@1'
            and step = (select max(step) from evals)""",
    },
    "lagging_direction": {"behind": "select abs(avg(gap_i2t - gap_t2i)) from steps where step >= {since}"},
    "direction_jitter": {
        "jitter_per_100_steps": """select 100 * avg(j) from (select abs(direction_weight_i2t
            - lag(direction_weight_i2t) over (order by step)) j from steps)""",
    },
    "throughput": {
        "early_step_time": "select median(step_time_ms) from steps where step between 1 and 39",
        "late_step_time": f"select median(step_time_ms) from steps where {LATE}",
    },
    "telemetry_cost": {
        "telemetry_time": "select median(telemetry_time_ms) from steps",
        "step_time": "select median(step_time_ms) from steps",
    },
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("ill")
    return {name: make(root) for name, make in ILL_RUNS.items()}


@pytest.fixture(scope="module")
def findings(runs: dict[str, Path]) -> dict[str, tuple[Finding, ...]]:
    return {name: diagnose(open_run(path)).findings for name, path in runs.items()}


@pytest.fixture(scope="module")
def tables(runs: dict[str, Path]) -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    """A connection per run, in which its tables stand under their names."""
    connections = {name: duckdb.connect() for name in runs}
    for name, path in runs.items():
        for table in ("steps", "pairs", "evals", "events", "neighbors", "snapshots"):
            if (path / table).is_dir():
                connections[name].sql(f"create view {table} as select * from '{path}/{table}/*.parquet'")
        for items in (path.parent / "_items").glob("*.parquet"):
            connections[name].sql(f"create view items as select * from '{items}'")
    yield connections
    for connection in connections.values():
        connection.close()


def test_every_rule_finds_something_that_is_counted_again(
    findings: dict[str, tuple[Finding, ...]],
) -> None:
    found = {finding.rule for told in findings.values() for finding in told}
    assert found == {rule.name for rule in RULES} == RECOUNTED.keys()


@pytest.mark.parametrize("name", ILL_RUNS)
def test_numbers_of_findings_are_those_of_the_files(
    name: str,
    findings: dict[str, tuple[Finding, ...]],
    tables: dict[str, duckdb.DuckDBPyConnection],
) -> None:
    for finding in findings[name]:
        assert {number.name for number in finding.numbers} == RECOUNTED[finding.rule].keys()
        for number in finding.numbers:
            query = RECOUNTED[finding.rule][number.name].replace("{since}", str(number.first_step))
            counted = tables[name].sql(query).fetchall()
            assert counted == [(pytest.approx(number.value, rel=1e-6),)], (finding.rule, number.name)
