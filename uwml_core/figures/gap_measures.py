"""The measures of the gap from snapshot to snapshot, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from uwml_core.analysis.gap_measures import ACROSS, MEASURES
from uwml_core.figures.frame import end_labels, finite_span, floats, say_empty
from uwml_core.figures.theme import UI_REVISION, Theme, fade
from uwml_core.i18n import _

_CHANCE = {"rmg": 0.5, "separability": 0.5}


def measure_name(measure: str) -> str:
    """What a measure is called.

    Raises:
        KeyError: if there is no such measure.
    """
    names = {
        "centroid_distance": _("Distance of the centres"),
        "rmg": _("Relative modality gap"),
        "alignment": _("Alignment"),
        "uniformity": _("Uniformity"),
        "separability": _("Linear separability"),
    }
    return names[measure]


def gap_measures_figure(
    gaps: pd.DataFrame,
    theme: Theme,
    *,
    modalities: tuple[str, str],
    step: int | None = None,
    height: int = 200,
) -> go.Figure:
    """One panel per measure over epochs, or over steps where an epoch was not logged.

    Args:
        gaps: frame of ``merge_gaps``.
        theme: colours.
        modalities: names of both.
        step: snapshot to mark.
        height: pixels.
    """
    figure = make_subplots(rows=1, cols=len(MEASURES), horizontal_spacing=0.055)
    figure.update_layout(
        template=theme.template,
        height=height,
        uirevision=UI_REVISION,
        margin={"l": 44, "r": 60, "t": 34, "b": 40},
    )
    if not np.isfinite(gaps["value"].to_numpy(np.float64)).any():
        return say_empty(figure, theme, _("No snapshot in which an item has both modalities"))
    lines: dict[str | None, str] = {
        modalities[0]: theme.first,
        modalities[1]: theme.second,
        ACROSS: theme.muted,
    }
    unit = "step" if gaps["epoch"].isna().any() else "epoch"
    for column, measure in enumerate(MEASURES, start=1):
        colors: dict[str | None, str] = lines if measure == "uniformity" else {None: theme.accent}
        _panel(figure, gaps[gaps["measure"] == measure], column, unit=unit, colors=colors, theme=theme)
        _mark(figure, gaps[(gaps["measure"] == measure) & (gaps["step"] == step)], column, unit, theme)
    figure.update_xaxes(title_text=_("epoch") if unit == "epoch" else _("step"), nticks=5)
    return figure


def _panel(
    figure: go.Figure,
    rows: pd.DataFrame,
    column: int,
    *,
    unit: str,
    colors: Mapping[str | None, str],
    theme: Theme,
) -> None:
    suffix = "" if column == 1 else str(column)
    measure = MEASURES[column - 1]
    ends: list[tuple[str, float, str]] = []
    for name, color in colors.items():
        mine = rows[rows["modality"].isna()] if name is None else rows[rows["modality"] == name]
        if len(mine):
            figure.add_trace(_line(mine, measure, name, color, unit), row=1, col=column)
            last = float(mine["value"].iloc[-1])
            ends.append((f"{last:.2f}" if name is None else _series_name(name), last, color))
    chance = np.array([_CHANCE[measure]] if measure in _CHANCE else [])
    low, high = finite_span(rows["value"].to_numpy(np.float64), chance)
    air = 0.08 * (high - low) or 0.1
    figure.update_yaxes(range=[low - air, high + air], nticks=5, row=1, col=column)
    if len(chance):
        line = {"color": theme.muted, "width": 1, "dash": "dot"}
        figure.add_hline(y=float(chance[0]), line=line, row=1, col=column)
    end_labels(figure, ends, (low - air, high + air), xref=f"x{suffix} domain", yref=f"y{suffix}")
    figure.add_annotation(
        text=measure_name(measure), xref=f"x{suffix} domain", yref="paper", x=0, y=1, xanchor="left",
        yanchor="bottom", yshift=8, showarrow=False, font={"size": 13},
    )  # fmt: skip


def _series_name(name: str) -> str:
    return _("across") if name == ACROSS else name


def _line(rows: pd.DataFrame, measure: str, name: str | None, color: str, unit: str) -> go.Scatter:
    title = measure_name(measure) if name is None else f"{measure_name(measure)}, {_series_name(name)}"
    return go.Scatter(
        x=floats(rows[unit]),
        y=floats(rows["value"]),
        customdata=floats(rows[["step", "n"]].to_numpy(np.float64)),
        mode="lines+markers",
        name=title,
        line={"color": color, "width": 2},
        marker={"size": 4},
        hovertemplate=f"<b>{title}</b> %{{y:.3f}}<br>"
        + _("step %{customdata[0]:,.0f} · n = %{customdata[1]:,.0f} items")
        + "<extra></extra>",
    )


def _mark(figure: go.Figure, rows: pd.DataFrame, column: int, unit: str, theme: Theme) -> None:
    if rows.empty:
        return
    ring: dict[str, Any] = {
        "size": 9,
        "color": fade(theme.ghost, 0.0),
        "line": {"width": 1.5, "color": theme.text},
    }
    figure.add_trace(
        go.Scatter(
            x=floats(rows[unit]), y=floats(rows["value"]), mode="markers", marker=ring, hoverinfo="skip"
        ),
        row=1,
        col=column,
    )
