"""Both modalities on one map, and the gap between them from snapshot to snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from uwml_core.analysis.text import modality_name
from uwml_core.figures.frame import canvas, floats, say_empty
from uwml_core.figures.map_colors import flat_scale
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

# What the chart component moves smoothly from one figure to the next.
GLIDE = "glide"
_SYMBOLS = ("circle", "diamond")
_LONGEST = 90
Range = tuple[float, float]


def embedding_map_figure(
    points: pd.DataFrame,
    codes: NDArray[np.int64],
    colors: Sequence[str],
    theme: Theme,
    *,
    modalities: tuple[str, str],
    ranges: tuple[Range, Range],
    links: pd.DataFrame | None = None,
    found: pd.DataFrame | None = None,
    chosen: pd.DataFrame | None = None,
    height: int = 520,
) -> go.Figure:
    """The map of one snapshot: a circle per point of the first modality, a diamond per one of the second.

    Args:
        points: frame of ``map_points``.
        codes: class of each point, −1 for none, drawn in grey.
        colors: colour of each class.
        theme: colours.
        modalities: names of both.
        ranges: of both axes, the same for every snapshot.
        links: frame of ``pair_lines``; each pair is joined by a line.
        found: rows of ``points`` to ring; the others step back.
        chosen: rows of ``points`` to ring in the accent colour.
        height: pixels.
    """
    figure = canvas(theme, height=height, l=8, r=8, t=8, b=8)
    if points.empty:
        return say_empty(figure, theme, _("No point of this choice has a place on the map"))
    quiet = found is not None and len(found) > 0
    for place, name in enumerate(modalities):
        mine = (points["modality"] == name).to_numpy()
        if mine.any():
            look = {"symbol": _SYMBOLS[place], "opacity": 0.25 if quiet else 0.85}
            figure.add_trace(_points(points[mine], codes[mine], [theme.ghost, *colors], **look))
    if links is not None and len(links):
        figure.add_trace(_lines(links, theme))
    for rows, color, size in ((found, theme.text, 9), (chosen, theme.accent, 17)):
        if rows is not None and len(rows):
            figure.add_trace(_rings(rows, color, size))
    axis = {"showgrid": False, "showticklabels": False, "ticks": "", "showline": False}
    figure.update_xaxes(range=list(ranges[0]), **axis)
    figure.update_yaxes(range=list(ranges[1]), scaleanchor="x", scaleratio=1, **axis)
    return figure


def _points(
    points: pd.DataFrame, codes: NDArray[np.int64], palette: Sequence[str], **look: Any
) -> go.Scattergl:
    name = modality_name(str(points["modality"].iloc[0]))
    extra = points[["item_id", "margin", "rank"]].to_numpy(np.float64)
    return go.Scattergl(
        x=floats(points["x"]),
        y=floats(points["y"]),
        mode="markers",
        name=name,
        meta=GLIDE,
        marker={
            **look,
            "size": 5,
            "color": floats(codes),
            "colorscale": flat_scale(palette),
            "cmin": -1.5,
            "cmax": len(palette) - 1.5,
            "line": {"width": 0.5, "color": fade("#6b7280", 0.55)},
        },
        customdata=floats(extra),
        # an array: of a list the library would look at every text
        text=np.array([_hover(*row) for row in zip(points["caption"], points["group"], strict=True)], object),
        hovertemplate=f"%{{text}}<b>{escape(name)}</b> "
        + _("of item %{customdata[0]:.0f}<br>margin %{customdata[1]:.3f} · rank %{customdata[2]:.1f}")
        + "<extra></extra>",
    )


def _hover(caption: str, group: str) -> str:
    lines = [escape(shortened(text)) for text in (caption, group) if text]
    return "".join(f"{line}<br>" for line in lines)


def shortened(text: str, longest: int = _LONGEST) -> str:
    r"""A text on one line, cut where it is too long.

    Example:
        >>> shortened("a  b\nc", 3)
        'a b…'
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else line[:longest].rstrip() + "…"


def _lines(links: pd.DataFrame, theme: Theme) -> go.Scattergl:
    gap = np.full(len(links), np.nan)
    return go.Scattergl(
        x=floats(np.stack([links["x_0"], links["x_1"], gap], axis=1).ravel()),
        y=floats(np.stack([links["y_0"], links["y_1"], gap], axis=1).ravel()),
        mode="lines",
        name=_("pairs"),
        line={"color": fade(theme.text, 0.45), "width": 1},
        hoverinfo="skip",
    )


def _rings(rows: pd.DataFrame, color: str, size: int) -> go.Scattergl:
    return go.Scattergl(
        x=floats(rows["x"]),
        y=floats(rows["y"]),
        mode="markers",
        name=_("highlighted"),
        meta=GLIDE,
        marker={
            "symbol": "circle-open",
            "size": size,
            "color": color,
            "line": {"width": size / 8, "color": color},
        },
        hoverinfo="skip",
    )
