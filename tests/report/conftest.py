"""Reports of the sample runs, and what stands in them."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from uwml_core.report.build import ReportChoice, build_report
from uwml_core.runlog.reader import open_run

LOGS = Path(__file__).resolve().parents[2] / "logs"


class Opened:
    """A report as a test looks at it."""

    def __init__(self, text: str) -> None:
        self.source = text

    @property
    def markup(self) -> str:
        """The file without its packed parts and its script."""
        return re.sub(r"<script.*?</script>", "", self.source, flags=re.DOTALL)

    @property
    def text(self) -> str:
        """What a reader sees."""
        return html.unescape(
            re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", self.markup, flags=re.S))
        )

    @property
    def payload(self) -> dict[str, Any]:
        """What the script draws from."""
        packed = re.search(r'id="payload">([^<]*)</script>', self.source)
        assert packed
        content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
        return content


@pytest.fixture(scope="session")
def sample_report() -> Opened:
    return Opened(build_report(open_run(LOGS / "sample-uwml"), ReportChoice()))
