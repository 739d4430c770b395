"""What the report's script draws: figures, tables and numbers, packed into one text.

Packed, nothing in it can end the script element that it stands in.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Sequence
from typing import Any

from uwml_core.analysis.csv_text import csv_text
from uwml_core.figures.theme import theme
from uwml_core.report.content import Chart, Section

# one colour scheme written out, and what the other changes about it: paths and values
Change = tuple[list[str | int], Any]


def packed_payload(sections: Sequence[Section]) -> str:
    """Everything that the script needs, gzip in base64."""
    charts = [block for section in sections for block in section.blocks if isinstance(block, Chart)]
    content = {
        "charts": {chart.key: packed_chart(chart) for chart in charts},
        **{name: value for section in sections for name, value in section.extra.items()},
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "surrogatepass"), 9, mtime=0)).decode()


def packed_chart(chart: Chart) -> dict[str, Any]:
    """A chart's figure, what a dark page changes about it, and its table as CSV."""
    light, dark = (_plain(json.loads(chart.draw(theme(base)).to_json())) for base in ("light", "dark"))
    frame = chart.frame.drop(columns=["thumbnail"], errors="ignore")
    return {
        "figure": light,
        "dark": [[path, value] for path, value in changes(light, dark)],
        "height": chart.height,
        "csv": csv_text(frame),
    }


def _plain(figure: dict[str, Any]) -> dict[str, Any]:
    # WebGL traces compile code while they are drawn, which the file's policy forbids
    for trace in figure["data"]:
        if trace["type"] == "scattergl":
            trace["type"] = "scatter"
    return figure


def changes(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """What makes one figure the other: paths and the values there.

    Example:
        >>> list(changes({"a": [1, 2], "b": 3}, {"a": [1, 4], "b": 3}))
        [(['a', 1], 4)]
    """
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for key in before:
            yield from changes(before[key], after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, pair in enumerate(zip(before, after, strict=True)):
            yield from changes(*pair, (*path, place))
    elif before != after:
        yield list(path), after
