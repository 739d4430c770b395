"""One visitor's way through the app in a real browser, on a training that runs meanwhile."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Visit, served, visit
from tests.support.synthetic import make_run

pytestmark = pytest.mark.browser

GROWTH_WITHIN_S = 90


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Path]:
    """An empty folder of runs; a training started into it ends with the test."""
    folder = tmp_path / "logs"
    folder.mkdir()
    yield folder
    subprocess.run(["pkill", "-TERM", "-f", f"run.root={folder}"], check=False)


def grown_points(seen: Visit, key: str, before: int) -> int:
    deadline = time.monotonic() + GROWTH_WITHIN_S
    while time.monotonic() < deadline:
        points = seen.points(key)
        if points > before:
            return points
        seen.page.wait_for_timeout(500)
    raise AssertionError(f"chart {key} stayed at {before} points for {GROWTH_WITHIN_S} s")


def test_visitor_starts_the_demo_zooms_into_the_live_run_and_moves_a_slider(logs):
    with served(logs) as url, visit() as seen:
        # the very first request of the server is a deep link: it must get the frame too
        seen.open(f"{url}/training")
        assert seen.page.get_by_role("heading", name="Training", exact=True).count() == 1
        links = seen.page.get_by_test_id("stSidebarNavLink").all_inner_texts()
        assert [text.split()[-1] for text in links[:2]] == ["Runs", "Training"]

        seen.page.get_by_test_id("stSidebarNavLink").filter(has_text="Runs").click()
        seen.page.get_by_role("heading", name="Runs", exact=True).wait_for()
        seen.settle()
        seen.page.get_by_role("button", name="Start the demo").click()
        seen.page.wait_for_url("**run=*", timeout=120_000)

        seen.page.get_by_test_id("stSidebarNavLink").filter(has_text="Training").click()
        seen.page.locator(".st-key-plot-loss .uwml-plot .nsewdrag").wait_for(timeout=60_000)
        seen.settle(charts=8)
        start = grown_points(seen, "loss", 5)
        seen.zoom("loss")
        seen.page.wait_for_timeout(500)
        zoomed = seen.x_range("loss")
        assert zoomed[0] > 0
        grown_points(seen, "loss", start)
        assert seen.x_range("loss") == pytest.approx(zoomed)

        seen.page.get_by_test_id("stSidebarNavLink").filter(has_text="Weight curve").click()
        seen.page.locator(".st-key-plot-curve .uwml-plot .nsewdrag").wait_for(timeout=60_000)
        assert center_shown(seen) == "center 0.15"
        seen.press_slider("center", "ArrowRight", "ArrowRight")
        seen.page.get_by_text("was 0.15").wait_for(timeout=20_000)
        # by way of 0.16: each key press is a rerun of its own
        wait_for_center(seen, "center 0.17")
        # two more live refreshes later the slider still stands where it was put
        seen.page.wait_for_timeout(5_000)
        assert center_shown(seen) == "center 0.17"

        assert seen.exceptions() == []
        assert seen.errors == []
        assert seen.foreign_hosts() == set()


def test_page_opened_on_an_empty_folder_shows_the_first_run_that_appears(logs):
    with served(logs) as url, visit() as seen:
        seen.open(f"{url}/training")
        make_run(logs, steps=30, batch=8, epochs=1)
        seen.page.locator(".st-key-plot-loss .uwml-plot .nsewdrag").wait_for(timeout=60_000)
        assert seen.errors == []


def wait_for_center(seen: Visit, wanted: str) -> None:
    deadline = time.monotonic() + 20
    while (shown := center_shown(seen)) != wanted:
        assert time.monotonic() < deadline, f"20 s after the slider moved the chart shows {shown}"
        seen.page.wait_for_timeout(200)


def center_shown(seen: Visit) -> str:
    script = """() => document.querySelector('.st-key-plot-curve .uwml-plot')._fullLayout.annotations
        .map(note => note.text).find(text => text.startsWith('center'))"""
    return str(seen.page.evaluate(script))
