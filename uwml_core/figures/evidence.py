"""The small chart that proves a finding."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from uwml_core.analysis.diagnosis.finding import Evidence
from uwml_core.analysis.diagnosis.names import column_name, unit_name
from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import floats, say_empty
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _


def evidence_figure(
    evidence: Evidence, theme: Theme, *, directions: tuple[str, str], height: int = 220
) -> go.Figure:
    """Lines or bars of a finding's table, with the limit that they crossed.

    A table with a column ``direction`` gives a line for each.

    Args:
        evidence: what to draw.
        theme: colours.
        directions: of the run, for their colours.
        height: pixels.
    """
    figure, frame = Draft(theme, height=height, r=12), evidence.frame
    if frame.empty or not len(evidence.y):
        return say_empty(figure, theme, _("No numbers to draw")).figure()
    for name, rows, own in _series(evidence, theme, directions):
        for column in evidence.y:
            color = own or _color(evidence, column, theme, directions)
            figure.add_trace(_trace(evidence, rows, column, name or column_name(column), color))
    _add_limit(figure, evidence, theme)
    several = len(figure.data) > 1
    figure.update_layout(showlegend=several, legend={"orientation": "h", "y": 1.0, "yanchor": "bottom"})
    figure.update_xaxes(title={"text": column_name(evidence.x)})
    figure.update_yaxes(title={"text": "" if evidence.unit in ("", "1") else unit_name(evidence.unit)})
    return figure.figure()


def _add_limit(figure: Draft, evidence: Evidence, theme: Theme) -> None:
    if evidence.limit is None:
        return
    line = {"color": theme.warning, "dash": "dash", "width": 1}
    place = {"xref": "x domain", "yref": "y"}
    figure.add_shape(type="line", line=line, x0=0, x1=1, y0=evidence.limit, y1=evidence.limit, **place)
    figure.add_annotation(
        text=evidence.limit_name,
        font={"color": theme.warning, "size": 11},
        bgcolor=theme.surface,
        showarrow=False,
        x=1,
        y=evidence.limit,
        xanchor="right",
        yanchor="bottom",
        **place,
    )


def _series(
    evidence: Evidence, theme: Theme, directions: tuple[str, str]
) -> list[tuple[str, pd.DataFrame, str | None]]:
    frame = evidence.frame
    if "direction" not in frame or evidence.x == "direction":
        return [("", frame, None)]
    known = [name for name in directions if name in set(frame["direction"])]
    return [(name, frame[frame["direction"] == name], theme.direction(name, directions)) for name in known]


def _color(evidence: Evidence, column: str, theme: Theme, directions: tuple[str, str]) -> str:
    named = [each.rpartition("_")[2] for each in evidence.y]
    if set(named) <= set(directions) and len(set(named)) == len(named):
        return theme.direction(named[evidence.y.index(column)], directions)
    return (theme.accent, theme.ghost, theme.first, theme.second)[evidence.y.index(column) % 4]


def _trace(evidence: Evidence, rows: pd.DataFrame, column: str, label: str, color: str) -> dict[str, Any]:
    trace = {"x": _places(rows[evidence.x]), "y": floats(rows[column]), "name": label}
    if evidence.kind == "bar":
        return {**trace, "type": "bar", "marker": {"color": fade(color, 0.8)}}
    mode = "lines+markers" if len(rows) <= 30 else "lines"
    return {**trace, "type": "scatter", "mode": mode, "line": {"color": color, "width": 1.75}}


def _places(values: pd.Series) -> Any:
    return floats(values) if pd.api.types.is_numeric_dtype(values) else values.astype(str).tolist()
