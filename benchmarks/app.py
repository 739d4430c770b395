"""The app in a real browser: first paint and interactions of each page over a long run, and many visits.

Run: python -m benchmarks.app [--folder DIR] [--moves 5] [--pages NAME ...] [--visits 20 --rounds 3]

Server time is the processor time that the server's process took meanwhile, all threads; browser time is the
wall clock until the page is drawn again, both in full. Each page gets a server of its own, which has shown a
small run before, so that its caches are empty of the long run. With ``--visits`` one server is asked by many
browser pages at once, which go through all pages of the sample runs and of the long run, round by round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

from benchmarks.large_run import make_large_run
from tests.support.browser import ARGUMENTS, Visit, chromium, served, visit

ROOT = Path(__file__).resolve().parents[1]
LARGE, SMALL = "large", "sample-uwml"
SIDES = ("server", "browser")
TIMEOUT_MS = 300_000.0
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
HEADING = "h1.uw-page"
# Sets uwmlRan when the script has begun to run and ended.
WATCH = """() => {
  const app = document.querySelector('[data-testid="stApp"]')
  let began = false
  window.uwmlRan = false
  new MutationObserver((_changes, observer) => {
    const state = app.getAttribute("data-test-script-state")
    if (state === "running") began = true
    if (began && state === "notRunning") { window.uwmlRan = true; observer.disconnect() }
  }).observe(app, { attributes: true, attributeFilter: ["data-test-script-state"] })
}"""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What a visitor does: its name, what is clicked or focused, and the key that moves it, if any."""

    name: str
    target: str
    key: str = ""


SLIDER = ".st-key-{name} input[type=range]"
TABS = ".st-key-tab button >> nth={place}"
PAGES: dict[str, tuple[str, tuple[Moved, ...]]] = {
    "runs": ("", ()),
    "training": ("training", ()),
    "weight curve": (
        "weight_curve",
        (Moved(name="center", target=SLIDER.format(name="center"), key="ArrowRight"),),
    ),
    "modal balance": (
        "modal_balance",
        (Moved(name="sensitivity", target=SLIDER.format(name="sensitivity"), key="ArrowRight"),),
    ),
    "hard negatives": (
        "hard_negatives",
        tuple(
            Moved(name=name, target=TABS.format(place=place))
            for place, name in ((1, "persistent"), (3, "wrong pairs"), (0, "hardest"))
        ),
    ),
    "embedding map": ("embedding_map", ()),
    "compare": ("compare", ()),
    "share": ("share", ()),
}


class Server:
    """Processor time and memory of the process behind an address."""

    def __init__(self, url: str) -> None:
        wanted = f"--server.port={urlsplit(url).port}".encode()
        found = (
            path for path in Path("/proc").glob("[0-9]*/cmdline") if wanted in _content(path).split(b"\0")
        )
        self.pid = int(next(found).parent.name)

    def cpu_ms(self) -> float:
        """Processor time so far, of threads that have ended, too."""
        # the clock of another process, as clock_getcpuclockid(3) names it
        return 1e3 * time.clock_gettime(~self.pid << 3 | 2)

    def resident_mib(self) -> float:
        """Resident memory now."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        # it has ended meanwhile
        return b""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Server and browser time of one thing, ms."""

    server_ms: float
    browser_ms: float


def timed(server: Server, work: Callable[[], object]) -> Taken:
    """Do something in the browser; times until it returns."""
    wall, cpu = time.perf_counter(), server.cpu_ms()
    work()
    return Taken(server_ms=server.cpu_ms() - cpu, browser_ms=1e3 * (time.perf_counter() - wall))


def address(url: str, page: str, run: str) -> str:
    """Address of a page about a run."""
    return f"{url}/{page}?run={run}"


def drawn(seen: Visit) -> None:
    """Wait until the page is drawn in full."""
    seen.page.wait_for_selector(HEADING, timeout=TIMEOUT_MS)
    seen.settle(timeout_ms=TIMEOUT_MS)


def go(seen: Visit, url: str) -> None:
    """Open an address and wait until it is drawn in full."""
    seen.page.goto(url, wait_until="commit")
    drawn(seen)


def move(seen: Visit, moved: Moved) -> None:
    """Move a control and wait until the script has run for it and the page is drawn again."""
    seen.page.evaluate(WATCH)
    target = seen.page.locator(moved.target).first
    if moved.key:
        target.press(moved.key)
    else:
        target.click()
    seen.page.wait_for_function("() => window.uwmlRan", timeout=TIMEOUT_MS)
    drawn(seen)


@dataclass(frozen=True, kw_only=True)
class PageResult:
    """What one page took: until its first paint, until it was drawn, each move, and the server's memory."""

    paint_ms: float
    first: Taken
    moves: dict[str, list[Taken]]
    resident_mib: float


def measure_page(logs: Path, name: str, count: int) -> PageResult:
    """Open a page over a long run with empty caches, then move what it has."""
    page, moves = PAGES[name]
    with served(logs) as url, visit() as seen:
        server = Server(url)
        go(seen, address(url, page, SMALL))
        seen.page.goto("about:blank")
        first = timed(server, lambda: go(seen, address(url, page, LARGE)))
        paint = float(seen.page.evaluate(PAINT))
        times: dict[str, list[Taken]] = {moved.name: [] for moved in moves}
        # in turn, as a tab that is open already cannot be opened
        for moved in list(moves) * count:
            times[moved.name].append(timed(server, lambda moved=moved: move(seen, moved)))
        if seen.errors or seen.exceptions():
            raise RuntimeError(f"{name}: {[*seen.errors, *seen.exceptions()][0]}")
        return PageResult(paint_ms=paint, first=first, moves=times, resident_mib=server.resident_mib())


def page_lines(name: str, result: PageResult) -> Iterator[str]:
    """Lines of the table for one page."""
    first = result.first
    yield (
        f"{name:16s} {'opened':12s} {result.paint_ms:8.0f} {first.server_ms:10.0f} {first.browser_ms:10.0f}"
        f" {result.resident_mib:8.0f}"
    )
    for move_name, times in result.moves.items():
        server, browser = (statistics.median(getattr(t, f"{side}_ms") for t in times) for side in SIDES)
        yield f"{'':16s} {move_name:12s} {'':8s} {server:10.0f} {browser:10.0f}"


def report_pages(logs: Path, names: list[str], moves: int) -> None:
    """Print the table."""
    print(f"load {', '.join(f'{value:.1f}' for value in os.getloadavg())}, {os.cpu_count()} CPUs")
    print(f"{'page':16s} {'':12s} {'paint ms':>8s} {'server ms':>10s} {'browser ms':>10s} {'RSS MiB':>8s}")
    for name in names:
        for line in page_lines(name, measure_page(logs, name, moves)):
            print(line, flush=True)


def report_visits(logs: Path, names: list[str], visits: int, rounds: int) -> None:
    """Have many visitors go through the pages at once; print how the server's memory grows by round."""
    runs = sorted(path.name for path in logs.iterdir() if (path / "run.json").exists())
    print(f"{visits} visits at once, {len(names)} pages, runs {', '.join(runs)}")
    with served(logs) as url, sync_playwright() as playwright:
        server = Server(url)
        shown = playwright.chromium.launch(executable_path=chromium(), headless=True, args=ARGUMENTS)
        seen = [listening(shown.new_context()) for _visit in range(visits)]
        print(
            f"{'round':>6s} {'pages':>6s} {'failed':>7s} {'median s':>9s} {'slowest s':>10s} {'RSS MiB':>8s}"
        )
        print(f"{0:6d} {0:6d} {0:7d} {'':9s} {'':10s} {server.resident_mib():8.0f}", flush=True)
        for number in range(1, rounds + 1):
            times = [t for turn in range(len(names)) for t in one_turn(seen, url, names, runs, turn)]
            failed = sum(len(one.errors) for one in seen)
            print(
                f"{number:6d} {len(times):6d} {failed:7d} {statistics.median(times):9.1f} {max(times):10.1f}"
                f" {server.resident_mib():8.0f}",
                flush=True,
            )
        for error in [error for one in seen for error in one.errors][:5]:
            print(error)
        shown.close()


def listening(context: Any) -> Visit:
    """A fresh page whose errors are kept."""
    seen = Visit(context.new_page())
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    return seen


def one_turn(seen: list[Visit], url: str, names: list[str], runs: list[str], turn: int) -> Iterator[float]:
    """Each visitor opens another page of another run, all at once; seconds until each is drawn."""
    began = time.perf_counter()
    for place, one in enumerate(seen):
        page, run = PAGES[names[(turn + place) % len(names)]][0], runs[(turn + place // 2) % len(runs)]
        one.page.goto(address(url, page, run), wait_until="commit", timeout=TIMEOUT_MS)
    for one in seen:
        drawn(one)
        one.errors += one.exceptions()
        yield time.perf_counter() - began


def gathered(folder: Path, large: Path) -> Path:
    """A folder with links to the sample runs and the long run."""
    (folder / "_items").mkdir()
    for source in (ROOT / "logs", large):
        for path in (*source.glob("*/run.json"), *source.glob("_items/*.parquet")):
            mine = folder / path.parent.name if path.suffix == ".json" else folder / "_items" / path.name
            mine.symlink_to((path.parent if path.suffix == ".json" else path).absolute())
    return folder


def main() -> None:
    """Make the run where it is not there yet, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the run is kept; a temporary folder without")
    parser.add_argument("--moves", type=int, default=5, help="how often each control is moved")
    parser.add_argument("--pages", nargs="*", choices=list(PAGES), default=list(PAGES))
    parser.add_argument("--visits", type=int, default=0, help="so many at once instead of one after another")
    parser.add_argument("--rounds", type=int, default=3, help="how often each visitor goes through the pages")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory() as links:
        large = (options.folder or Path(temporary)).absolute()
        make_large_run(large)
        logs = gathered(Path(links), large)
        if options.visits:
            report_visits(logs, options.pages, options.visits, options.rounds)
        else:
            report_pages(logs, options.pages, options.moves)


if __name__ == "__main__":
    main()
