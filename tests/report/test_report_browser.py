"""The report as a file in a real browser without a network: charts, sliders, colours, and nothing hostile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.report.conftest import LOGS
from tests.report.test_report import SAMPLES, hostile_run
from tests.support.browser import Visit, visit
from uwml_core.analysis.curves import MARGIN_GRID, curve_weight
from uwml_core.report.build import write_report
from uwml_core.runlog.reader import Run, open_run
from uwml_core.weighting import UWMLConfig, difficulty_weight, stage_steepness

pytestmark = pytest.mark.browser

DRAWN = "html[data-drawn=yes]"


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[Visit]:
    """A file, opened offline; every other address is refused and noted."""
    with visit(**options) as seen:
        seen.page.context.set_offline(True)
        seen.page.route("**/*", lambda route: _only(route, path))
        seen.page.goto(path.as_uri())
        seen.page.wait_for_selector(DRAWN, timeout=60_000)
        yield seen
        assert seen.errors == []
        # what the page made itself is no request
        asked = [address for address in seen.requests if not address.startswith(("blob:", "data:"))]
        assert asked == [path.as_uri()]


def _only(route: Any, path: Path) -> None:
    if route.request.url == path.as_uri():
        route.continue_()
    else:
        route.abort()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    return {name: write_report(open_run(LOGS / name), folder / f"{name}.html") for name in SAMPLES}


def curve_of(seen: Visit, place: int = -1) -> list[float]:
    script = """place => { const curves = document.querySelector("[data-chart=curve]")._fullData
      .filter(trace => trace.yaxis === "y2" && trace.visible === true)
      return Array.from(curves.at(place).y) }"""
    values: list[float] = seen.page.evaluate(script, place)
    return values


@pytest.mark.parametrize("name", SAMPLES)
def test_every_chart_is_drawn_offline(files: dict[str, Path], name: str) -> None:
    with opened(files[name]) as seen:
        drawn = seen.page.evaluate(
            """() => [...document.querySelectorAll(".plot")].map(plot =>
              [plot.dataset.chart, plot._fullData.reduce((n, trace) => n + (trace._length ?? 0), 0)])"""
        )
        # a loss without a temperature has one chart less
        assert len(drawn) in (14, 15)
        assert [key for key, points in drawn if not points] == []
        assert seen.page.evaluate("document.querySelector('#problem').hidden")
        broken = "[...document.images].filter(image => !image.complete || !image.naturalWidth).length"
        assert seen.page.evaluate(broken) == 0
        assert seen.page.evaluate("document.images.length") > 20
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_slider_moves_the_curve_the_bands_and_the_table(files: dict[str, Path]) -> None:
    with opened(files["sample-uwml"]) as seen:
        before, table = curve_of(seen), seen.page.inner_text("#preview")
        bands = "[...document.querySelector('[data-chart=bands]')._fullData[2].x]"
        shares = seen.page.evaluate(bands)
        assert shares[0] == shares[1]
        seen.page.locator("#parameter-center").focus()
        for _ in range(15):
            seen.page.keyboard.press("ArrowRight")
        seen.page.wait_for_function(f"() => {bands}[0] !== {bands}[1]")
        config = open_run(LOGS / "sample-uwml").config["loss"]
        kappa = stage_steepness(
            seen.page.evaluate("uwmlPreview.data.progress"),
            config["steepness_start"],
            config["steepness_end"],
        )
        expected = difficulty_weight(
            MARGIN_GRID, center=0.3, steepness=kappa, hard_floor=config["hard_floor"]
        )
        assert curve_of(seen) == pytest.approx(expected.tolist(), abs=1e-12)
        assert curve_of(seen, 0) == pytest.approx(before)
        assert seen.page.inner_text("#preview") != table
        assert "0.3 (was 0.15)" in seen.page.inner_text(".controls")
        seen.page.click("#reset")
        seen.page.wait_for_function(f"() => {bands}[0] === {bands}[1]")
        assert curve_of(seen) == pytest.approx(before)
        assert seen.page.inner_text("#preview") == table


def test_each_slider_changes_what_is_shown(files: dict[str, Path]) -> None:
    changed = "before => document.querySelector('#preview').innerText !== before"
    with opened(files["sample-uwml"]) as seen:
        for name in ("steepness_start", "steepness_end", "hard_floor", "max_weight"):
            before = seen.page.inner_text("#preview")
            seen.page.locator(f"#parameter-{name}").focus()
            # the floor is at its lowest already
            seen.page.keyboard.press("End" if name == "hard_floor" else "Home")
            seen.page.wait_for_function(changed, arg=before)
            # a curve without steepness has no floor that could change anything
            seen.page.click("#reset")


def test_the_kind_of_curve_can_be_chosen(files: dict[str, Path]) -> None:
    with opened(files["sample-uwml"]) as seen:
        seen.page.select_option("#parameter-curve", "uniform")
        seen.page.wait_for_function("() => uwmlPreview.tried.curve === 'uniform'")
        seen.page.wait_for_timeout(300)
        assert set(curve_of(seen)) == {1.0}


def test_colours_follow_the_system_and_the_switch(files: dict[str, Path]) -> None:
    colour = "getComputedStyle(document.querySelector('[data-chart=loss] .xtick text')).fill"
    page = "getComputedStyle(document.body).backgroundColor"
    with opened(files["sample-uwml"], scheme="dark") as seen:
        dark = [seen.page.evaluate(script) for script in (colour, page)]
        seen.page.click("[data-theme-choice=light]")
        seen.page.wait_for_function(f"() => {colour} !== {dark[0]!r}")
        light = [seen.page.evaluate(script) for script in (colour, page)]
        assert dark[1] != light[1]
        assert seen.page.get_attribute("[data-theme-choice=light]", "aria-pressed") == "true"
        seen.page.click("[data-theme-choice=auto]")
        seen.page.wait_for_function(f"() => {colour} === {dark[0]!r}")
        seen.page.emulate_media(color_scheme="light")
        seen.page.wait_for_function(f"() => {colour} === {light[0]!r}")


def test_a_chart_hands_out_its_table(files: dict[str, Path]) -> None:
    with opened(files["sample-uwml"]) as seen:
        with seen.page.expect_download() as waiting:
            seen.page.click("[data-csv=learning_rate]")
        table = pd.read_csv(waiting.value.path())
        assert waiting.value.suggested_filename == "learning_rate.csv"
        logged = open_run(LOGS / "sample-uwml").frame("steps")["learning_rate"]
        assert table["value"].tolist() == pytest.approx(logged.tolist())


def test_controls_are_reached_by_keyboard_and_named(files: dict[str, Path]) -> None:
    with opened(files["sample-uwml"]) as seen:
        reached = set()
        for _ in range(120):
            seen.page.keyboard.press("Tab")
            reached.add(
                seen.page.evaluate("document.activeElement.id || document.activeElement.dataset.themeChoice")
            )
        assert {"auto", "light", "dark", "parameter-center", "parameter-curve", "reset"} <= reached
        nameless = """[...document.querySelectorAll("button, input, select, img, [role=img]")].filter(part =>
          !(part.ariaLabel || part.alt || part.innerText || part.labels?.length)).length"""
        assert seen.page.evaluate(nameless) == 0


def test_hostile_texts_run_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    path = write_report(hostile_run(tmp_path), tmp_path / "<b>'&.html")
    with opened(path) as seen:
        assert seen.page.evaluate("window.pwned") is None
        assert "window.pwned=1</script>" in seen.page.inner_text("h1")
        assert seen.page.locator("img[src=x]").count() == 0
        # the policy holds even where a text had become a script
        seen.page.evaluate(
            """() => { const script = document.createElement("script")
              script.textContent = "window.pwned = 1"
              document.body.append(script) }"""
        )
        assert seen.page.evaluate("window.pwned") is None
        assert len(seen.errors) == 1
        assert "Content Security Policy" in seen.errors.pop()


def test_a_browser_that_cannot_unpack_says_so(files: dict[str, Path]) -> None:
    with visit() as seen:
        seen.page.add_init_script("delete window.DecompressionStream")
        seen.page.goto(files["sample-uwml"].as_uri())
        seen.page.wait_for_selector("#problem:not([hidden])")
        assert "DecompressionStream" in seen.page.inner_text("#problem")
        assert "Best R@1" in seen.page.inner_text("main")


def test_the_curve_in_the_file_is_the_one_in_use(files: dict[str, Path]) -> None:
    run = Run(LOGS / "sample-video")
    config = UWMLConfig(**{**run.config["loss"], "modalities": tuple(run.config["loss"]["modalities"])})
    with opened(files["sample-video"]) as seen:
        kappa = seen.page.evaluate(
            f"uwmlCurve.steepness(uwmlPreview.data.progress, 2, {config.steepness_end})"
        )
        expected = curve_weight(MARGIN_GRID, kappa, config)
        assert curve_of(seen) == pytest.approx(expected.tolist(), abs=1e-12)
