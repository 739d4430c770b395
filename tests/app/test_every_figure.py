"""Every figure of every page: what it draws, the table that it offers, and the raw files say the same."""

from __future__ import annotations

import base64
import html
import importlib
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from tests.support.synthetic import make_run
from uwml_core.figures.theme import theme
from uwml_core.report.build import PAGES as REPORT_PAGES
from uwml_core.report.content import Chart
from uwml_core.report.payload import packed_chart
from uwml_core.report.source import Source
from uwml_core.runlog.reader import open_run
from uwml_core.weighting import UWMLConfig

ITEM = 4
EPOCHS, PER_EPOCH = 3, 20
# page, what its address asks for, its charts
VIEWS: Mapping[str, tuple[str, dict[str, Any], set[str]]] = {
    "training": (
        "pages/watch/training.py",
        {},
        {
            *("loss", "recall", "learning_rate", "temperature"),
            *("gradient_norm", "ess_share", "throughput", "accuracy"),
        },
    ),
    "weight_curve": ("pages/explain/weight_curve.py", {}, {"curve", "bands", "weights", "epochs"}),
    "modal_balance": ("pages/explain/modal_balance.py", {}, {"balance", "contributions"}),
    "hard_negatives": ("pages/explain/hard_negatives.py", {"item": str(ITEM)}, {"history"}),
    "embedding_map": ("pages/explain/embedding_map.py", {}, {"map", "gap"}),
    "compare": (
        "pages/decide/compare.py",
        {"runs": ["plain", "a"], "baseline": "plain"},
        {"differences", "progress"},
    ),
    "diagnosis": ("pages/decide/diagnosis.py", {}, {"evidence-non_finite-0", "evidence-ties-1"}),
}
CHARTS = [(view, chart) for view, (_page, _query, charts) in VIEWS.items() for chart in sorted(charts)]

Points = dict[str, pd.DataFrame]
Drawn = tuple[Any, pd.DataFrame]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    whole = {"epochs": EPOCHS, "steps_per_epoch": PER_EPOCH, "items": 96}
    plain = UWMLConfig(curve="uniform", direction_mode="off", total_steps=EPOCHS * PER_EPOCH)
    make_run(folder, run_id="plain", seed=1, config=plain, **whole)
    make_run(folder, run_id="a", nan_steps=(11,), spikes=(33,), **whole)
    return folder


@pytest.fixture(scope="module")
def query(logs: Path) -> Callable[[str], pd.DataFrame]:
    connection = duckdb.connect()
    for table in ("steps", "pairs", "evals", "ranks", "neighbors", "snapshots"):
        for run in ("a", "plain"):
            name = table if run == "a" else f"{table}_of_plain"
            connection.execute(f"CREATE VIEW {name} AS FROM '{logs}/{run}/{table}/*.parquet'")
    connection.execute(f"CREATE VIEW items AS FROM '{logs}/_items/*.parquet'")
    return lambda sql: connection.execute(sql).df()


@pytest.fixture
def drawn(
    open_page: Callable[..., Any], logs: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, Drawn]]:
    """Function that opens a view and gives its charts: the figure drawn and the file offered, by key."""
    # by its name: the package names the function alike
    module = importlib.import_module("uwml_core.ui.card")
    figures: dict[str, Any] = {}
    tables: dict[str, pd.DataFrame] = {}
    plot, title_row = module.live_plot, module._title_row

    def noting_plot(figure: Any, *, key: str, **options: Any) -> None:
        figures[key.removeprefix("plot-")] = go.Figure(unpacked(json.loads(figure.to_json(validate=False))))
        plot(figure, key=key, **options)

    def noting_row(title: str, frame: pd.DataFrame, key: str, unit: str = "") -> None:
        tables[key] = pd.read_csv(io.BytesIO(module.to_csv(frame)), keep_default_na=False, na_values=[""])
        title_row(title, frame, key, unit)

    monkeypatch.setattr(module, "live_plot", noting_plot)
    monkeypatch.setattr(module, "_title_row", noting_row)

    def draw(view: str) -> dict[str, Drawn]:
        page, asked, _charts = VIEWS[view]
        assert not open_page(page, logs, run="a", **asked).failures
        return {key: (figure, tables[key]) for key, figure in figures.items()}

    return draw


def unpacked(value: Any) -> Any:
    """What is sent to the browser, with arrays for the bytes in it."""
    if isinstance(value, list):
        return [unpacked(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "bdata" not in value:
        return {name: unpacked(part) for name, part in value.items()}
    array = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    return array.reshape([int(n) for n in value.get("shape", "-1").split(",")])


def traces(figure: Any, *, named: str = "", y: str = "y") -> list[Any]:
    """Traces that are seen, on an axis."""
    seen = [trace for trace in figure.data if trace.visible is not False]
    return [trace for trace in seen if named in str(trace.name) and (trace.yaxis or "y") == y]


def points(trace: Any) -> np.ndarray:
    """``[n, 2]`` in order of x; what is not finite is drawn apart."""
    found = np.column_stack([np.asarray(trace.x, np.float64), np.asarray(trace.y, np.float64)])
    return found[np.argsort(found[:, 0], kind="stable")]


def same(found: Any, expected: Any, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(expected, np.float64), rtol=tolerance, atol=tolerance
    )


def lines_are(figure: Any, table: pd.DataFrame, name: Callable[[Any], str], x: str, y: str) -> None:
    """Each trace holds the finite rows of the table that bear its name, and no row is left undrawn."""
    names = [name(row) for row in table.itertuples()]
    shown = {str(trace.name) for trace in figure.data} - {"not finite", "updates", "events"}
    assert shown == set(names)
    for trace in figure.data:
        if str(trace.name) in shown:
            rows = table[[each == trace.name for each in names]]
            rows = rows[np.isfinite(rows[y].astype(np.float64))]
            same(points(trace), rows[[x, y]].sort_values(x, kind="stable"))


def equal(table: pd.DataFrame, expected: pd.DataFrame, by: list[str], *values: str) -> None:
    """Both frames hold the same rows."""
    one, two = (f.sort_values(by, kind="stable").reset_index(drop=True) for f in (table, expected))
    for name in by:
        numbers = pd.api.types.is_numeric_dtype(two[name])
        keys = [frame[name].astype(np.float64 if numbers else str).tolist() for frame in (one, two)]
        assert keys[0] == keys[1], name
    for value in values:
        same(one[value], two[value])


def per_direction(*columns: str, table: str = "steps") -> str:
    """One row per step and direction, values of columns in which ``{d}`` is the direction."""
    parts = [
        f"SELECT step, '{d}' AS direction, " + ", ".join(column.format(d=d) for column in columns)
        for d in ("i2t", "t2i")
    ]
    return " UNION ALL ".join(f"{part} FROM {table}" for part in parts)


def total(column: str) -> str:
    return f"SELECT step, NULL AS direction, {column} AS value FROM steps"


STEP_SERIES = {
    "loss": f"{total('loss')} UNION ALL {per_direction('loss_{d} AS value')}",
    "learning_rate": total("learning_rate"),
    "temperature": total("temperature"),
    "gradient_norm": total("gradient_norm"),
    "throughput": total("1000 * batch_size / step_time_ms"),
    "ess_share": per_direction("100 * ess_{d} / (batch_size - no_negative_count_{d}) AS value"),
    "accuracy": per_direction("100 * accuracy_{d} AS value"),
}


def step_series(key: str) -> Callable[..., None]:
    def check(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
        expected = query(STEP_SERIES[key])
        for frame in (table, expected):
            frame["direction"] = frame["direction"].astype(object).fillna("total")
        equal(table, expected, ["direction", "step"], "value")
        lines_are(figure, table, lambda row: row.direction, "step", "value")

    return check


def recall(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    logged = query("FROM evals WHERE split = 'val' AND metric LIKE 'R@%'")
    equal(table, logged, ["metric", "direction", "step"], "value", "n", "tied_share")
    lines_are(figure, table, lambda row: f"{row.metric} {row.direction}", "step", "value")


def margins(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    counted = query(
        """SELECT direction, floor((margin::DOUBLE + 2) * 100)::INT AS bin, count(*) AS count,
        sum(weight::DOUBLE) AS weight_sum FROM pairs WHERE epoch = 2 GROUP BY ALL"""
    )
    equal(table[table["count"] > 0], counted, ["direction", "bin"], "count", "weight_sum")
    for direction, rows in table.groupby("direction"):
        (trace,) = traces(figure, named=str(direction))
        # an outline that ends with the last column once more
        assert sum(trace.y) - rows["count"].sum() in (0, rows["count"].iloc[-1])
        at = dict(zip(np.round(np.asarray(trace.x, np.float64), 3).tolist(), trace.y, strict=True))
        for row in rows[rows["count"] > 0].itertuples():
            near = [y for x, y in at.items() if row.left - 1e-3 <= x <= row.right + 1e-3]
            assert row.count in near
    progress = query("SELECT progress FROM steps WHERE step = 49")["progress"].to_numpy()
    # the script of a report moves a second one
    shown = traces(figure, named="in use", y="y2")
    assert shown
    for curve in shown:
        same(curve.y, bell(np.asarray(curve.x, np.float64), progress)[0])


def bell(margin: np.ndarray, progress: np.ndarray) -> np.ndarray:
    """The weight curve as the loss has it by default, ``[epoch, margin]``."""
    config = UWMLConfig()
    steepness = (
        config.steepness_start
        + (config.steepness_end - config.steepness_start) * (1 - np.cos(np.pi * progress)) / 2
    )
    tail = np.exp(-np.abs(steepness[:, None] * (margin - config.center)))
    weight = 4 * tail / (1 + tail) ** 2
    return np.where(margin < config.center, config.hard_floor + (1 - config.hard_floor) * weight, weight)


def bands(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    logged = query(
        """WITH banded AS (SELECT direction, step, gradient_share::DOUBLE AS share, CASE WHEN margin < 0
          THEN 'misaligned' WHEN margin < 0.05 THEN 'hard' WHEN margin < 0.25 THEN 'informative'
          ELSE 'easy' END AS band FROM pairs WHERE epoch = 2),
        steps AS (SELECT DISTINCT direction, step FROM banded),
        per_step AS (SELECT steps.direction, step, name AS band, (SELECT coalesce(sum(share), 0) FROM banded
          WHERE banded.direction = steps.direction AND banded.step = steps.step AND banded.band = name)
          AS share FROM steps, (VALUES ('misaligned'), ('hard'), ('informative'), ('easy')) bands(name))
        SELECT direction, band, avg(share) AS share_before FROM per_step GROUP BY ALL"""
    )
    equal(table, logged, ["direction", "band"], "share_before")
    same(table["share_after"], table["share_before"])
    for trace in figure.data:
        rows = table[table["band"] == trace.name].set_index("direction")
        for label, width in zip(trace.y, trace.x, strict=True):
            assert width == pytest.approx(100 * rows.loc[str(label).split()[0], "share_before"], rel=1e-5)


def weights(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    counted = query(
        """SELECT direction, floor(weight::DOUBLE / 0.05 + 1e-9)::INT AS bin, count(*) AS count_before
        FROM pairs WHERE epoch = 2 GROUP BY ALL"""
    )
    equal(table[table["count_before"] > 0], counted, ["direction", "bin"], "count_before")
    assert (table["count_after"] == table["count_before"]).all()
    for place, (_direction, rows) in enumerate(table.groupby("direction", sort=True)):
        for trace in traces(figure, y=("y", "y2")[place]):
            assert sorted(np.trim_zeros(trace.y)) == sorted(np.trim_zeros(rows["count_before"].to_numpy()))


def by_epoch(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    middle = query(
        """SELECT epoch, progress FROM steps QUALIFY row_number() OVER (PARTITION BY epoch ORDER BY step)
        = (count(*) OVER (PARTITION BY epoch) + 1) // 2 ORDER BY epoch"""
    )
    assert sorted(table["epoch"].unique()) == middle["epoch"].tolist() == list(range(EPOCHS))
    lines_are(figure, table, lambda row: f"epoch {row.epoch}", "margin", "weight")
    grid = table.loc[table["epoch"] == 0, "margin"].to_numpy()
    same(table["weight"].to_numpy().reshape(EPOCHS, -1), bell(grid, middle["progress"].to_numpy()))


def balance(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    logged = query(per_direction("gap_{d} AS raw", "gap_window_{d} AS gap", "direction_weight_{d} AS weight"))
    wanted = {("gap", "raw"): "raw", ("gap", "after"): "gap", ("weight", "after"): "weight"}
    assert set(zip(table["quantity"], table["line"], strict=True)) == set(wanted)
    for (quantity, line), column in wanted.items():
        rows = table[(table["quantity"] == quantity) & (table["line"] == line)]
        equal(rows, logged.rename(columns={column: "value"}), ["direction", "step"], "value")
    lines_are(figure, table, lambda row: f"{row.direction} {row.quantity} {row.line}", "step", "value")


def contributions(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    both = "(direction_weight_i2t * loss_i2t + direction_weight_t2i * loss_t2i)"
    own = "direction_weight_{d} * loss_{d}"
    logged = query(per_direction(f"{own} AS contribution", f"100 * {own} / {both} AS share"))
    for quantity in ("contribution", "share"):
        rows = table[table["quantity"] == quantity]
        assert set(rows["line"]) == {"after"}
        equal(rows, logged.rename(columns={quantity: "value"}), ["direction", "step"], "value")
    lines_are(figure, table, lambda row: f"{row.direction} {row.quantity} {row.line}", "step", "value")


def history(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    logged = query(
        f"""SELECT 'batches' AS source, direction, epoch, avg(margin) AS margin, min(margin) AS low,
          max(margin) AS high, count(*) AS n FROM pairs WHERE item_id = {ITEM} GROUP BY ALL
        UNION ALL SELECT 'pool', direction, epoch, min(positive_similarity - similarity), NULL, NULL, NULL
          FROM neighbors WHERE item_id = {ITEM} GROUP BY ALL"""
    )
    keys = ["source", "direction", "epoch"]
    equal(table, logged, keys, "margin")
    in_batches = [frame[frame["source"] == "batches"] for frame in (table, logged)]
    equal(*in_batches, keys, "low", "high", "n")
    lines_are(figure, table, lambda row: f"{row.direction}, {row.source}", "epoch", "margin")


def vectors(query: Callable[[str], pd.DataFrame], step: int) -> dict[str, np.ndarray]:
    rows = query(f"FROM snapshots WHERE step = {step} ORDER BY modality, item_id")
    found = {}
    for modality, part in rows.groupby("modality"):
        wide = np.stack([np.asarray(list(vector), np.float64) for vector in part["embedding"]])
        found[str(modality)] = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return found


def places(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    last = EPOCHS * PER_EPOCH - 1
    logged = query(
        f"""SELECT s.item_id, s.modality, s.label, s.split, s.step, s.epoch, i."group" AS "group",
        i.captions[1] AS caption FROM snapshots s JOIN items i USING (item_id) WHERE s.step = {last}"""
    )
    keys = ["modality", "item_id", "label", "split", "step", "epoch", "group", "caption"]
    equal(table, logged, keys)
    for modality, rows in table.groupby("modality"):
        (trace,) = traces(figure, named=str(modality))
        same(np.column_stack([trace.x, trace.y]), rows[["x", "y"]])
        assert [int(item) for item, *_rest in trace.customdata] == rows["item_id"].tolist()
    found = vectors(query, last)
    labels = table.loc[table["modality"] == "image", "label"].to_numpy()
    sim = found["image"] @ found["text"].T
    wrong = np.where(labels[:, None] == labels[None, :], -np.inf, sim)
    for modality, axis in (("image", 1), ("text", 0)):
        margin = np.diag(sim) - wrong.max(axis=axis)
        same(table.loc[table["modality"] == modality, "margin"], margin, 2e-3)


def gaps(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    for step, rows in table.groupby("step"):
        found = vectors(query, int(str(step)))
        value = rows.set_index("measure")["value"]
        centre = np.linalg.norm(found["image"].mean(axis=0) - found["text"].mean(axis=0))
        assert value["centroid_distance"] == pytest.approx(centre, abs=2e-3)
        apart = np.sum((found["image"] - found["text"]) ** 2, axis=1)
        assert value["alignment"] == pytest.approx(np.mean(apart), abs=4e-3)
    in_lines = [y for trace in figure.data if "markers" in trace.mode and trace.name for y in trace.y]
    same(sorted(in_lines), sorted(table["value"].dropna()))


def differences(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    found = {}
    for k, direction in itertools.product((1, 5, 10), ("i2t", "t2i")):
        hits = [
            query(
                f"""SELECT 100.0 * avg((rank <= {k})::INT) AS hits, count(*) AS n FROM {ranks} WHERE
                split = 'val' AND direction = '{direction}' AND step = (SELECT max(step) FROM {ranks})"""
            ).iloc[0]
            for ranks in ("ranks_of_plain", "ranks")
        ]
        found[f"R@{k} {direction}"] = (hits[1]["hits"] - hits[0]["hits"], hits[1]["n"])
    assert {row.label: (pytest.approx(row.difference), row.n) for row in table.itertuples()} == found
    (trace,) = figure.data
    same(sorted(trace.y if trace.orientation == "v" else trace.x), sorted(table["difference"]))


def progress(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    parts = [
        f"SELECT '{run}' AS method, direction, step, value, n AS queries FROM {evals} WHERE metric = 'R@1'"
        for run, evals in (("plain", "evals_of_plain"), ("a", "evals"))
    ]
    equal(table, query(" UNION ALL ".join(parts)), ["method", "direction", "step"], "value", "queries")
    drawn = [points(trace)[:, 1].tolist() for trace in figure.data]
    logged = [rows["value"].tolist() for _key, rows in table.groupby(["direction", "method"], sort=False)]
    same(sorted(drawn), sorted(logged))


def nonfinite(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    """The loss before it was no number."""
    near = table["step"].agg(["min", "max"]).tolist()
    logged = query(f"SELECT step, loss, gradient_norm FROM steps WHERE step BETWEEN {near[0]} AND {near[1]}")
    lost = query("SELECT step FROM steps WHERE NOT isfinite(loss)")["step"].tolist()
    assert lost == [11]
    assert near[0] <= 11 <= near[1]
    equal(table, logged, ["step"], "loss", "gradient_norm")
    for trace, column in zip(figure.data, ("loss", "gradient_norm"), strict=True):
        same(trace.x, table["step"])
        same(trace.y, table[column])


def ties(figure: Any, table: pd.DataFrame, query: Callable[[str], pd.DataFrame], logs: Path) -> None:
    """Of both directions the one with fewer ties, per evaluation."""
    logged = query(
        """SELECT step, epoch, min(share) AS tied_share, min(n) AS n FROM (SELECT step, epoch, direction,
          max(tied_share) AS share, min(n) AS n FROM evals WHERE split = 'val' GROUP BY ALL) GROUP BY ALL"""
    )
    equal(table, logged, ["step", "epoch"], "tied_share", "n")
    (trace,) = figure.data
    same(points(trace), table[["epoch", "tied_share"]].sort_values("epoch"))


CHECKS: Mapping[str, Callable[..., None]] = {
    **{key: step_series(key) for key in STEP_SERIES},
    "recall": recall,
    "curve": margins,
    "bands": bands,
    "weights": weights,
    "epochs": by_epoch,
    "balance": balance,
    "contributions": contributions,
    "history": history,
    "map": places,
    "gap": gaps,
    "differences": differences,
    "progress": progress,
    "evidence-non_finite-0": nonfinite,
    "evidence-ties-1": ties,
}


@pytest.mark.parametrize("view", VIEWS)
def test_figures_tables_and_files_agree(
    drawn: Callable[[str], dict[str, Drawn]],
    query: Callable[[str], pd.DataFrame],
    logs: Path,
    view: str,
) -> None:
    charts = drawn(view)
    # a new chart needs a check of its own
    assert set(charts) == VIEWS[view][2]
    for key, (figure, table) in charts.items():
        assert len(table), key
        CHECKS[key](figure, table, query, logs)


def test_table_of_a_finding_is_that_of_the_files(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, run_id="twins", steps=12, items=64, twins=30)
    opened = open_page("pages/decide/diagnosis.py", tmp_path, run="twins")
    assert not opened.failures
    connection = duckdb.connect()
    counted = connection.execute(
        f"""SELECT trim(lower(caption)) AS caption, count(DISTINCT item_id) AS items,
          count(DISTINCT label) AS labels FROM (SELECT item_id, label, unnest(captions) AS caption
          FROM '{tmp_path}/_items/*.parquet' WHERE split = 'train') GROUP BY 1 HAVING labels > 1
        ORDER BY items DESC, caption"""
    ).fetchall()
    assert len(counted) == 3
    (card,) = re.findall(r'<table class="uw-table"><tr><th>Caption</th>.*?</table>', opened.markup)
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in card.split("<tr>")[2:]]
    assert [[html.unescape(cell) for cell in row] for row in rows] == [list(map(str, row)) for row in counted]
    assert "3 of 3 rows" in opened.text


@pytest.fixture(scope="module")
def report(logs: Path) -> Iterator[dict[str, tuple[str, Chart]]]:
    source = Source(open_run(logs / "a"), pictures=False)
    charts = {}
    for page, section in ((page, asked.make(source)) for page, asked in REPORT_PAGES.items()):
        charts |= {block.key: (page, block) for block in section.blocks if isinstance(block, Chart)}
    return charts


@pytest.mark.parametrize("view", [view for view in VIEWS if view in REPORT_PAGES])
def test_the_report_draws_and_offers_what_the_page_does(
    drawn: Callable[[str], dict[str, Drawn]],
    report: dict[str, tuple[str, Chart]],
    query: Callable[[str], pd.DataFrame],
    logs: Path,
    view: str,
) -> None:
    page = drawn(view)
    in_report = {key: chart for key, (where, chart) in report.items() if where == view}
    for key, chart in in_report.items():
        offered = pd.read_csv(io.StringIO(packed_chart(chart)["csv"]), keep_default_na=False, na_values=[""])
        if key in page:
            assert set(offered.columns) == set(page[key][1].columns)
        CHECKS[key](chart.draw(theme("light")), offered, query, logs)
