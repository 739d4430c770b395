"""Share in a real browser: the view that a permalink opens, a note's way back, report and bundle as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.browser import Visit, served, visit
from tests.support.synthetic import make_run
from uwml_core.runlog.notes import read_notes
from uwml_core.runlog.reader import Run, list_runs

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror='window.pwned=1'> **b** 看"


def to_share(seen: Visit) -> None:
    seen.page.get_by_role("link", name="Share").click()
    seen.page.wait_for_url("**/share*")
    seen.page.wait_for_selector(".st-key-card-permalink")
    seen.settle()


def choices(seen: Visit) -> str:
    return str(seen.page.locator(".st-key-card-controls").inner_text())


def test_a_permalink_opens_the_same_view_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    folder = make_run(tmp_path / "logs", run_id="demo", steps=24, epochs=3)
    with served(tmp_path / "logs") as url:
        with visit() as seen:
            seen.open(f"{url}/weight_curve?run=demo", charts=4)
            # faster than the page is drawn
            seen.press_slider("center", *["ArrowRight"] * 3)
            seen.page.wait_for_url("**center=0.18*")
            seen.page.locator(".st-key-card-recipes").get_by_text("0.18").first.wait_for()
            # the address changes before the page is drawn again
            seen.page.locator(".st-key-card-controls").get_by_text("was 0.15").first.wait_for()
            seen.settle(charts=4)
            shown = choices(seen)
            to_share(seen)
            link = seen.page.locator(".st-key-card-permalink code").first.inner_text()
            seen.page.locator(".st-key-note_value input").fill("5")
            seen.page.locator(".st-key-note_text textarea").fill(HOSTILE)
            seen.page.locator(".st-key-pin-note button").first.click()
            seen.page.wait_for_selector(".st-key-card-notes a")
            assert seen.page.evaluate("window.pwned") is None
            assert not seen.errors
        assert "center=0.18" in link
        with visit() as fresh:
            fresh.open(link, charts=4)
            assert choices(fresh) == shown
            pinned = fresh.page.get_by_text("1 pinned note")
            pinned.click()
            fresh.page.get_by_text(HOSTILE).wait_for()
            assert fresh.page.evaluate("window.pwned") is None
            assert not fresh.errors
            assert not fresh.exceptions()
            assert not fresh.foreign_hosts()
    (note,) = read_notes(Run(folder)).notes
    assert (note.page, note.text, note.view["center"]) == ("weight_curve", HOSTILE, "0.18")


def test_report_and_bundle_arrive_as_files_and_a_bundle_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    logs = tmp_path / "logs"
    make_run(logs, run_id="demo", steps=24, epochs=3)
    with served(logs) as url, visit() as seen:
        seen.open(f"{url}/share?run=demo")
        seen.page.locator(".st-key-build-report button").first.click()
        with seen.page.expect_download(timeout=60_000) as waiting:
            seen.page.locator(".st-key-download-report button").first.click(timeout=60_000)
        report = Path(waiting.value.path()).read_text(encoding="utf-8")
        assert waiting.value.suggested_filename == "demo.html"
        assert report.startswith("<!doctype html>")
        with seen.page.expect_download(timeout=60_000) as waiting:
            seen.page.locator(".st-key-download-bundle button").first.click()
        bundle = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(bundle)
        seen.page.locator(".st-key-bundle_upload input[type=file]").set_input_files(bundle)
        seen.page.get_by_text("Imported; it is the chosen run now.").wait_for(timeout=60_000)
        seen.page.wait_for_url("**run=demo-2*")
        assert not seen.errors
        assert not seen.exceptions()
    assert {run.run_id for run in list_runs(logs)} == {"demo", "demo-2"}
