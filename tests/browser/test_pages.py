"""What only a browser can tell: nothing from a log runs, colours follow, zoom stays."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.support.browser import served, visit
from tests.support.synthetic import make_run
from uwml_core.runlog.reader import list_runs, open_run

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).resolve().parents[2] / "logs"

NAME = "<script>window.pwned=1</script><img src=x onerror='window.pwned=1'> *b* [x](y) $z$ :material/home:"


@pytest.mark.parametrize("page", ["", "training", "weight_curve"])
def test_run_name_is_shown_literally_and_runs_nothing(tmp_path: Path, page: str) -> None:
    make_run(tmp_path, run_id="evil", name=NAME, steps=12, epochs=2)
    with served(tmp_path) as url, visit() as seen:
        seen.open(f"{url}/{page}?run=evil")
        seen.page.get_by_test_id("stMain").get_by_text(NAME).first.wait_for()
        seen.page.wait_for_timeout(500)
        assert seen.page.evaluate("window.pwned") is None
        assert not seen.exceptions()
        assert not seen.errors
        assert not seen.foreign_hosts()


def test_charts_follow_the_colour_scheme(tmp_path: Path) -> None:
    make_run(tmp_path, run_id="demo", steps=12, epochs=2)
    colour = "getComputedStyle(document.querySelector('.uwml-plot .xtick text')).fill"
    with served(tmp_path) as url, visit() as seen:
        seen.open(f"{url}/training", charts=8)
        light = seen.page.evaluate(colour)
        seen.page.emulate_media(color_scheme="dark")
        seen.page.wait_for_function(f"{colour} !== {light!r}")
        assert not seen.errors


def test_zoom_stays_until_another_run_is_chosen(tmp_path: Path) -> None:
    make_run(tmp_path, run_id="a", steps=30, epochs=3)
    make_run(tmp_path, run_id="b", steps=60, epochs=3)
    with served(tmp_path) as url, visit() as seen:
        seen.open(f"{url}/training?run=a", charts=8)
        whole = seen.x_range("loss")
        seen.zoom("loss")
        seen.page.wait_for_timeout(500)
        zoomed = seen.x_range("loss")
        assert zoomed[0] > whole[0]
        seen.page.get_by_text("Live", exact=True).click()
        seen.page.wait_for_url("**live=false*")
        seen.settle(charts=8)
        assert seen.x_range("loss") == zoomed
        seen.page.locator(".st-key-run input").click()
        seen.page.get_by_role("option", name="b").click()
        seen.page.wait_for_url("**run=b*")
        seen.settle(charts=8)
        seen.page.wait_for_function(
            "document.querySelector('.st-key-plot-loss .uwml-plot')._fullLayout.xaxis.range[1] > 50"
        )


def test_download_is_the_table_behind_the_chart(tmp_path: Path) -> None:
    make_run(tmp_path, run_id="demo", steps=30, epochs=3)
    with served(tmp_path) as url, visit() as seen:
        seen.open(f"{url}/training", charts=8)
        with seen.page.expect_download() as waiting:
            seen.page.locator(".st-key-csv-learning_rate button").first.click()
        table = pd.read_csv(waiting.value.path())
        assert waiting.value.suggested_filename == "learning_rate.csv"
        logged = open_run(tmp_path / "demo").frame("steps")["learning_rate"]
        assert table["value"].tolist() == pytest.approx(logged.tolist())


def test_click_on_a_row_chooses_the_run_in_picker_and_address(tmp_path: Path) -> None:
    make_run(tmp_path, run_id="a", steps=4, epochs=1)
    make_run(tmp_path, run_id="b", steps=4, epochs=1)
    with served(tmp_path) as url, visit() as seen:
        seen.open(f"{url}/?run=a")
        table = seen.page.locator('[data-testid="stDataFrame"]').first
        table.wait_for()
        rows = [run.run_id for run in list_runs(tmp_path)]
        table.click(position={"x": 15, "y": 35 * (rows.index("b") + 1) + 17})
        seen.page.wait_for_url("**run=b*")
        seen.page.get_by_text("Chosen run: b").wait_for()
        assert not seen.errors


TITLE, ARROW = "[data-testid=stMain] h1", "[data-testid=stExpandSidebarButton]"


def test_nothing_covers_the_title_while_the_sidebar_is_closed(tmp_path: Path) -> None:
    make_run(tmp_path, run_id="demo", steps=4, epochs=1)
    with served(tmp_path) as url:
        with visit(width=390) as seen:
            seen.open(url)
            arrow, title = (seen.page.locator(each).bounding_box() for each in (ARROW, TITLE))
            assert arrow is not None
            assert title is not None
            assert title["y"] >= arrow["y"] + arrow["height"]
        with visit(width=900) as seen:
            seen.open(url)
            title = seen.page.locator(TITLE).bounding_box()
            assert title is not None
            # beside an open sidebar it stands at the top
            assert title["y"] < 32
            assert seen.page.locator(ARROW).count() == 0


def test_charts_are_as_wide_as_their_cards_when_the_sidebar_closes_and_opens(tmp_path: Path) -> None:
    make_run(tmp_path, run_id="demo", steps=12, epochs=2)
    fits = """least => {
      const plots = [...document.querySelectorAll(".uwml-plot")]
      const isFit = plot => Math.abs(plot.clientWidth - plot._fullLayout.width) < 1
      return plots[0].clientWidth > least && plots.every(isFit)
    }"""
    with served(tmp_path) as url, visit() as seen:
        seen.open(f"{url}/training", charts=8)
        narrow = seen.page.evaluate("document.querySelector('.uwml-plot').clientWidth")
        seen.page.get_by_test_id("stSidebar").hover()
        seen.page.get_by_test_id("stSidebarCollapseButton").locator("button").click()
        seen.page.wait_for_function(fits, arg=narrow + 50, timeout=30_000)
        seen.page.locator(ARROW).click()
        seen.page.wait_for_function(fits.replace("> least", "=== least"), arg=narrow, timeout=30_000)
        assert not seen.errors


def test_cards_side_by_side_end_on_one_line(tmp_path: Path) -> None:
    make_run(tmp_path, run_id="demo", steps=12, epochs=2)
    bottoms = """names => names.map(name =>
      Math.round(document.querySelector(`.st-key-card-${name}`).getBoundingClientRect().bottom))"""
    with served(tmp_path) as url, visit() as seen:
        seen.open(f"{url}/weight_curve", charts=4)
        for row in (["curve", "controls"], ["what-if", "bands"], ["weights", "epochs", "recipes"]):
            for name in row:
                seen.page.locator(f".st-key-card-{name}").wait_for()
            assert len(set(seen.page.evaluate(bottoms, row))) == 1, row


@pytest.mark.parametrize("run", ["sample-uwml", "sample-video"])
def test_pictures_of_a_sheet_stay_within_their_entries(run: str) -> None:
    outside = """() => [...document.querySelectorAll(".uw-entry img")].filter(picture => {
      const inner = picture.getBoundingClientRect()
      const outer = picture.closest(".uw-entry").getBoundingClientRect()
      return inner.left < outer.left || inner.right > outer.right || inner.bottom > outer.bottom
    }).length"""
    with served(SAMPLES) as url, visit(width=900) as seen:
        for width in (900, 1440):
            seen.page.set_viewport_size({"width": width, "height": 900})
            seen.open(f"{url}/hard_negatives?run={run}")
            seen.page.locator(".uw-entry .uw-answers img").first.wait_for()
            assert seen.page.evaluate(outside) == 0, width


def test_a_few_pages_of_a_sheet_have_a_button_each() -> None:
    with served(SAMPLES) as url, visit() as seen:
        seen.open(f"{url}/hard_negatives?run=sample-uwml&find=clock&direction=i2t", charts=0)
        seen.page.locator(".st-key-page").get_by_text("3", exact=True).wait_for()
        buttons = seen.page.locator(".st-key-page button").all_inner_texts()
        assert [text for text in buttons if text.isdigit()] == [*"123"]
