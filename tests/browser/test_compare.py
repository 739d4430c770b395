"""The compare page in a real browser: choosing, sharing, exporting, and a run that is written meanwhile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.browser import Visit, served, visit
from tests.support.synthetic import make_run, metrics_of
from uwml_core.runlog.writer import RunLogger
from uwml_core.weighting import UWMLConfig

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror='window.pwned=1'> *b* $z$ | & {y}"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    whole = {"epochs": 3, "steps_per_epoch": 4, "items": 160}
    plain = UWMLConfig(curve="uniform", direction_mode="off")
    make_run(folder, run_id="plain", config=plain, **whole)
    make_run(folder, run_id="bell", seed=1, **whole)
    make_run(folder, run_id="evil", name=HOSTILE, seed=2, config=UWMLConfig(curve="hard"), **whole)
    return folder


def headline(seen: Visit) -> str:
    return seen.page.locator(".uw-headline").inner_text()


def test_runs_are_chosen_shared_and_exported(logs: Path) -> None:
    with served(logs) as url:
        with visit() as seen:
            seen.open(f"{url}/compare?run=bell", charts=2)
            assert "bell" in headline(seen)
            seen.page.locator(".st-key-runs input").click()
            seen.page.get_by_role("option", name=HOSTILE).click()
            seen.page.keyboard.press("Escape")
            seen.page.get_by_text("Of 2 methods held against plain").first.wait_for()
            seen.settle(charts=2)
            assert seen.page.evaluate("window.pwned") is None
            with seen.page.expect_download() as waiting:
                seen.page.get_by_role("button", name="LaTeX").last.click()
            written = Path(waiting.value.path()).read_text()
            assert written.startswith("\\begin{tabular}")
            assert "\\textless{}img src=x" in written
            seen.page.wait_for_timeout(500)
            shared, sentence = seen.page.url, headline(seen)
            assert shared.count("runs=") == 3
            assert not seen.exceptions()
            assert not seen.errors
            assert not seen.foreign_hosts()
        with visit(width=900, scheme="dark") as seen:
            seen.open(shared, charts=2)
            assert headline(seen) == sentence
            wide = seen.page.evaluate(
                "(() => { const main = document.querySelector('[data-testid=stMain]');"
                " return main.scrollWidth - main.clientWidth })()"
            )
            assert wide <= 0
            seen.page.locator(".uw-entry a").first.click()
            seen.page.wait_for_url("**/hard_negatives?run=*item=*")
            assert not seen.errors


def test_runs_that_a_search_found_are_compared(logs: Path) -> None:
    with served(logs) as url, visit() as seen:
        seen.open(f"{url}/?search=finished")
        seen.page.get_by_text("Compare the 3 runs found").click()
        seen.page.get_by_text("Of 2 methods held against").first.wait_for()
        assert seen.page.url.count("runs=") == 3
        assert not seen.errors


def test_an_evaluation_of_a_running_run_arrives(tmp_path: Path) -> None:
    ids = np.arange(40)
    settings = {"loss": UWMLConfig().to_dict(), "train": {"seed": 7}}

    def evaluate(log: RunLogger, step: int, found: int) -> None:
        ranks = np.where(ids < found, 1.0, 9.0)
        both = {"i2t": ranks, "t2i": ranks}
        log.log_eval(step=step, epoch=step, split="val", metrics=metrics_of(both))
        for direction, captions in (("i2t", None), ("t2i", np.zeros(40, np.int16))):
            when = {"step": step, "epoch": step, "split": "val"}
            log.log_ranks(direction=direction, item_ids=ids, captions=captions, ranks=ranks, **when)

    with RunLogger(tmp_path, "done", config={**settings, "train": {"seed": 8, "epochs": 9}}) as log:
        evaluate(log, 0, 10)
    with (
        RunLogger(tmp_path, "live", config=settings, flush_seconds=0.2) as log,
        served(tmp_path) as url,
        visit() as seen,
    ):
        evaluate(log, 0, 10)
        seen.open(f"{url}/compare?run=live&runs=live&runs=done&baseline=done", charts=2)
        seen.page.get_by_text("find the same queries: no difference").first.wait_for(timeout=20_000)
        evaluate(log, 1, 35)
        seen.page.get_by_text("live beats done: +62.5 R@1").first.wait_for(timeout=20_000)
        seen.settle(charts=2)
        assert seen.points("progress") == 2 * (1 + 2)
        assert not seen.exceptions()
        assert not seen.errors
