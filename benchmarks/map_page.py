"""Server and browser time of the embedding map over 2 × 20,000 points: first picture, click, lasso, play.

Run: python -m benchmarks.map_page [--folder DIR] [--items 20000] [--snapshots 20] [--pictures DIR]

A served app and a real Chromium. Server time is the processor time of the server's process between an action
and the moment when its answer stands on the page, all threads together; browser time is the wall clock of the
same stretch, which on a busy machine says more about the machine. Measures of the gap and the map's quality
begin when the page stands; on a busy machine that is before the browser has drawn the chart, so of the first
picture it is also told when the chart was handed over. They are no part of what follows: that waits for them.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.map_run import Size, make_map_run
from tests.support.browser import Visit, served, visit

FIRST_MS, CLICK_MS, LASSO_MS = 2_000.0, 150.0, 150.0
TIMEOUT_MS = 120_000
PLOT = ".st-key-plot-map .uwml-plot"
CALM_S = 3.0


def server_of(address: str) -> int:
    """Process that listens at an address of this machine."""
    port = f":{int(address.rsplit(':', 1)[1]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    inode = next(row[9] for row in rows if row[1].endswith(port) and row[3] == "0A")
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == f"socket:[{inode}]":
                return int(link.parts[2])
        except OSError:
            continue
    raise RuntimeError(f"no process listens at {address}")


def cpu_s(process: int) -> float:
    """Processor time of a process so far, all threads."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def calm(process: int, limit_s: float = 300.0) -> None:
    """Wait until the server has nothing left to compute."""
    end = time.monotonic() + limit_s
    before, since = cpu_s(process), time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < CALM_S:
        time.sleep(0.25)
        now = cpu_s(process)
        if now - before > 0.02:
            before, since = now, time.monotonic()


class Watch:
    """Times of actions, and the page they happen on."""

    def __init__(self, seen: Visit, process: int) -> None:
        self.seen, self.process = seen, process

    def take(
        self,
        name: str,
        act: Callable[[], object],
        answered: str,
        limit_ms: float = math.inf,
        *,
        rest: bool = True,
    ) -> None:
        """Act and wait until a script says that the answer is there; print both times, then let all rest."""
        cpu, wall = cpu_s(self.process), time.perf_counter()
        act()
        self.seen.page.wait_for_function(answered, timeout=TIMEOUT_MS)
        server, browser = 1e3 * (cpu_s(self.process) - cpu), 1e3 * (time.perf_counter() - wall)
        told = "kept" if server <= limit_ms else "BROKEN"
        limit = f"   limit {limit_ms:.0f}: {told}" if math.isfinite(limit_ms) else ""
        print(f"{name:24} server {server:7.0f} ms   browser {browser:7.0f} ms{limit}", flush=True)
        if rest:
            calm(self.process)


def measure(address: str, pictures: Path | None) -> None:
    """Go through the page as a visitor does."""
    with visit() as seen:
        watch = Watch(seen, server_of(address))
        page = seen.page
        drawn = f"document.querySelector('{PLOT}')?._fullLayout?.xaxis"
        handed_over, target = (
            "!!document.querySelector('.st-key-plot-map')",
            f"{address}/embedding_map?method=pca",
        )
        for name in ("first picture (PCA)", "the same, cached"):
            go = partial(page.goto, target, wait_until="commit")
            watch.take(name, go, handed_over, FIRST_MS, rest=False)
            watch.take("  until it is drawn", lambda: None, drawn)
        for card, unfinished in (("gap", "measured so far"), ("map", "being computed")):
            told = f"document.querySelector('.st-key-card-{card}').innerText"
            page.wait_for_function(f"!{told}.includes('{unfinished}')", timeout=3 * TIMEOUT_MS)
        calm(watch.process)
        for number in range(3):
            chosen = f"innerText.includes('Item {item(seen, number)}')"
            answer = f"!!document.querySelector('.st-key-card-point')?.{chosen}"
            watch.take(f"click {number + 1}", lambda n=number: click(seen, n), answer, CLICK_MS)
        title = "document.querySelector('.st-key-card-selection .uw-title')?.innerText"
        found = "document.querySelector('.st-key-card-find')?.innerText"
        watch.take("lasso", lambda: lasso(seen), f"!!{title}?.includes(':')", LASSO_MS)
        watch.take("search", lambda: search(seen), f"!!{found}?.includes('items match')", LASSO_MS)
        clear = page.locator(".st-key-clear-selection button")
        watch.take("clear the selection", clear.click, f"!{title}?.includes(':')", LASSO_MS)
        seen.press_slider("moments", "ArrowLeft", "ArrowLeft", "ArrowLeft")
        page.wait_for_url("**moment=*", timeout=TIMEOUT_MS)
        calm(watch.process)
        play = page.get_by_role("button", name="Play")
        watch.take("play three snapshots", lambda: played(seen, play.click), "true")
        if pictures is not None:
            page.screenshot(path=str(pictures / "map.png"))
        print("errors on the page:", seen.errors or "none")


def played(seen: Visit, begin: Callable[[], object]) -> None:
    """Begin to play and wait for the end."""
    begin()
    seen.page.locator(".st-key-pause-moments").wait_for(timeout=TIMEOUT_MS)
    seen.page.locator(".st-key-play-moments").wait_for(timeout=TIMEOUT_MS)


def place(seen: Visit, row: int) -> tuple[float, float]:
    """Where a point of the first modality is on the screen."""
    x, y = seen.page.evaluate(
        f"""() => {{
          const plot = document.querySelector("{PLOT}"), trace = plot._fullData[0]
          const box = plot.querySelector(".nsewdrag").getBoundingClientRect(), axes = plot._fullLayout
          return [box.x + axes.xaxis.l2p(trace.x[{row}]), box.y + axes.yaxis.l2p(trace.y[{row}])]
        }}"""
    )
    return x, y


def outermost(seen: Visit, row: int) -> int:
    """A point at the edge of the crowd, which no other point covers."""
    order = "(a, b) => trace.y[b] - trace.y[a]"
    script = f"(() => {{ const trace = document.querySelector('{PLOT}')._fullData[0];"
    script += f" return [...trace.x.keys()].sort({order})[{row}] }})()"
    return int(seen.page.evaluate(script))


def item(seen: Visit, row: int) -> int:
    """Item that a click on the n-th outermost point chooses."""
    script = f"document.querySelector('{PLOT}')._fullData[0].customdata[{outermost(seen, row)}][0]"
    return int(seen.page.evaluate(script))


def click(seen: Visit, row: int) -> None:
    """Click the n-th outermost point."""
    x, y = place(seen, outermost(seen, row))
    seen.page.mouse.move(x, y)
    seen.page.locator(f"{PLOT} .hovertext").wait_for(timeout=TIMEOUT_MS)
    seen.page.mouse.click(x, y)


def lasso(seen: Visit) -> None:
    """Draw around the middle of the map."""
    box = seen.page.locator(f"{PLOT} .nsewdrag").first.bounding_box() or {}
    corners = [(0.42, 0.42), (0.58, 0.42), (0.58, 0.58), (0.42, 0.58), (0.42, 0.45)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    seen.page.mouse.move(*places[0])
    seen.page.mouse.down()
    for x, y in places[1:]:
        seen.page.mouse.move(x, y, steps=4)
    seen.page.mouse.up()


def search(seen: Visit) -> None:
    """Look for some hundred captions."""
    field = seen.page.get_by_label("Search captions")
    field.fill("amber bell")
    field.press("Enter")


def main() -> None:
    """Make the run where it is missing, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, help="logs folder of the run; a temporary one if missing")
    parser.add_argument("--items", type=int, default=Size.items)
    parser.add_argument("--snapshots", type=int, default=Size.snapshots)
    parser.add_argument("--pictures", type=Path, help="folder for a screenshot")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        logs = given.folder or Path(folder)
        make_map_run(logs, size=Size(items=given.items, snapshots=given.snapshots))
        with served(logs) as address:
            measure(address, given.pictures)


if __name__ == "__main__":
    main()
