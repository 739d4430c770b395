"""Every page in a real browser, on a run of every kind: an answer, or what is missing and how to log it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, NamedTuple

import pytest

from tests.support.browser import Visit, served, visit
from tests.support.kinds_of_run import KINDS, kinds_of_run

pytestmark = pytest.mark.browser

HOME = ""
PAGES = (
    HOME,
    "training",
    "weight_curve",
    "modal_balance",
    "hard_negatives",
    "embedding_map",
    "compare",
    "diagnosis",
    "learn",
    "share",
)


class Told(NamedTuple):
    """What a page says: headline as a pattern, charts that it draws (None for any), whether it shows code."""

    headline: str
    charts: int | None = 0
    teaches: bool = False


NO_STEPS, NO_SNAPSHOTS = (
    Told(f"This run has no {table} table", teaches=True) for table in ("steps", "snapshots")
)
MATRIX = Told("of a finished model: ", teaches=True)
SHARED = Told("links, reports and bundles of it all show the same")
ALONE = Told("Too little data yet: choose a second run", 1, teaches=True)
UNRANKED = Told("Too little data yet: choose a second run", teaches=True)
TELLS: dict[str, dict[str, Told]] = {
    # the same whatever run is chosen
    HOME: {"running": Told("7 runs, 1 running")},
    "training": {
        "finished": Told("The loss fell by .* Best val R@1", 8),
        "running": Told("Too little data yet|The loss ", 8),
        "stale": Told("Too little data yet: .* steps logged", 8),
        "empty": NO_STEPS,
        # what such a loop does not log has no chart
        "loop": Told("The loss fell by .* No evaluation on val yet", 3),
        "matrix": MATRIX,
    },
    "weight_curve": {
        "finished": Told("hold .* of the gradient", 4),
        "running": Told("hold .* of the gradient", 4),
        "stale": Told("hold .* Too little data yet for an interval", 4),
        "empty": NO_STEPS,
        "loop": Told("No weights were logged", 4),
        "matrix": MATRIX,
    },
    "modal_balance": {
        "finished": Told("t2i lags i2t by", 2),
        "running": Told("lags|Neither direction lags|Too little data yet", 2),
        "stale": Told("lags|Neither direction lags|Too little data yet", 2),
        "empty": NO_STEPS,
        "loop": Told("No direction weight was logged", 1),
        "matrix": MATRIX,
    },
    "hard_negatives": {
        "finished": Told("pairs lie below their hardest negative"),
        "running": Told("pairs lie below their hardest negative"),
        "stale": Told("pairs lie below their hardest negative"),
        "empty": Told("This run has no pairs table", teaches=True),
        "loop": Told("pairs lie below their hardest negative"),
        "matrix": Told("pairs lie below their hardest negative"),
    },
    "embedding_map": {
        "finished": Told("pairs went from", 2),
        "running": Told("pairs (went from|lie)", 2),
        "stale": Told("too little data yet to say how they move", 2),
        "empty": NO_SNAPSHOTS,
        "loop": NO_SNAPSHOTS,
        "matrix": MATRIX,
    },
    "compare": {
        "finished": Told("finished|plain", 2),
        "running": Told("Too little data yet to tell running from stale", 2),
        "stale": Told("Too little data yet to tell stale from running", 2),
        "empty": UNRANKED,
        "loop": UNRANKED,
        "matrix": ALONE,
    },
    "diagnosis": {
        "finished": Told("findings?: |Nothing found", None),
        "running": Told("findings?: |Nothing found", None),
        "stale": Told("findings?: |Nothing found", None),
        "empty": Told("no rule can judge this run"),
        "loop": Told("findings?: |Nothing found", None),
        "matrix": Told("findings?: |Nothing found|no rule can judge this run", None),
    },
    # on its own numbers, whatever run is chosen
    "learn": {"finished": Told("1 of 9: Easy negatives drown the gradient", 1)},
    "share": {
        **dict.fromkeys(KINDS, SHARED),
        "running": Told("is running: a report or bundle holds what it has written so far"),
        "stale": Told("a report or bundle holds what it has written so far"),
    },
}

# Serious findings of axe-core in what Streamlit draws and no page of ours can change.
NOT_OURS = {
    # a heading and a list of its own per section of the menu, straight inside one list
    "list": "[data-testid=stSidebarNavItems]",
    "listitem": "[data-testid=stSidebarNavItems] li",
}
SEEN_BY_AXE = (
    "?run=finished",
    "training?run=finished",
    "training?run=empty",
    "weight_curve?run=finished&center=0.3",
    "modal_balance?run=finished&window=20",
    "hard_negatives?run=finished",
    "hard_negatives?run=finished&item=5",
    "embedding_map?run=finished&item=5",
    "compare?run=finished",
    "compare?run=empty",
    "diagnosis?run=finished",
    "learn?step=9",
    "share?run=finished",
)
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
FINDINGS = """async notOurs => {
  const found = await axe.run(document, { resultTypes: ["violations"] })
  const grave = found.violations.filter(each => ["serious", "critical"].includes(each.impact))
  const all = grave.flatMap(({ id, nodes }) => nodes.map(node => ({ id, node })))
  return all.map(({ id, node }) => {
    const part = document.querySelector(node.target[0])
    const theirs = Boolean(notOurs[id]) && part.matches(notOurs[id])
    return { id, theirs, html: node.html.slice(0, 200), why: node.failureSummary }
  })
}"""


AT_REST = """() => !document.querySelector("[data-stale=true]")
  && document.querySelector(".uw-headline, [data-testid=stCode]")
  && document.getAnimations().every(each => each.playState !== "running")"""

# Where a page shows how far the run has come; the table of runs is a picture, but tells screen readers.
FOLLOWED = {HOME: "[data-testid=stDataFrame] canvas table", "compare": ".st-key-plot-progress .uwml-plot"}
NEWEST = """where => {
  const part = document.querySelector(where)
  const points = part?._fullData?.reduce((n, trace) => n + trace._length, 0)
  const steps = part?.querySelector("tr") ? part.textContent : part?.textContent.match(/[\\d,]+ steps?/)?.[0]
  return String(points ?? steps ?? "")
}"""


class Site(NamedTuple):
    """A served folder with a run of every kind, and a browser to look at it."""

    url: str
    seen: Visit


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("logs")
    with kinds_of_run(folder), served(folder) as url, visit() as seen:
        yield Site(url, seen)


@pytest.fixture
def fresh(site: Site) -> Site:
    """The site with nothing remembered of the page before."""
    site.seen.page.emulate_media(color_scheme="light")
    site.seen.errors.clear()
    site.seen.requests.clear()
    return site


def nothing_failed(seen: Visit) -> None:
    assert seen.exceptions() == []
    assert seen.errors == []
    assert seen.foreign_hosts() == set()


@pytest.mark.parametrize(("page", "kind"), [(page, kind) for page in PAGES for kind in TELLS[page]])
def test_page_answers_or_says_what_is_missing(fresh: Site, page: str, kind: str) -> None:
    url, seen = fresh
    told = TELLS[page][kind]
    seen.open(f"{url}/{page}?run={kind}", charts=told.charts or 0)
    headline = seen.page.locator(".uw-headline").first
    headline.wait_for(timeout=60_000)
    assert re.search(told.headline, headline.inner_text()), headline.inner_text()
    if told.charts is not None:
        assert seen.page.locator(".uwml-plot").count() == told.charts
    if told.teaches:
        seen.page.locator('[data-testid="stMain"] [data-testid="stCode"]').first.wait_for(timeout=60_000)
    nothing_failed(seen)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "learn"])
def test_open_page_follows_the_run_that_is_written_meanwhile(fresh: Site, page: str) -> None:
    url, seen = fresh
    # on a slow machine the page may be drawn anew all the time
    seen.page.goto(f"{url}/{page}?run=running", wait_until="commit")
    seen.page.locator(FOLLOWED.get(page, ".uw-status")).first.wait_for(state="attached", timeout=60_000)
    newest = f"({NEWEST})({FOLLOWED.get(page, '.uw-status')!r})"
    before = seen.page.wait_for_function(newest, timeout=60_000).json_value()
    seen.page.wait_for_function(f"{newest} !== {before!r}", timeout=90_000)
    nothing_failed(seen)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", SEEN_BY_AXE)
def test_nothing_of_ours_hinders_a_reader(fresh: Site, address: str, scheme: Any) -> None:
    url, seen = fresh
    seen.page.emulate_media(color_scheme=scheme)
    # what is drawn again fades, and has another colour meanwhile
    seen.open(f"{url}/{address}&live=false")
    seen.page.wait_for_function(AT_REST, timeout=60_000)
    seen.page.evaluate(AXE)
    found: list[dict[str, Any]] = seen.page.evaluate(FINDINGS, NOT_OURS)
    assert [each for each in found if not each["theirs"]] == []
    assert {each["id"] for each in found if each["theirs"]} == set(NOT_OURS)
    nothing_failed(seen)


def test_every_page_of_the_menu_is_visited(fresh: Site) -> None:
    url, seen = fresh
    seen.open(f"{url}/?run=finished")
    links = seen.page.get_by_test_id("stSidebarNavLink").evaluate_all("all => all.map(a => a.pathname)")
    assert {link.strip("/") for link in links} == set(PAGES)
