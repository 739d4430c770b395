"""The pictures of the lesson."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import end_labels, finite_span, floats
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

# Name, column and colour of a line.
Line = tuple[str, str, str]


def lines_figure(
    frame: pd.DataFrame,
    x: str,
    lines: Sequence[Line],
    theme: Theme,
    *,
    x_title: str,
    y_title: str,
    height: int = 380,
    mark: float | None = None,
    log: bool = False,
) -> go.Figure:
    """Lines over a common axis, labelled at their ends.

    Args:
        frame: the numbers.
        x: column of the horizontal axis.
        lines: (name, column, colour) each.
        theme: colours.
        x_title, y_title: names of the axes with their units.
        height: pixels.
        mark: place of a vertical line; None for none.
        log: whether the horizontal axis counts in powers of ten.
    """
    figure = Draft(theme, height=height, l=64, r=130)
    for name, column, color in lines:
        figure.add_trace(_line(frame, x, column, name, color))
    ends = frame.tail(1)
    labels = [(name, float(value), color) for name, column, color in lines for value in ends[column]]
    end_labels(figure, labels, finite_span(*(frame[column].to_numpy() for _name, column, _color in lines)))
    if mark is not None:
        figure.add_shape(
            type="line",
            x0=mark,
            x1=mark,
            y0=0,
            y1=1,
            yref="paper",
            line={"color": theme.muted, "dash": "dot"},
        )
    figure.update_xaxes(
        title={"text": x_title}, **({"type": "log", "dtick": 1, "tickformat": ","} if log else {})
    )
    figure.update_yaxes(title={"text": y_title}, zeroline=True, zerolinecolor=theme.grid)
    figure.update_layout(showlegend=False)
    return figure.figure()


def _line(frame: pd.DataFrame, x: str, column: str, name: str, color: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": floats(frame[x]),
        "y": floats(frame[column]),
        "name": name,
        "line": {"color": color, "width": 2.5},
    }


def combinations_figure(frame: pd.DataFrame, way: str, theme: Theme, *, height: int = 380) -> go.Figure:
    """Weights of four pairs, multiplied or added, the other way as a ghost.

    Args:
        frame: of ``lessons.combinations``.
        way: ``multiply`` or ``add``.
        theme: colours.
        height: pixels.
    """
    names = {
        ("informative", "lagging"): _("informative, lagging direction"),
        ("easy", "lagging"): _("easy, lagging direction"),
        ("informative", "leading"): _("informative, leading direction"),
        ("easy", "leading"): _("easy, leading direction"),
    }
    labels = [names[key] for key in zip(frame["pair"], frame["direction"], strict=True)]
    other = "add" if way == "multiply" else "multiply"
    named = {"multiply": _("multiplied"), "add": _("added")}
    figure = Draft(theme, height=height, l=64, r=16)
    for column, color in ((way, theme.accent), (other, fade(theme.ghost, 0.45))):
        bar = {"type": "bar", "x": labels, "y": floats(100 * frame[column]), "name": named[column]}
        figure.add_trace({**bar, "marker": {"color": color}})
    figure.update_yaxes(title={"text": _("share of the weight (%)")}, rangemode="tozero")
    figure.update_layout(barmode="group", showlegend=True, legend={"orientation": "h", "y": 1.1})
    return figure.figure()


def lesson_curve_figure(
    histogram: pd.DataFrame,
    before: pd.DataFrame,
    now: pd.DataFrame,
    theme: Theme,
    *,
    height: int = 380,
) -> go.Figure:
    """Logged margins, and over them the weight that each gets, with the curve before as a ghost.

    Args:
        histogram: ``[left, right, count]`` of margins.
        before, now: frames of ``curves.curve_frame``, one moment each.
        theme: colours.
        height: pixels.
    """
    figure = Draft(theme, height=height, l=64, r=64)
    inside = histogram[np.isfinite(histogram["left"]) & np.isfinite(histogram["right"])]
    counts = inside.groupby(["left", "right"], as_index=False)["count"].sum()
    share = 100 * counts["count"] / max(counts["count"].sum(), 1)
    middle = (counts["left"] + counts["right"]) / 2
    bars = {"type": "bar", "x": floats(middle), "y": floats(share), "name": _("pairs"), "yaxis": "y"}
    figure.add_trace({**bars, "marker": {"color": fade(theme.ghost, 0.4)}})
    for frame, name, line in (
        (before, _("before"), {"color": theme.ghost, "width": 2, "dash": "dash"}),
        (now, _("weight"), {"color": theme.accent, "width": 3}),
    ):
        figure.add_trace(
            {**_line(frame, "margin", "weight", name, theme.accent), "line": line, "yaxis": "y2"}
        )
    figure.update_layout(
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "range": [0, 1.08],
            "tickmode": "linear",
            "dtick": 0.25,
            "showgrid": False,
            "title": {"text": _("pair weight")},
        },
        bargap=0,
        legend={"orientation": "h", "y": 1.1},
    )
    ends = [now["margin"].min(), now["margin"].max()]
    figure.update_xaxes(title={"text": _("margin (cosine)")}, range=ends)
    figure.layout["yaxis"] |= {"title": {"text": _("share of pairs (%)")}}
    return figure.figure()
