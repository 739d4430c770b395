"""What is drawn on top of a series over steps: phases, events, reference lines, broken values.

What is called a figure here may be a ``draft.Draft`` too.
"""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.figures.frame import floats
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

EDGE_AXIS = "y2"
# What a hover shows of a note; the page lists all of it.
_NOTE_WIDTH, _NOTE_LINES = 60, 12


def add_edge_axis(figure: go.Figure) -> None:
    """Add an invisible axis from 0 (bottom) to 1 (top) for ticks at the edges of the plot."""
    figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True})


def add_phases(figure: go.Figure, bands: pd.DataFrame | None, theme: Theme) -> None:
    """Shade every other phase and name each; a single phase needs no band."""
    if bands is None or len(bands) < 2:
        return
    columns = (bands[name].tolist() for name in ("phase", "first_step", "last_step"))
    for i, (phase, first, last) in enumerate(zip(*columns, strict=True)):
        if i % 2 == 0:
            figure.add_shape(
                type="rect",
                xref="x",
                yref="paper",
                x0=first,
                x1=last,
                y0=0,
                y1=1,
                layer="below",
                line={"width": 0},
                fillcolor=fade(theme.ghost, 0.12),
            )
        figure.add_annotation(
            text=escape(str(phase)),
            x=first,
            xref="x",
            y=1,
            yref="paper",
            xanchor="left",
            yanchor="top",
            xshift=3,
            showarrow=False,
            font={"color": theme.muted, "size": 11},
        )


def add_events(figure: go.Figure, marks: pd.DataFrame | None, theme: Theme) -> None:
    """Mark events as triangles on the time axis, errors and warnings in the warning colour."""
    if marks is None or marks.empty:
        return
    color = np.where(marks["level"].isin(["warning", "error"]), theme.warning, theme.muted)
    lines = [_event_line(mark) for mark in marks.to_dict("records")]
    figure.add_trace(
        {
            "type": "scatter",
            "x": floats(marks["step"]),
            "y": np.zeros(len(marks), np.float32),
            "yaxis": EDGE_AXIS,
            "mode": "markers",
            "name": _("events"),
            "marker": {"symbol": "triangle-up", "size": 9, "color": color.tolist()},
            "customdata": lines,
            "hovertemplate": _("step %{x:,}<br>%{customdata}") + "<extra></extra>",
            "cliponaxis": False,
        }
    )


def _event_line(mark: dict[Any, Any]) -> str:
    times = f" ×{mark['count']:,}" if mark["count"] > 1 else ""
    return f"{escape(str(mark['kind']))}{times}: {escape(str(mark['message']))}"


def add_notes(
    figure: go.Figure,
    pinned: pd.DataFrame | None,
    theme: Theme,
    *,
    xaxis: str = "x",
    yaxis: str = EDGE_AXIS,
    at: float = 1.0,
) -> None:
    """Mark pinned notes as diamonds at an edge, their text on hover.

    Args:
        figure: the figure.
        pinned: ``[step, text, count]``; nothing is drawn without rows.
        theme: colours.
        xaxis: axis of the steps.
        yaxis: axis from 0 at the bottom to 1 at the top.
        at: where on it.
    """
    if pinned is None or pinned.empty:
        return
    figure.add_trace(
        {
            "type": "scatter",
            "x": floats(pinned["step"]),
            "y": np.full(len(pinned), at, np.float32),
            "xaxis": xaxis,
            "yaxis": yaxis,
            "mode": "markers",
            "name": _("pinned notes"),
            "marker": {"symbol": "diamond", "size": 10, "color": theme.accent},
            "customdata": [_note_lines(text) for text in pinned["text"]],
            "hovertemplate": _("step %{x:,}<br>%{customdata}") + "<extra></extra>",
            "cliponaxis": False,
        }
    )


def _note_lines(text: str) -> str:
    lines = [line for part in text.splitlines() for line in wrap(part, _NOTE_WIDTH) or [""]]
    more = ["…"] if len(lines) > _NOTE_LINES else []
    return "<br>".join(escape(line) for line in [*lines[:_NOTE_LINES], *more])


def add_references(figure: go.Figure, references: pd.DataFrame | None, theme: Theme) -> None:
    """Draw reference values as dotted lines, named above the line at the right."""
    if references is None:
        return
    for line in references.to_dict("records"):
        figure.add_shape(
            type="line",
            xref="paper",
            yref="y",
            x0=0,
            x1=1,
            y0=line["value"],
            y1=line["value"],
            line={"color": theme.muted, "width": 1, "dash": "dot"},
        )
        figure.add_annotation(
            text=_("{name} = {value}, nothing learned").format(
                name=line["name"], value=f"{line['value']:.2f}"
            ),
            hovertext=str(line["why"]),
            xref="paper",
            x=1,
            y=line["value"],
            xanchor="right",
            yanchor="bottom",
            showarrow=False,
            font={"color": theme.muted, "size": 11},
        )


def add_broken(
    figure: go.Figure, series: pd.DataFrame, theme: Theme, *, xaxis: str = "x", yaxis: str = EDGE_AXIS
) -> None:
    """Mark values that are not finite as ticks: NaN and +∞ at the upper edge, −∞ at the lower."""
    finite = np.isfinite(series["value"].to_numpy(dtype=np.float64))
    if finite.all():
        return
    rows = series[~finite]
    broken = rows["value"].to_numpy(dtype=np.float64)
    direction = rows["direction"].astype(object).where(rows["direction"].notna(), "")
    figure.add_trace(
        {
            "type": "scatter",
            "x": floats(rows["step"]),
            "y": np.where(broken == -np.inf, 0, 1).astype(np.float32),
            "xaxis": xaxis,
            "yaxis": yaxis,
            "mode": "markers",
            "name": _("not finite"),
            "marker": {
                "symbol": "line-ns-open",
                "size": 9,
                "color": theme.warning,
                "line": {"width": 1.5, "color": theme.warning},
            },
            "customdata": [f"{d} {v}".strip() for d, v in zip(direction, broken, strict=True)],
            "hovertemplate": _("step %{x:,}: %{customdata}") + "<extra></extra>",
            "cliponaxis": False,
        }
    )
