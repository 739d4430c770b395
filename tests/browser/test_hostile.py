"""Whatever a log holds stays text: on every page, in tabs and cards, and in the report opened as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from tests.support.browser import Visit, served, visit
from tests.support.synthetic import make_run, rewrite_run_json, thumbnail
from uwml_core.report.build import write_report
from uwml_core.runlog.items import write_items
from uwml_core.runlog.notes import Anchor, Note, pin_note
from uwml_core.runlog.reader import Run
from uwml_core.weighting import UWMLConfig

pytestmark = pytest.mark.browser

TRAP = "window.__pwned = 1"
TEXTS = (
    f"<script>{TRAP}</script><img src=x onerror='{TRAP}'>",
    f"\"><svg onload=\"{TRAP}\"> ' onmouseover='{TRAP}' x='",
    f"[link](javascript:{TRAP}) <a href='javascript:{TRAP}'>here</a>",
    "\u202eright to left\u202c שלום مرحبا",
    "🦊👩‍👩‍👧 ✓ ℝ — $x^2$ :red[no] :material/home: `code`",
)
RUN = "evil 'run' & <b>&quot;"
VIEWS = (
    "?",
    "training?",
    "weight_curve?",
    "modal_balance?",
    "hard_negatives?epoch=all&",
    "hard_negatives?tab=persistent&",
    "hard_negatives?tab=false-negatives&",
    "hard_negatives?item=6&",
    "embedding_map?item=6&color=group&find=x&",
    f"compare?{urlencode({'runs': ['plain', RUN], 'baseline': 'plain'}, doseq=True)}&",
    "diagnosis?",
    "share?",
)
# Nothing of a text became an element, an attribute or an address.
CAUGHT = """() => [
  window.__pwned,
  document.querySelectorAll("img[src=x], svg[onload], [onmouseover], a[href^='javascript']").length,
  [...document.querySelectorAll("[data-testid=stMain] script")].length,
]"""


class Site(NamedTuple):
    """A served folder with a hostile run, that run, and a browser."""

    url: str
    run: Run
    seen: Visit


def hostile_run(folder: Path) -> Run:
    made = make_run(folder, run_id="evil", name=TEXTS[0], steps=40, epochs=4, items=48, without=("items",))
    fingerprint = write_items(
        folder,
        item_keys=[f"{k} {TEXTS[k % len(TEXTS)]}" for k in range(48)],
        labels=[*range(47), 46],
        captions=[[TEXTS[(k + c) % len(TEXTS)] + " x" for c in range(3)] for k in range(48)],
        groups=[TEXTS[k % 3] for k in range(48)],
        thumbnails=[thumbnail(k) for k in range(48)],
    )
    # the logger refuses such a name; a folder may have been renamed since
    path = made.rename(folder / RUN)
    run = Run(path)
    settings = {**run.config, "data": {"path": TEXTS[1]}, TEXTS[0]: {TEXTS[2]: TEXTS[1]}}
    rewrite_run_json(path, data_fingerprint=fingerprint, config=settings)
    # a file that is skipped is named
    (path / "steps" / "<img src=x onerror=window.__pwned=1>.parquet").write_bytes(b"no parquet")
    for page in ("training", "hard_negatives", "share"):
        pin_note(run, Note(page=page, anchor=Anchor(kind="step", value="3"), text="\n".join(TEXTS)))
    return Run(path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("logs")
    plain = UWMLConfig(curve="uniform", direction_mode="off", total_steps=40)
    make_run(folder, run_id="plain", name=TEXTS[2], steps=40, epochs=4, items=48, seed=1, config=plain)
    run = hostile_run(folder)
    rewrite_run_json(folder / "plain", data_fingerprint=run.info["data_fingerprint"])
    with served(folder) as url, visit() as seen:
        yield Site(url, run, seen)


@pytest.mark.parametrize("view", VIEWS)
def test_texts_of_a_log_stay_text(site: Site, view: str) -> None:
    url, run, seen = site
    seen.errors.clear()
    seen.open(f"{url}/{view}{urlencode({'run': run.run_id})}")
    seen.page.locator(".uw-headline").first.wait_for(timeout=60_000)
    seen.settle()
    seen.page.get_by_text(TEXTS[0]).first.wait_for(state="attached", timeout=60_000)
    assert seen.page.evaluate(CAUGHT) == [None, 0, 0]
    for chart in seen.page.locator(".uwml-plot .nsewdrag").all()[:2]:
        chart.hover(force=True)
    assert seen.page.evaluate(CAUGHT) == [None, 0, 0]
    assert seen.exceptions() == []
    assert seen.errors == []
    assert seen.foreign_hosts() == set()


def test_texts_of_a_log_stay_text_in_a_report_that_is_opened_as_a_file(site: Site, tmp_path: Path) -> None:
    path = write_report(site.run, tmp_path / f"<img src=x onerror='{TRAP}'>.html")
    seen = site.seen
    seen.errors.clear()
    seen.page.goto(path.as_uri())
    seen.page.wait_for_selector("html[data-drawn=yes]", timeout=60_000)
    for text in TEXTS[:3]:
        seen.page.get_by_text(text).first.wait_for(state="attached", timeout=60_000)
    assert seen.page.evaluate(CAUGHT)[:2] == [None, 0]
    assert seen.errors == []
