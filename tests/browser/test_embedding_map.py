"""The embedding map in a real browser: what a visitor clicks, plays and sends to a teammate."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect
from plotly.offline import get_plotlyjs

from tests.support.browser import Visit, served, visit
from tests.support.synthetic import make_run
from uwml_core.figures.embedding_map import embedding_map_figure
from uwml_core.figures.theme import theme

pytestmark = pytest.mark.browser

PLOT = ".st-key-plot-map .uwml-plot"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("logs")
    make_run(folder, run_id="a", steps=80, epochs=4, items=64)
    make_run(folder, run_id="other", steps=20, epochs=2)
    with served(folder) as url:
        yield f"{url}/embedding_map"


def place_of(seen: Visit, trace: int, row: int) -> tuple[float, float]:
    """Where a point is on the screen."""
    script = f"""() => {{
      const plot = document.querySelector("{PLOT}")
      const layout = plot._fullLayout, trace = plot._fullData[{trace}]
      const box = plot.querySelector(".nsewdrag").getBoundingClientRect()
      const place = (axis, values) => layout[axis].l2p(values[{row}])
      return [box.x + place("xaxis", trace.x), box.y + place("yaxis", trace.y)]
    }}"""
    x, y = seen.page.evaluate(script)
    return x, y


def item_of(seen: Visit, trace: int, row: int) -> int:
    return int(
        seen.page.evaluate(f"document.querySelector('{PLOT}')._fullData[{trace}].customdata[{row}][0]")
    )


def test_a_click_shows_the_item_and_its_address_shows_the_same_to_a_teammate(address: str) -> None:
    with visit() as seen:
        seen.open(f"{address}?run=a&moment=19&color=margin", charts=2)
        x, y = place_of(seen, 1, 5)
        seen.page.mouse.move(x, y)
        seen.page.locator(f"{PLOT} .hovertext").wait_for()
        seen.page.mouse.click(x, y)
        seen.page.locator(".uw-item").wait_for()
        seen.settle(charts=2)
        told = seen.page.locator(".st-key-card-point").inner_text()
        copied = seen.page.url
        assert f"item={item_of(seen, 1, 5)}" in copied
        assert not seen.errors
    with visit() as teammate:
        teammate.open(copied, charts=2)
        assert teammate.page.locator(".st-key-card-point").inner_text() == told
        assert "epoch 0" in teammate.page.locator(".st-key-moments").inner_text()
        assert "misaligned" in teammate.page.locator(".uw-key").inner_text()
        assert not teammate.errors
        assert not teammate.exceptions()
        assert not teammate.foreign_hosts()


def drag_around(seen: Visit, *corners: tuple[float, float]) -> None:
    """Draw a line through points of the map, given as shares of its width and height."""
    box = seen.page.locator(f"{PLOT} .nsewdrag").first.bounding_box()
    assert box is not None
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    seen.page.mouse.move(*places[0])
    seen.page.mouse.down()
    for x, y in places[1:]:
        seen.page.mouse.move(x, y, steps=5)
    seen.page.mouse.up()


def stepped_back(seen: Visit) -> list[int]:
    """Per modality how many points stay in the foreground; −1 where all do."""
    script = (
        f"document.querySelector('{PLOT}')._fullData.slice(0, 2).map(t => t.selectedpoints?.length ?? -1)"
    )
    return [int(n) for n in seen.page.evaluate(script)]


def test_what_is_drawn_around_is_told_and_its_address_selects_the_same(address: str) -> None:
    title = ".st-key-card-selection .uw-title"
    with visit() as seen:
        seen.open(f"{address}?run=a&method=pca", charts=2)
        drag_around(seen, (0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99), (0.01, 0.03))
        expect(seen.page.locator(title)).to_have_text("Selected points: 128", timeout=60_000)
        seen.page.wait_for_url("**area=*", timeout=60_000)
        expect(seen.page.locator(".uw-picks a").first).to_be_visible(timeout=60_000)
        seen.settle(charts=2)
        assert stepped_back(seen) == [64, 64]
        copied = seen.page.url
        seen.page.locator(".uw-picks a").nth(3).click()
        seen.page.wait_for_url("**item=*", timeout=60_000)
        expect(seen.page.locator(title)).to_have_text("Selected points: 128", timeout=60_000)
        assert not seen.errors
    with visit() as teammate:
        teammate.open(f"{copied}&moment=19&links=selection", charts=2)
        expect(teammate.page.locator(title)).to_have_text("Selected points: 128", timeout=60_000)
        teammate.page.wait_for_function(
            f"document.querySelector('{PLOT}')._fullData.length === 3", timeout=60_000
        )
        assert stepped_back(teammate) == [64, 64]
        teammate.page.locator(".st-key-clear-selection button").click()
        expect(teammate.page.locator(title)).to_have_text("Selected points", timeout=60_000)
        teammate.page.wait_for_url(lambda url: "area" not in url, timeout=60_000)
        teammate.page.wait_for_function(
            f"!document.querySelector('{PLOT}')._fullData[0].selectedpoints", timeout=60_000
        )
        assert not teammate.errors


def test_same_points_stay_in_front_at_another_snapshot_and_can_be_drawn_around_again(address: str) -> None:
    title = ".st-key-card-selection .uw-title"
    half = [(0.01, 0.01), (0.5, 0.01), (0.5, 0.99), (0.01, 0.99), (0.01, 0.03)]
    with visit() as seen:
        seen.open(f"{address}?run=a&method=pca", charts=2)
        for _again in range(2):
            drag_around(seen, *half)
            expect(seen.page.locator(title)).to_contain_text(":", timeout=60_000)
            seen.page.wait_for_function(
                f"document.querySelector('{PLOT}')._fullLayout.selections.length === 0", timeout=60_000
            )
            seen.settle(charts=2)
            told = seen.page.locator(title).inner_text()
            kept = stepped_back(seen)
            assert told == f"Selected points: {sum(kept)}"
            assert 0 < sum(kept) < 128
            seen.press_slider("moments", "ArrowLeft")
            seen.page.wait_for_url("**moment=*", timeout=60_000)
            seen.settle(charts=2)
            assert seen.page.locator(title).inner_text() == told
            seen.page.wait_for_function(
                f"document.querySelector('{PLOT}')._fullData.slice(0, 2)"
                f".map(t => t.selectedpoints?.length).join() === '{kept[0]},{kept[1]}'",
                timeout=60_000,
            )
            seen.page.locator(".st-key-clear-selection button").click()
            expect(seen.page.locator(title)).to_have_text("Selected points", timeout=60_000)
            seen.page.wait_for_function(
                f"!document.querySelector('{PLOT}')._fullData[0].selectedpoints", timeout=60_000
            )
        assert not seen.errors


def test_box_selects_too_and_search_rings_without_building_the_map_anew(address: str) -> None:
    with visit() as seen:
        seen.open(f"{address}?run=a&method=pca", charts=2)
        seen.page.evaluate(f"document.querySelector('{PLOT}').mark = 'same'")
        seen.page.locator(f"{PLOT} [data-val=select]").click()
        drag_around(seen, (0.02, 0.02), (0.98, 0.98))
        expect(seen.page.locator(".st-key-card-selection .uw-title")).to_have_text(
            "Selected points: 128", timeout=60_000
        )
        found = seen.page.get_by_label("Search captions")
        found.fill("thing 7,")
        found.press("Enter")
        expect(seen.page.locator(".st-key-card-find")).to_contain_text("1 of 64 items match", timeout=60_000)
        ringed = f"document.querySelector('{PLOT}')._fullData.at(-1)"
        seen.page.wait_for_function(
            f"{ringed}.name === 'highlighted' && {ringed}.x.length === 2", timeout=60_000
        )
        assert seen.page.evaluate(f"document.querySelector('{PLOT}').mark") == "same"
        assert not seen.errors


def test_playing_moves_the_points_and_ends_at_the_last_snapshot(address: str) -> None:
    with visit() as seen:
        seen.open(f"{address}?run=a&moment=19", charts=2)
        first = f"document.querySelector('{PLOT}')._fullData[0].x[0]"
        before = float(seen.page.evaluate(first))
        seen.page.evaluate(f"document.querySelector('{PLOT}').mark = 'same'")
        seen.page.get_by_role("button", name="Play").click()
        seen.page.locator(".st-key-pause-moments").wait_for()
        seen.page.locator(".st-key-play-moments").wait_for(timeout=60_000)
        seen.settle(charts=2)
        seen.page.wait_for_url(lambda url: "moment" not in url and "run=a" in url, timeout=60_000)
        # what is drawn follows the address
        seen.page.wait_for_function(f"Math.abs({first} - {before}) > 1e-3", timeout=60_000)
        # the chart was never built anew, so zoom and hover survive
        assert seen.page.evaluate(f"document.querySelector('{PLOT}').mark") == "same"
        assert not seen.errors


def test_links_lead_to_the_item_s_history_and_back(address: str) -> None:
    with visit() as seen:
        seen.open(f"{address}?run=a&item=7", charts=2)
        seen.page.get_by_role("link", name="Its hardest negatives over the epochs").click()
        seen.page.wait_for_url("**/hard_negatives?*item=7*")
        seen.settle()
        assert "run=a" in seen.page.url
        assert not seen.exceptions()


@pytest.mark.parametrize("width", [900, 1440])
def test_what_a_click_shows_is_next_to_the_map(address: str, width: int) -> None:
    with visit(width=width) as seen:
        seen.open(f"{address}?run=a&item=5", charts=2)
        seen.page.locator(".uw-item").wait_for()
        names = ("map", "point", "selection", "find", "controls", "gap")
        boxes = {name: seen.page.locator(f".st-key-card-{name}").bounding_box() for name in names}
        found = {name: box for name, box in boxes.items() if box}
        assert len(found) == len(names)
        bottom = {name: box["y"] + box["height"] for name, box in found.items()}
        above = [("map", "gap"), ("controls", "find"), ("find", "point"), ("point", "selection")]
        if width == 900:
            above = list(itertools.pairwise(names))
            assert len({(box["x"], box["width"]) for box in found.values()}) == 1
        else:
            assert found["point"]["x"] > found["map"]["x"] + found["map"]["width"]
        for upper, lower in above:
            assert 0 < found[lower]["y"] - bottom[upper] < 40, (upper, lower)
        assert not seen.errors


RESIZED = """async figure => {
  const host = Object.assign(document.createElement("div"), { style: "width: 800px" })
  document.body.append(host)
  const { data, layout } = JSON.parse(figure)
  await Plotly.newPlot(host, data, { ...layout, autosize: true })
  const shown = () => ["xaxis", "yaxis"].map(axis => host._fullLayout[axis].range)
  const before = shown()
  for (const width of [300, 800, 250, 800]) {
    host.style.width = `${width}px`
    await Plotly.Plots.resize(host)
  }
  return [before, shown()]
}"""


def test_map_is_as_large_as_before_after_the_window_was_narrow() -> None:
    points = pd.DataFrame({"x": [1.0, 9.0], "y": [2.0, 8.0], "item_id": [1, 2], "modality": "image"})
    points = points.assign(group="", caption="", margin=np.nan, rank=np.nan)
    figure = embedding_map_figure(
        points,
        np.zeros(2),
        ["#111111"],
        theme("light"),
        modalities=("image", "text"),
        ranges=((0, 10), (0, 10)),
    )
    with visit() as seen:
        seen.page.goto("about:blank")
        seen.page.add_script_tag(content=get_plotlyjs())
        before, after = seen.page.evaluate(RESIZED, figure.to_json())
        assert not seen.errors
    assert after == before == [[0, 10], [0, 10]]
