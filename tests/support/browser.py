"""A served app and a real Chromium for tests: what it logs, what it asks for, when it is at rest."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from playwright.sync_api import Page, sync_playwright

APP = Path(__file__).resolve().parents[2] / "app.py"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROME_ON_MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Streamlit looks for its base path below a deep link first; the misses are harmless.
HARMLESS = ("/_stcore/health", "/_stcore/host-config")


def chromium() -> str:
    """Path of the browser: UWML_CHROMIUM, else the first that is installed."""
    found = os.environ.get("UWML_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    return found or CHROME_ON_MAC


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(logs: Path, *, read_only: bool = False, timeout_s: float = 60.0) -> Iterator[str]:
    """Serve the app over a folder of runs; yields its address once it answers."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
    command += ["--server.fileWatcherType=none"]
    environment = {**os.environ, "UWML_LOGS": str(logs), "UWML_READ_ONLY": "1" if read_only else ""}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=APP.parent, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            _wait_until_healthy(process, url, timeout_s, output)
            yield url
        finally:
            process.terminate()
            process.wait(10)


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str, timeout_s: float, output: Any) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as answer:
                if answer.read() == b"ok":
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    output.seek(0)
    raise RuntimeError(f"the app does not answer at {url}:\n{output.read().decode(errors='replace')}")


@dataclass
class Visit:
    """A browser page and what it did.

    Attributes:
        page: the page, to act on.
        errors: console errors and uncaught exceptions, harmless misses left out.
        requests: addresses that it asked for.
    """

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, url: str, *, charts: int = 0) -> None:
        """Go to an address and wait until everything is drawn."""
        self.page.goto(url, wait_until="commit")
        self.settle(charts=charts)

    def settle(self, *, charts: int = 0, timeout_ms: float = 60_000) -> None:
        """Wait until the script has run and at least ``charts`` charts are drawn."""
        self.page.wait_for_selector(
            '[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=timeout_ms
        )
        self.page.wait_for_selector(
            '[data-testid="stMain"] [data-testid="stElementContainer"]', state="attached", timeout=timeout_ms
        )
        self.page.wait_for_function(
            """least => {
              const plots = [...document.querySelectorAll(".uwml-plot")]
              return plots.length >= least && plots.every(plot => plot._fullLayout?.xaxis)
            }""",
            arg=charts,
            timeout=timeout_ms,
        )

    def foreign_hosts(self) -> set[str]:
        """Hosts other than this machine that the page asked."""
        hosts = {urlparse(address).hostname for address in self.requests}
        return {host for host in hosts if host not in (None, "127.0.0.1", "localhost")}

    def exceptions(self) -> list[str]:
        """Tracebacks that the page shows."""
        return self.page.locator('[data-testid="stException"]').all_inner_texts()

    def x_range(self, key: str) -> list[float]:
        """What a chart's horizontal axis shows now."""
        plot = f".st-key-plot-{key} .uwml-plot"
        shown = self.page.evaluate("s => document.querySelector(s)._fullLayout.xaxis.range", plot)
        return [float(edge) for edge in shown]

    def points(self, key: str) -> int:
        """Points that a chart holds, over all traces."""
        plot = f".st-key-plot-{key} .uwml-plot"
        script = "s => document.querySelector(s)._fullData.reduce((n, t) => n + (t._length ?? 0), 0)"
        return int(self.page.evaluate(script, plot))

    def zoom(self, key: str, start: float = 0.3, end: float = 0.6, fall: float = 0.0) -> None:
        """Drag across a chart, from and to these shares of its width, and by one of its height downwards."""
        area = self.page.locator(f".st-key-plot-{key} .nsewdrag").first
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        if box is None:
            raise RuntimeError(f"chart {key} is not visible")
        middle = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + box["width"] * start, middle)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + box["width"] * end, middle + box["height"] * fall, steps=8)
        self.page.mouse.up()

    def press_slider(self, key: str, *keys: str) -> None:
        """Focus a slider and press keys such as ``ArrowRight``."""
        self.page.locator(f".st-key-{key} input[type=range]").first.focus()
        for name in keys:
            self.page.keyboard.press(name)


@contextmanager
def visit(*, width: int = 1440, height: int = 900, scheme: Any = "light") -> Iterator[Visit]:
    """Open Chromium with a fresh profile."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=chromium(),
            headless=True,
            args=ARGUMENTS,
            viewport={"width": width, "height": height},
            color_scheme=scheme,
        )
        page = context.pages[0] if context.pages else context.new_page()
        seen = Visit(page)
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("console", lambda message: _note_error(seen, message))
        try:
            yield seen
        finally:
            context.close()


def _note_error(seen: Visit, message: Any) -> None:
    if message.type == "error" and not message.location.get("url", "").endswith(HARMLESS):
        seen.errors.append(message.text)
