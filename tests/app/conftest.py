"""Open a page of the app as a script, without a browser."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

APP = Path(__file__).resolve().parents[2] / "app.py"
RUNS = "pages/watch/runs.py"
# reads the metadata of every installed package, which stay the same and take longer than a page
SCAN = functools.cache(manifest_scanner.scan_component_manifests)


class Opened:
    """A page that was run as a script, with shortcuts to what it shows."""

    def __init__(self, app: AppTest) -> None:
        self.app = app

    @property
    def markup(self) -> str:
        """Everything that the page draws as HTML."""
        return "\n".join(str(element.proto.body) for element in self.app.get("html"))

    @property
    def text(self) -> str:
        """The same as a reader sees it, for pages whose log holds no markup."""
        return html.unescape(self.markup).replace("\N{NO-BREAK SPACE}", " ")

    @property
    def failures(self) -> list[str]:
        """Messages of exceptions on the page."""
        return [str(element.message) for element in self.app.exception]

    def charts(self) -> dict[str, dict[str, Any]]:
        """Figures by the title of their card."""
        found = {}
        for element in self.app.get("bidi_component"):
            if element.proto.component_name != "uwml_live_plot":
                continue
            how, figure = map(json.loads, element.proto.bytes.splitlines())
            found[how["title"]] = figure
        return found


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Opened]:
    """Function that opens a page over a folder of runs."""

    def open_(page: str, logs: Path, *, read_only: bool = False, **query: str) -> Opened:
        monkeypatch.setenv("UWML_LOGS", str(logs))
        monkeypatch.setenv("UWML_READ_ONLY", "1" if read_only else "")
        app = AppTest.from_file(str(APP), default_timeout=60)
        for name, value in query.items():
            app.query_params[name] = value
        if page != RUNS:
            # what an address that names the page asks for: nothing is drawn before it
            app._page_hash = calc_hash(Path(page).stem)
        app.run()
        return Opened(app)

    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", SCAN)
    st.cache_data.clear()
    st.cache_resource.clear()
    return open_
