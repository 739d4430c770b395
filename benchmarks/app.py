"""The app in a real browser: first paint and interactions of each page over a long run, and many visits.

Run: python -m benchmarks.app [--folder DIR] [--moves 5] [--pages NAME ...]
     python -m benchmarks.app [--folder DIR] --visits 20 [--rounds 3] [--minutes 10]

Server time is the processor time that the server's process took meanwhile, all threads; browser time is the
wall clock: until the browser first paints, until the first chart (or what else answers the page's question)
is on the screen, until the whole page is, and at each move until it is drawn again. Each page gets a server
of its own, which has shown a small run before, so that its caches are empty of the long run. With
``--visits`` one server is asked by many browser pages at once, which go through all pages of the sample runs
and of the long run by the menu, round by round; meanwhile the server is asked for its health ten times a
second. What is not drawn when the ``--minutes`` are over is counted as unfinished.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import sync_playwright

from benchmarks.app_pages import (
    AGAIN,
    COUNT_RUNS,
    HEADING,
    PAGES,
    TIMEOUT_MS,
    Moved,
    PageSpec,
    drawn,
    move,
    shown,
)
from benchmarks.large_run import make_large_run
from tests.support.browser import ARGUMENTS, Visit, chromium, served, visit

ROOT = Path(__file__).resolve().parents[1]
LARGE, SMALL = "large", "sample-uwml"
FIRST_CHART_MS, MOVE_MS = 1000.0, 150.0
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
ROW = "{page:16s} {what:12s} {server:>9s} {most:>9s} {browser:>10s} {bar:>6s} {verdict:7s}"


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


class Watch:
    """Server and browser time from its beginning on."""

    def __init__(self, server: Server) -> None:
        self._server, self._wall, self._cpu = server, time.perf_counter(), server.cpu_ms()

    def taken(self) -> Taken:
        """Time since then."""
        browser_ms = 1e3 * (time.perf_counter() - self._wall)
        return Taken(server_ms=self._server.cpu_ms() - self._cpu, browser_ms=browser_ms)


def address(url: str, spec: PageSpec, run: str) -> str:
    """Address of a page about a run."""
    return f"{url}/{spec.path}?run={run}{spec.query}"


@dataclass(frozen=True, kw_only=True)
class PageResult:
    """What one page took, and the server's memory.

    Attributes:
        paint_ms: until the browser painted something, as it says itself.
        first: until the first answer was on the screen.
        whole: until all of the page was.
        moves: each move, by its name.
        resident_mib: memory of the server at the end.
    """

    paint_ms: float
    first: Taken
    whole: Taken
    moves: dict[str, list[Taken]]
    resident_mib: float


def measure_page(logs: Path, name: str, count: int) -> PageResult:
    """Open a page over a long run with empty caches, then move what it has."""
    spec = PAGES[name]
    with served(logs) as url, visit() as seen:
        server = Server(url)
        seen.page.add_init_script(COUNT_RUNS)
        seen.page.goto(address(url, PageSpec(path=spec.path, first=spec.first), SMALL), wait_until="commit")
        drawn(seen)
        seen.page.goto("about:blank")
        watch = Watch(server)
        seen.page.goto(address(url, spec, LARGE), wait_until="commit")
        shown(seen, spec)
        first = watch.taken()
        drawn(seen)
        whole, paint = watch.taken(), float(seen.page.evaluate(PAINT))
        moves = moved_in_turn(seen, server, (*spec.moves, AGAIN), count)
        if seen.errors or seen.exceptions():
            raise RuntimeError(f"{name}: {[*seen.errors, *seen.exceptions()][0]}")
        memory = server.resident_mib()
        return PageResult(paint_ms=paint, first=first, whole=whole, moves=moves, resident_mib=memory)


def moved_in_turn(
    seen: Visit, server: Server, moves: tuple[Moved, ...], count: int
) -> dict[str, list[Taken]]:
    """Times of each move; in turn, as a tab that is open already cannot be opened."""
    times: dict[str, list[Taken]] = {moved.name: [] for moved in moves}
    for number in range(count):
        for moved in moves:
            watch = Watch(server)
            move(seen, moved, number)
            times[moved.name].append(watch.taken())
    return times


def page_lines(name: str, result: PageResult) -> Iterator[str]:
    """Lines of the table for one page; bars are kept by the median of the server's time."""
    blank = {"most": "", "bar": "", "verdict": ""}
    paint, memory = f"{result.paint_ms:.0f}", f"{result.resident_mib:,.0f} MiB"
    yield ROW.format(page=name, what="first paint", server="", browser=paint, **blank)
    yield time_line("first chart", [result.first], FIRST_CHART_MS)
    whole = {"server": f"{result.whole.server_ms:.0f}", "browser": f"{result.whole.browser_ms:.0f}"}
    yield f"{ROW.format(page='', what='whole page', **whole, **blank)} {memory}"
    for move_name, times in result.moves.items():
        yield time_line(move_name, times, MOVE_MS)


def time_line(what: str, times: list[Taken], bar: float) -> str:
    """Median and largest server time, median browser time, and whether the bar is kept."""
    server, browser = ([getattr(taken, f"{side}_ms") for taken in times] for side in ("server", "browser"))
    middle = statistics.median(server)
    numbers = {"server": middle, "most": max(server), "browser": statistics.median(browser), "bar": bar}
    verdict = "kept" if middle <= bar else "MISSED"
    return ROW.format(
        page="", what=what, verdict=verdict, **{name: f"{value:.0f}" for name, value in numbers.items()}
    ).rstrip()


def report_pages(logs: Path, names: list[str], moves: int) -> None:
    """Print the table."""
    print(f"load {', '.join(f'{value:.1f}' for value in os.getloadavg())}, {os.cpu_count()} CPUs; ms")
    heads = {"server": "server", "most": "at most", "browser": "browser", "bar": "bar", "verdict": ""}
    print(ROW.format(page="page", what="", **heads).rstrip())
    for name in names:
        for line in page_lines(name, measure_page(logs, name, moves)):
            print(line, flush=True)


def report_visits(logs: Path, names: list[str], visits: int, rounds: int, minutes: float) -> None:
    """Have many visitors go through the pages at once; print by round what they and the server took."""
    runs = sorted(path.name for path in logs.iterdir() if (path / "run.json").exists())
    print(f"{visits} visits at once, {len(names)} pages, runs {', '.join(runs)}")
    print(f"load {', '.join(f'{value:.1f}' for value in os.getloadavg())}, {os.cpu_count()} CPUs")
    heads = ("drawn", "unfinished", "failed", "median s", "slowest s", "server ms", "health ms", "RSS MiB")
    print("round " + " ".join(f"{head:>10s}" for head in heads))
    until = time.monotonic() + 60 * minutes
    with served(logs) as url, sync_playwright() as playwright:
        server, health = Server(url), Health(url)
        browser = playwright.chromium.launch(executable_path=chromium(), headless=True, args=ARGUMENTS)
        seen = [listening(browser.new_context()) for _visit in range(visits)]
        for number in range(rounds + 1):
            # the first turn opens the addresses; it reads the runs and loads the app into each browser page
            turns = range(1, len(names) + 1) if number else range(1)
            cpu, times = server.cpu_ms(), []
            for turn in turns:
                times += list(one_turn(seen, url, names, runs, turn, until))
            print(f"{number:5d} {round_line(times, seen, server, cpu, health)}", flush=True)
        for error in [error for one in seen for error in one.errors][:5]:
            print(error)
        health.stop()
        browser.close()


def round_line(times: list[float], seen: list[Visit], server: Server, cpu: float, health: Health) -> str:
    """What one round took; the times of what was not drawn are NaN."""
    drawn_s = [taken for taken in times if not math.isnan(taken)]
    median, slowest = (f"{f(drawn_s):.1f}" if drawn_s else "-" for f in (statistics.median, max))
    per_page = (server.cpu_ms() - cpu) / max(1, len(drawn_s))
    numbers = (
        len(drawn_s), len(times) - len(drawn_s), sum(len(one.errors) for one in seen), median, slowest,
        f"{per_page:.0f}", f"{health.slowest_ms():.0f}", f"{server.resident_mib():.0f}",
    )  # fmt: skip
    return " ".join(f"{number!s:>10s}" for number in numbers)


class Health:
    """Asks a server for its health ten times a second, in a thread of its own."""

    def __init__(self, url: str) -> None:
        self._url, self._slowest, self._going = f"{url}/_stcore/health", 0.0, True
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        while self._going:
            began = time.perf_counter()
            with urllib.request.urlopen(self._url, timeout=60) as answer:
                answer.read()
            self._slowest = max(self._slowest, 1e3 * (time.perf_counter() - began))
            time.sleep(0.1)

    def slowest_ms(self) -> float:
        """The slowest answer since the last time that this was asked."""
        slowest, self._slowest = self._slowest, 0.0
        return slowest

    def stop(self) -> None:
        """Ask no more."""
        self._going = False
        self._thread.join(60)


def listening(context: Any) -> Visit:
    """A fresh page whose errors are kept."""
    seen = Visit(context.new_page())
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    return seen


def one_turn(
    seen: list[Visit], url: str, names: list[str], runs: list[str], turn: int, until: float
) -> Iterator[float]:
    """Each visitor goes to another page of its run, all at once; seconds until each is drawn, or NaN."""
    began = time.perf_counter()
    for place, one in enumerate(seen):
        name = names[(turn + place) % len(names)]
        if turn:
            follow_menu(one, name)
        else:
            run = runs[place // 2 % len(runs)]
            one.page.goto(address(url, PAGES[name], run), wait_until="commit", timeout=TIMEOUT_MS)
    for place, one in enumerate(seen):
        try:
            arrived(one, names[(turn + place) % len(names)], 1e3 * max(1.0, until - time.monotonic()))
        except PlaywrightTimeout:
            yield math.nan
            continue
        one.errors += one.exceptions()
        yield time.perf_counter() - began


def follow_menu(one: Visit, name: str) -> None:
    """Click a page's link, without waiting for what follows."""
    path = f"/{PAGES[name].path}"
    script = """path => [...document.querySelectorAll("[data-testid=stSidebarNavLink]")]
        .find(link => link.pathname === path)?.click()"""
    one.page.evaluate(script, path)


def arrived(one: Visit, name: str, timeout_ms: float) -> None:
    """Wait until a page's heading is there and all is drawn."""
    heading = one.page.locator(HEADING).filter(has_text=re.compile(f"^{name}$", re.IGNORECASE))
    heading.wait_for(timeout=timeout_ms)
    one.settle(timeout_ms=timeout_ms)


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
    parser.add_argument("--minutes", type=float, default=10.0, help="how long all visits may take together")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory() as links:
        large = (options.folder or Path(temporary)).absolute()
        make_large_run(large)
        logs = gathered(Path(links), large)
        if options.visits:
            report_visits(logs, options.pages, options.visits, options.rounds, options.minutes)
        else:
            report_pages(logs, options.pages, options.moves)


if __name__ == "__main__":
    main()
