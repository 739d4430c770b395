"""Zooming into a million steps: they are drawn anew, step by step, in every chart over steps."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from playwright.sync_api import expect

from tests.support.browser import Visit, served, visit
from tests.support.synthetic import make_run
from tests.support.written_steps import write_steps

pytestmark = pytest.mark.browser

RUNS = {"long": 1_000_000, "short": 20_000}
STEPS, DIP = RUNS["long"], 654_321
NOISE = ("loss", "gradient_norm", "accuracy_i2t", "gap_i2t", "gap_t2i", "loss_i2t", "loss_t2i")
# chart: column, trace, what the page multiplies it with
LINKED = {
    "loss": ("loss", "total", 1.0),
    "gradient_norm": ("gradient_norm", "total", 1.0),
    "accuracy": ("accuracy_i2t", "i2t", 100.0),
}
POINTS = """([key, name]) => {
  const plot = document.querySelector(`.st-key-plot-${key} .uwml-plot`)
  // behind its mean
  const trace = plot._fullData.find(each => each.name === name)
  return [Array.from(trace.x), Array.from(trace.y)]
}"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for run_id, steps in RUNS.items():
        path = make_run(folder, run_id=run_id, steps=2, epochs=1, without=("pairs", "steps"))
        random = np.random.default_rng(7)
        columns = {name: random.normal(1.0, 0.01, steps) for name in NOISE}
        if steps > DIP:
            # too shallow to be the lowest, or the sharpest, of its neighbourhood
            columns["loss"][DIP - 1 : DIP + 2] = 1.0, 0.985, 1.0
        constant = {"batch_size": np.full(steps, 64), "epoch": 10 * np.arange(steps) // steps}
        write_steps(path, {"step": np.arange(steps), **constant, **columns})
    return folder


@pytest.fixture(scope="module")
def url(logs: Path) -> Iterator[str]:
    with served(logs) as address:
        yield address


def drawn(seen: Visit, key: str, name: str, within: tuple[float, float]) -> np.ndarray:
    """Points of a trace within a range of steps, ``[n, 2]``."""
    points = np.array(seen.page.evaluate(POINTS, [key, name]), np.float64).T
    return points[(points[:, 0] >= within[0]) & (points[:, 0] <= within[1])]


def logged(logs: Path, run: str, column: str, within: tuple[float, float]) -> np.ndarray:
    query = f"SELECT step, {column} FROM '{logs}/{run}/steps/*.parquet' WHERE step BETWEEN ? AND ? ORDER BY 1"
    return np.array(duckdb.execute(query, list(within)).fetchall(), np.float64)


def range_of(seen: Visit, key: str) -> tuple[float, float]:
    first, last = seen.x_range(key)
    return first, last


def zoom_to(seen: Visit, key: str, first: float, last: float) -> None:
    low, high = range_of(seen, key)
    before = seen.page.url
    seen.zoom(key, (first - low) / (high - low), (last - low) / (high - low))
    seen.page.wait_for_url(lambda address: address != before and "steps=" in address, timeout=60_000)


def note(seen: Visit, key: str) -> Any:
    return seen.page.locator(f".st-key-card-{key} .uw-note")


def test_every_step_of_a_zoomed_range_is_drawn_in_all_charts_and_shared(url: str, logs: Path) -> None:
    with visit() as seen:
        seen.open(f"{url}/training?run=long", charts=4)
        expect(note(seen, "loss")).to_contain_text("of 3,000,000 points", timeout=60_000)
        assert DIP not in drawn(seen, "loss", "total", (0, STEPS))[:, 0]
        zoom_to(seen, "loss", DIP - 20_000, DIP + 20_000)
        zoom_to(seen, "loss", DIP - 400, DIP + 400)
        rows = len(logged(logs, "long", "loss", range_of(seen, "loss")))
        assert 400 < rows < 1600
        expect(note(seen, "loss")).to_contain_text(
            f"{3 * rows:,} of {3 * rows:,} points in steps", timeout=60_000
        )
        shown = "document.querySelector('.st-key-plot-accuracy .uwml-plot')._fullLayout.xaxis.range[1]"
        seen.page.wait_for_function(f"{shown} < {DIP + 10_000}", timeout=60_000)
        seen.settle(charts=4)
        within = range_of(seen, "loss")
        for key, (column, name, factor) in LINKED.items():
            assert range_of(seen, key) == pytest.approx(within, abs=1.0)
            expected = logged(logs, "long", column, within) * [1.0, factor]
            np.testing.assert_allclose(drawn(seen, key, name, within), expected, rtol=1e-6)
        assert DIP in drawn(seen, "loss", "total", within)[:, 0]
        shared = seen.page.url
        assert not seen.exceptions()
        assert not seen.errors
    with visit() as seen:
        seen.open(shared, charts=4)
        assert range_of(seen, "loss") == pytest.approx(within, abs=1.0)
        assert DIP in drawn(seen, "loss", "total", within)[:, 0]
        seen.page.locator(".st-key-all-steps button").click()
        expect(note(seen, "loss")).to_contain_text("of 3,000,000 points", timeout=60_000)
        expect(seen.page.locator(".st-key-all-steps")).to_have_count(0, timeout=60_000)
        seen.settle(charts=4)
        assert range_of(seen, "loss") == (0, STEPS - 1)
        assert "steps=" not in seen.page.url
        assert not seen.errors


def test_double_click_shows_all_steps_again(url: str) -> None:
    with visit() as seen:
        seen.open(f"{url}/modal_balance?run=short", charts=2)
        whole = range_of(seen, "balance")
        zoom_to(seen, "balance", 2_000, 15_000)
        expect(note(seen, "contributions")).to_contain_text("in steps", timeout=60_000)
        seen.page.locator(".st-key-plot-balance .nsewdrag").first.dblclick()
        expect(note(seen, "contributions")).not_to_contain_text("in steps", timeout=60_000)
        seen.settle(charts=2)
        assert range_of(seen, "balance") == range_of(seen, "contributions") == whole
        assert "steps=" not in seen.page.url
        assert not seen.exceptions()
        assert not seen.errors


def test_range_in_the_address_is_drawn_step_by_step_until_another_run_is_chosen(url: str, logs: Path) -> None:
    within = (12_000.0, 12_900.0)
    with visit() as seen:
        seen.open(f"{url}/modal_balance?run=short&steps=12000..12900", charts=2)
        assert range_of(seen, "balance") == range_of(seen, "contributions") == within
        found = drawn(seen, "balance", "i2t gap raw", within)
        np.testing.assert_allclose(found, logged(logs, "short", "gap_i2t", within), rtol=1e-6)
        seen.page.locator(".st-key-run input").click()
        seen.page.get_by_role("option", name="long").click()
        seen.page.wait_for_url("**run=long*", timeout=60_000)
        expect(note(seen, "balance")).not_to_contain_text("in steps", timeout=60_000)
        seen.settle(charts=2)
        assert range_of(seen, "balance") == (0, STEPS - 1)
        assert "steps=" not in seen.page.url
        assert not seen.errors


def heights(seen: Visit, key: str) -> tuple[float, float]:
    shown = "key => document.querySelector(`.st-key-plot-${key} .uwml-plot`)._fullLayout.yaxis.range"
    low, high = seen.page.evaluate(shown, key)
    return low, high


def test_a_zoomed_chart_is_as_high_as_what_it_shows_unless_a_height_was_drawn(url: str) -> None:
    with visit() as seen:
        seen.open(f"{url}/training?run=short", charts=4)
        whole = heights(seen, "gradient_norm")
        zoom_to(seen, "gradient_norm", 2_000, 4_500)
        expect(note(seen, "gradient_norm")).to_contain_text("in steps", timeout=60_000)
        seen.settle(charts=4)
        found = drawn(seen, "gradient_norm", "total", range_of(seen, "gradient_norm"))[:, 1]
        room = 0.06 * np.ptp(found)
        expected = found.min() - room, found.max() + room
        assert heights(seen, "gradient_norm") == pytest.approx(expected, rel=1e-6)
        assert np.ptp(expected) < 0.95 * np.ptp(whole)

        before = seen.page.url
        seen.zoom("gradient_norm", 0.2, 0.7, fall=0.4)
        chosen = heights(seen, "gradient_norm")
        assert np.ptp(chosen) == pytest.approx(0.4 * np.ptp(expected), rel=0.05)
        seen.page.wait_for_url(lambda address: address != before, timeout=60_000)
        seen.settle(charts=4)
        assert heights(seen, "gradient_norm") == chosen
        seen.page.locator(".st-key-plot-gradient_norm .nsewdrag").first.dblclick()
        expect(note(seen, "gradient_norm")).not_to_contain_text("in steps", timeout=60_000)
        seen.settle(charts=4)
        assert heights(seen, "gradient_norm") == pytest.approx(whole)
        assert not seen.errors


CHART = """async source => {
  const host = Object.assign(document.createElement("div"), { className: "uwml-plot" })
  const handlers = {}, told = []
  document.body.append(host)
  host.on = (name, handler) => { handlers[name] = handler }
  window.Plotly = { Icons: { home: {} }, react: async (_host, _traces, layout) => {
    host._fullLayout = { xaxis: { range: layout.xaxis.range ?? [0, 9], autorange: !layout.xaxis.range } }
  } }
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }))
  const { default: component } = await import(address)
  const figure = name => JSON.stringify({ data: [], layout: { xaxis: {}, name } })
  let drawn = 0
  const draw = async (steps, zooms) => {
    const how = JSON.stringify({ height: 100, revision: "a", title: "", steps, zooms })
    const data = new TextEncoder().encode(`${how}\\n${figure(drawn += 1)}`)
    component({ data, parentElement: document.body, setTriggerValue: (_name, value) => told.push(value) })
    await host.uwmlQueue
    return host._fullLayout.xaxis.range
  }
  const zoom = range => {
    host._fullLayout.xaxis = { range, autorange: false }
    handlers.plotly_relayout({ "xaxis.range[0]": range[0] })
  }
  const seen = [await draw("", ["visit", 0])]
  zoom([2, 5])
  seen.push(await draw("", ["visit", 0]), await draw("2..5", ["visit", 1]))
  zoom([3, 4])
  zoom([3, 3.5])
  seen.push(await draw("3..4", ["visit", 2]), await draw("3..3.5", ["visit", 3]))
  seen.push(await draw("", ["visit", 3]))
  zoom([6, 7])
  seen.push(await draw("", ["another visit", 0]))
  return { seen, counts: told.map(({ count }) => count) }
}"""


def test_what_was_drawn_before_a_zoom_was_heard_of_does_not_undo_it() -> None:
    with visit() as seen:
        seen.page.goto("about:blank")
        found = seen.page.evaluate(
            CHART, (files("uwml_core.ui") / "live_plot.js").read_text(encoding="utf-8")
        )
        assert not seen.errors
    whole = [0, 9]
    late, heard, older, newest, button, another_visit = found["seen"][1:]
    assert found["seen"][0] == whole
    assert late == heard == [2, 5]
    assert older == newest == [3, 3.5]
    assert button == another_visit == whole
    assert found["counts"] == [1, 2, 3, 4]
