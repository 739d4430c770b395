"""Server time of each page over a run of 100,000 steps and 25.6 million pairs, and of following a live run.

Run: python -m benchmarks.reading [--folder DIR] [--moves 5] [--pages NAME ...]

Each page is run in a fresh process, whole and with the frame around it, by Streamlit's own AppTest, which
stands in for the browser: reading, analysis, figures and their JSON are all in the time, as is making the
messages to the browser into bytes, and drawing them there is not. The process has shown a small run before,
so that nothing but this run's files is read for the first time. What AppTest itself does, mocking a server
for each run, waiting and taking the messages apart, is not in the time: its thread is left out, the others
all count. On a busy machine processor time is the number to look at.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.large_run import Size, live_parts, make_large_run

ROOT = Path(__file__).resolve().parents[1]
FIRST_CHART_MS, MOVE_MS, PEAK_MIB = 1000.0, 150.0, 1024.0
TIMEOUT_S = 300
PAGES = {
    "runs": "watch/runs",
    "training": "watch/training",
    "weight curve": "explain/weight_curve",
    "weight curve, all epochs": "explain/weight_curve?epoch=all",
    "modal balance": "explain/modal_balance",
    "hard negatives": "explain/hard_negatives",
    "hard negatives, persistent": "explain/hard_negatives?tab=persistent",
    "hard negatives, wrong pairs": "explain/hard_negatives?tab=wrong-pairs",
    "embedding map": "explain/embedding_map",
}
# What a visitor moves on each page: key and values that are taken in turn; the others are only drawn again.
MOVES: dict[str, tuple[str, str, list[Any]]] = {
    "explain/weight_curve": ("slider", "center", [0.1, 0.2, 0.12, 0.18, 0.05, 0.11]),
    "explain/modal_balance": ("slider", "sensitivity", [0.04, 0.06, 0.07, 0.03, 0.08, 0.09]),
    "explain/hard_negatives": ("selectbox", "direction", ["i2t", "t2i"]),
    "explain/embedding_map": (
        "select_slider",
        "moment-en-0",
        [str(Size().steps_per_epoch * epoch - 1) for epoch in range(40, 2, -3)],
    ),
}
EPOCH = ("selectbox", "epoch", [str(epoch) for epoch in range(40, 2, -1)])


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Wall clock and processor time, ms."""

    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True, kw_only=True)
class PageResult:
    """What one page took: its first chart, the whole page, and each interaction by its name."""

    first_chart: Taken
    page: Taken
    moves: dict[str, list[Taken]]
    peak_mib: float


def peak_mib() -> float:
    """Largest resident size of this process so far."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


class Clock:
    """Times from its beginning on; processor time of all threads but the main one, in which AppTest waits."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), _cpu_s()

    def taken(self) -> Taken:
        """Time since then."""
        return Taken(wall_ms=1e3 * (time.perf_counter() - self._wall), cpu_ms=1e3 * (_cpu_s() - self._cpu))


def _cpu_s() -> float:
    waiting = time.pthread_getcpuclockid(threading.main_thread().ident or 0)
    return time.process_time() - time.clock_gettime(waiting)


@contextlib.contextmanager
def server_time(taken: list[Taken], begin: Callable[[], Clock]) -> Iterator[None]:
    """Note how long a server would be at each run of a script, the making of its messages' bytes included."""
    from streamlit.testing.v1.local_script_runner import LocalScriptRunner

    thread = LocalScriptRunner._run_script_thread

    def timed(runner: LocalScriptRunner) -> None:
        clock = begin()
        thread(runner)
        for message in runner.forward_msgs():
            message.SerializeToString()
        taken.append(clock.taken())

    LocalScriptRunner._run_script_thread = timed
    try:
        yield
    finally:
        LocalScriptRunner._run_script_thread = thread


def share_scripts() -> None:
    """Have pages compiled once, as a server does for all its visitors."""
    from streamlit.testing.v1 import app_test

    scripts = app_test.ScriptCache()
    app_test.ScriptCache = lambda: scripts


class Visit:
    """A page of the app over a folder of runs."""

    def __init__(self, logs: Path, page: str) -> None:
        # not before: importing them is what the first server to start waits for, not a visitor
        from streamlit.testing.v1 import AppTest

        page, _, query = page.partition("?")
        self._app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT_S)
        for name, value in (part.split("=") for part in query.split("&") if part):
            self._app.query_params[name] = value
        os.environ["UWML_LOGS"] = str(logs)
        self._app.switch_page(f"pages/{page}.py")

    def draw(self) -> tuple[Taken, Taken]:
        """Run the page; times until its first chart and until its end, the same where it has no chart."""
        card: Any = importlib.import_module("uwml_core.ui.card")
        charts: list[Taken] = []
        clocks: list[Clock] = []
        whole: list[Taken] = []
        drawn: Callable[..., None] = card.live_plot

        def begin() -> Clock:
            clocks.append(Clock())
            return clocks[-1]

        def noted(*args: Any, **options: Any) -> None:
            drawn(*args, **options)
            charts.append(clocks[-1].taken())

        card.live_plot = noted
        try:
            with server_time(whole, begin):
                self._app.run()
        finally:
            card.live_plot = drawn
        if self._app.exception:
            raise RuntimeError(str(self._app.exception[0].message))
        return [*charts, *whole][0], whole[-1]

    def moves(self, kind: str, key: str, values: list[Any], count: int) -> list[Taken]:
        """Set a control to each value in turn; time of the page each time, none without such a control."""
        if not any(widget.key == key for widget in self._app.get(kind)):
            return []
        times = []
        for value in itertools.islice(itertools.cycle(values), count):
            getattr(self._app, kind)(key=key).set_value(value)
            times.append(self.draw()[1])
        return times


def measure_page(logs: Path, page: str, moves: int) -> PageResult:
    """Draw a page with empty caches, then move what it has."""
    share_scripts()
    Visit(ROOT / "logs", page).draw()
    visit = Visit(logs, page)
    first, whole = visit.draw()
    found = {"drawn again": [visit.draw()[1] for _ in range(moves)]}
    known = MOVES.get(page.partition("?")[0])
    for kind, key, values in (*([known] if known else []), EPOCH):
        found[key] = visit.moves(kind, key, values, moves)
    return PageResult(
        first_chart=first, page=whole, moves={k: v for k, v in found.items() if v}, peak_mib=peak_mib()
    )


def measure_live(root: Path, moves: int) -> list[Taken]:
    """Follow a running run that has half of its steps: time of each refresh after new parts were written."""
    logs = root / "live"
    shutil.rmtree(logs, ignore_errors=True)
    parts = live_parts(root / "large", logs / "large")
    next(parts)
    share_scripts()
    Visit(ROOT / "logs", PAGES["training"]).draw()
    visits = [Visit(logs, PAGES[name]) for name in ("training", "weight curve")]
    for visit in visits:
        visit.draw()
    times = []
    for _ in range(moves):
        next(parts)
        # as long as a page believes what it knows about a run's files
        time.sleep(1.1)
        times += [visit.draw()[1] for visit in visits]
    shutil.rmtree(logs)
    return times


def in_fresh_process(folder: Path, page: str, moves: int) -> Any:
    """Result of measuring one page, or following a run, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.reading", "--folder", str(folder), "--moves", str(moves)]
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    done = subprocess.run(
        [*command, "--child", page],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{page}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def _kept(value: float, bar: float) -> str:
    return "kept" if value <= bar else "MISSED"


def page_lines(name: str, result: dict[str, Any]) -> Iterator[str]:
    """Lines of the table for one page."""
    chart, peak = result["first_chart"], result["peak_mib"]
    yield (
        f"{name:28s} {'first chart':12s} {chart['cpu_ms']:8.0f} {'':8s} {chart['wall_ms']:8.0f} {'':8s}"
        f" {FIRST_CHART_MS:6.0f} {_kept(chart['cpu_ms'], FIRST_CHART_MS)}"
    )
    for move, times in result["moves"].items():
        yield move_line("", move, times)
    yield f"{'':28s} {'peak, MiB':12s} {peak:8.0f} {'':26s} {PEAK_MIB:6.0f} {_kept(peak, PEAK_MIB)}"


def move_line(name: str, move: str, times: list[dict[str, float]]) -> str:
    """One line: median and largest processor time and wall clock, by the median of which the bar is kept."""
    cpu, wall = ([taken[f"{kind}_ms"] for taken in times] for kind in ("cpu", "wall"))
    middle = statistics.median(cpu)
    return (
        f"{name:28s} {move:12s} {middle:8.0f} {max(cpu):8.0f} {statistics.median(wall):8.0f} {max(wall):8.0f}"
        f" {MOVE_MS:6.0f} {_kept(middle, MOVE_MS)}"
    )


def report(folder: Path, pages: list[str], moves: int) -> None:
    """Print the table."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    size = Size()
    print(f"{size.steps:,} steps, {2 * size.steps * size.batch:,} pairs; load {load}, {os.cpu_count()} CPUs")
    print(
        f"{'ms of server time':28s} {'':12s} {'cpu':>8s} {'cpu max':>8s} {'wall':>8s} {'wall max':>8s}"
        f" {'bar':>6s}"
    )
    for name in pages:
        for line in page_lines(name, in_fresh_process(folder, PAGES[name], moves)):
            print(line, flush=True)
    times = in_fresh_process(folder, "live", moves)
    print(move_line("following a live run", "a refresh", times))


def main() -> None:
    """Make the run where it is not there yet, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the run is kept; a temporary folder without")
    parser.add_argument("--moves", type=int, default=5, help="how often each control is moved")
    parser.add_argument("--pages", nargs="*", choices=list(PAGES), default=list(PAGES))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child == "live":
        print(json.dumps([asdict(taken) for taken in measure_live(options.folder, options.moves)]))
    elif options.child:
        print(json.dumps(asdict(measure_page(options.folder / "large-only", options.child, options.moves))))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.folder or Path(temporary)).absolute()
            make_large_run(folder)
            only = folder / "large-only"
            only.mkdir(exist_ok=True)
            for name in ("large", "_items"):
                if not (only / name).exists():
                    (only / name).symlink_to(folder / name)
            report(folder, options.pages, options.moves)


if __name__ == "__main__":
    main()
