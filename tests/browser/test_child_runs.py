"""A child run in a real browser: started by the sliders, watched, found again, stopped, compared."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.browser import Visit, served, visit
from uwml_core.runlog.reader import Run, list_runs

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).resolve().parents[2] / "logs"
LONG_MS = 180_000


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with a run that can be trained anew, for longer than anybody looks at it."""
    folder = tmp_path / "logs"
    shutil.copytree(SAMPLES / "sample-uwml", folder / "sample-uwml")
    shutil.copytree(SAMPLES / "_items", folder / "_items")
    described = folder / "sample-uwml" / "run.json"
    content = json.loads(described.read_text())
    content["config"]["train"]["epochs"] = 200
    described.write_text(json.dumps(content))
    return folder


def start_child(seen: Visit, url: str) -> None:
    seen.open(f"{url}/weight_curve?run=sample-uwml", charts=1)
    button = seen.page.get_by_role("button", name="Train with these")
    expect(button).to_be_disabled(timeout=LONG_MS)
    seen.press_slider("center", "ArrowRight", "ArrowRight")
    expect(button).to_be_enabled(timeout=LONG_MS)
    expect(seen.page.locator(".st-key-control-center")).to_contain_text("0.17", timeout=LONG_MS)
    button.click()


def child_of(logs: Path) -> Run:
    (child,) = [run for run in list_runs(logs) if run.info.get("parent") == "sample-uwml"]
    return child


def test_a_child_run_is_started_found_again_stopped_and_compared(logs: Path) -> None:
    with served(logs) as url, visit() as seen:
        start_child(seen, url)
        strip = seen.page.locator(".st-key-training")
        expect(strip).to_contain_text("sample-uwml, center 0.15→0.17", timeout=LONG_MS)
        expect(seen.page.get_by_role("button", name="Train with these")).to_be_disabled(timeout=LONG_MS)
        # on another page, and in a browser tab that knows nothing of it
        seen.page.get_by_test_id("stSidebarNavLink").filter(has_text="Runs").click()
        expect(strip).to_contain_text("of 4,400", timeout=LONG_MS)
        seen.page.reload(wait_until="commit")
        expect(strip).to_contain_text("of 4,400", timeout=LONG_MS)
        child = child_of(logs)
        assert child.config["loss"]["center"] == 0.17
        assert child.name == "sample-uwml, center 0.15→0.17"

        strip.get_by_role("button", name="Stop").click()
        expect(strip).to_contain_text("stopped by the user", timeout=LONG_MS)
        assert (child.status, (child.path / "checkpoint" / "last.pt").is_file()) == ("stopped", True)
        strip.get_by_role("link", name="Compare with its parent").click()
        expect(seen.page.locator(".uw-methods")).to_contain_text(child.name, timeout=LONG_MS)
        assert f"runs=sample-uwml&runs={child.run_id}&baseline=sample-uwml" in seen.page.url
        assert seen.exceptions() == []
        assert seen.errors == []
        assert seen.foreign_hosts() == set()


def test_the_end_of_the_server_ends_its_training_with_everything_saved(logs: Path) -> None:
    with served(logs) as url, visit() as seen:
        start_child(seen, url)
        expect(seen.page.locator(".st-key-training")).to_contain_text("of 4,400", timeout=LONG_MS)
    child = child_of(logs)
    end = time.monotonic() + LONG_MS / 1000
    while child.status == "running" and time.monotonic() < end:
        time.sleep(0.2)
    assert child.status == "stopped"
    assert (child.path / "checkpoint" / "last.pt").is_file()
