"""What is drawn over the points of the map: the pairs, the found, the chosen, and the ways they went.

Apart from the points, so that a click sends these few and not all points again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import floats
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

_RING, _CHOSEN_RING = 9, 17
_UNUSED_PX = 100


def map_overlay(
    theme: Theme,
    *,
    links: pd.DataFrame | None = None,
    found: pd.DataFrame | None = None,
    chosen: pd.DataFrame | None = None,
    trails: pd.DataFrame | None = None,
    trail_colors: dict[str, str] | None = None,
    trail_by: str = "modality",
) -> go.Figure:
    """The traces, over a layout that is not theirs.

    Args:
        theme: colours.
        links: frame of ``pair_lines``; each pair is joined by a line.
        found: points to ring.
        chosen: points to ring in the accent colour.
        trails: frame of ``trails``.
        trail_colors: colour of each value of ``trail_by``; the others are drawn in the text colour.
        trail_by: ``modality`` or ``phase``; a stretch has the colour of the snapshot that it leads to.
    """
    traces = [] if links is None or links.empty else [_links(links, theme)]
    if trails is not None and len(trails):
        traces += _trails(trails, trail_by, trail_colors or {}, theme)
    for rows, color, size in ((found, theme.text, _RING), (chosen, theme.accent, _CHOSEN_RING)):
        if rows is not None and len(rows):
            traces.append(_rings(rows, color, size))
    figure = Draft(theme, height=_UNUSED_PX)
    for trace in traces:
        figure.add_trace(trace)
    return figure.figure()


def _links(links: pd.DataFrame, theme: Theme) -> dict[str, Any]:
    return _lines(
        links[["x_0", "x_1"]].to_numpy(), links[["y_0", "y_1"]].to_numpy(), fade(theme.text, 0.45), _("pairs")
    )


def _trails(trails: pd.DataFrame, by: str, colors: dict[str, str], theme: Theme) -> list[dict[str, Any]]:
    before = trails.groupby(["item_id", "modality"], sort=False)[["x", "y"]].shift()
    moved = before["x"].notna().to_numpy()
    x = np.stack([before["x"], trails["x"]], axis=1)[moved]
    y = np.stack([before["y"], trails["y"]], axis=1)[moved]
    values = trails[by].to_numpy(object)[moved]
    drawn: Sequence[Any] = list(dict.fromkeys(values))
    return [
        _lines(x[values == value], y[values == value], fade(colors.get(value, theme.text), 0.6), _("trails"))
        for value in drawn
    ]


def _lines(x: np.ndarray, y: np.ndarray, color: str, name: str) -> dict[str, Any]:
    gap = np.full((len(x), 1), np.nan)
    return {
        "type": "scattergl",
        "x": floats(np.concatenate([x, gap], axis=1).ravel()),
        "y": floats(np.concatenate([y, gap], axis=1).ravel()),
        "mode": "lines",
        "name": name,
        "line": {"color": color, "width": 1.25},
        "hoverinfo": "skip",
    }


def _rings(rows: pd.DataFrame, color: str, size: int) -> dict[str, Any]:
    line = {"width": size / 8, "color": color}
    return {
        "type": "scattergl",
        "x": floats(rows["x"]),
        "y": floats(rows["y"]),
        "mode": "markers",
        "name": _("highlighted"),
        "marker": {"symbol": "circle-open", "size": size, "color": color, "line": line},
        "hoverinfo": "skip",
        # they are not among what is drawn around
        "unselected": {"marker": {"opacity": 1}},
    }
