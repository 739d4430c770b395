"""The measures of the gap from snapshot to snapshot, a panel each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.analysis.gap_measures import ACROSS, MEASURES, SPLIT_MEASURES
from uwml_core.analysis.text import modality_name
from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import finite_span, floats, say_empty, spread_labels
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

# Row and columns of each panel; what has several lines to name takes two columns.
_PLACES = {
    "centroid_distance": (0, 0, 1),
    "rmg": (0, 1, 1),
    "alignment": (0, 2, 1),
    "separability": (1, 0, 1),
    "uniformity": (1, 1, 2),
    "hubness": (2, 0, 1),
    "cosine": (2, 1, 2),
}
_ROWS, _COLUMNS = 3, 3
# Room between two panels, in a row for the labels at the right edge, as a share of the whole.
_GAP_X, _GAP_Y = 0.15, 0.17
_CHANCE = {"rmg": 0.5, "separability": 0.5}


def measure_name(measure: str) -> str:
    """What a measure is called.

    Raises:
        KeyError: if there is no such measure.
    """
    names = {
        "centroid_distance": _("Center distance"),
        "rmg": _("Relative gap"),
        "alignment": _("Alignment"),
        "uniformity": _("Uniformity"),
        "separability": _("Separability"),
        "hubness": _("Hubness"),
        "cosine": _("Cosine of different items"),
    }
    return names[measure]


def gap_measures_figure(
    gaps: pd.DataFrame,
    theme: Theme,
    *,
    modalities: tuple[str, str],
    step: int | None = None,
    height: int = 460,
) -> go.Figure:
    """One panel per measure over epochs, or over steps where an epoch was not logged.

    Args:
        gaps: frame of ``merge_gaps``.
        theme: colours.
        modalities: names of both.
        step: snapshot to mark.
        height: pixels.
    """
    draft = gap_measures_draft(gaps, theme, modalities=modalities, height=height)
    return draft.figure(*([] if step is None else step_marks(gaps, theme, step)))


def gap_measures_draft(
    gaps: pd.DataFrame, theme: Theme, *, modalities: tuple[str, str], height: int = 460
) -> Draft:
    """The figure without a mark, which is the same whatever snapshot is looked at."""
    if not np.isfinite(gaps["value"].to_numpy(np.float64)).any():
        text = _("No snapshot in which an item has both modalities")
        empty: Draft = say_empty(Draft(theme, height=height), theme, text)
        return empty
    unit = _unit(gaps)
    lines: dict[str | None, str] = {modalities[0]: theme.first, modalities[1]: theme.second}
    lines[ACROSS] = theme.muted
    # whole numbers only: there is no half epoch
    apart = max(1, math.ceil(np.ptp(gaps[unit].to_numpy(np.float64)) / 4))
    figure = _frame(theme, height, _("epoch") if unit == "epoch" else _("step"), apart)
    for place, measure in enumerate(MEASURES):
        rows = gaps[gaps["measure"] == measure]
        colors: dict[str | None, str] = lines if measure in SPLIT_MEASURES else {None: theme.accent}
        _add_panel(figure, rows, place, unit=unit, colors=colors, theme=theme)
    return figure


def step_marks(gaps: pd.DataFrame, theme: Theme, step: int) -> list[dict[str, Any]]:
    """Traces over what ``gap_measures_draft`` drew: a ring around one snapshot's values."""
    return _marks(gaps[gaps["step"] == step], _unit(gaps), theme)


def _unit(gaps: pd.DataFrame) -> str:
    return "step" if gaps["epoch"].isna().any() else "epoch"


def _frame(theme: Theme, height: int, x_title: str, apart: int) -> Draft:
    figure = Draft(theme, height=height, l=40, r=60, t=30, b=40)
    for number, measure in enumerate(MEASURES, start=1):
        row, column, wide = _PLACES[measure]
        axis, left = _axis(number), column * _width(1, _GAP_X, _COLUMNS, gaps=1)
        title = {"text": x_title if row == _ROWS - 1 else "", "standoff": 4}
        across = {
            "domain": [left, left + _width(wide, _GAP_X, _COLUMNS)],
            "anchor": f"y{axis}",
            "title": title,
            "dtick": apart,
        }
        bottom = (_ROWS - 1 - row) * _width(1, _GAP_Y, _ROWS, gaps=1)
        up = {"domain": [bottom, bottom + _width(1, _GAP_Y, _ROWS)], "anchor": f"x{axis}", "nticks": 4}
        figure.update_layout(**{f"xaxis{axis}": across, f"yaxis{axis}": up})
    return figure


def _width(panels: int, gap: float, count: int, gaps: int = 0) -> float:
    """Share of the whole that some of ``count`` panels take, with the gaps inside and some more."""
    one = (1.0 - (count - 1) * gap) / count
    return panels * one + (panels - 1 + gaps) * gap


def _add_panel(
    figure: Draft,
    rows: pd.DataFrame,
    place: int,
    *,
    unit: str,
    colors: Mapping[str | None, str],
    theme: Theme,
) -> None:
    measure, number = MEASURES[place], place + 1
    axes = {"xref": f"x{_axis(number)} domain", "yref": f"y{_axis(number)}"}
    ends = []
    for name, color in colors.items():
        mine = rows[rows["modality"].isna()] if name is None else rows[rows["modality"] == name]
        if len(mine):
            figure.add_trace(_band(mine, color, unit) | _on(number))
            figure.add_trace(_line(mine, measure, name, color, unit) | _on(number))
            last = float(mine["value"].iloc[-1])
            ends.append((f"{last:.2f}" if name is None else _series_name(name), last, color))
    chance = np.array([_CHANCE[measure]] if measure in _CHANCE else [])
    low, high = finite_span(*(rows[name].to_numpy(np.float64) for name in ("value", "low", "high")), chance)
    air = 0.08 * (high - low) or 0.1
    figure.update_layout(**{f"yaxis{_axis(number)}": {"range": [low - air, high + air]}})
    for value in chance:
        line = {"color": theme.muted, "width": 1, "dash": "dot"}
        figure.add_shape(type="line", x0=0, x1=1, y0=value, y1=value, line=line, **axes)
        figure.add_annotation(**_chance_label(float(value), rows["value"].to_numpy(), theme, **axes))
    margin, height = figure.layout["margin"], figure.layout["height"]
    plot_px = (height - margin["t"] - margin["b"]) * _width(1, _GAP_Y, _ROWS)
    for label in label_dicts(ends, (low - air, high + air), plot_px, **axes):
        figure.add_annotation(**label)
    figure.add_annotation(
        text=measure_name(measure),
        xref=axes["xref"],
        yref=f"y{_axis(number)} domain",
        x=0,
        y=1,
        xanchor="left",
        yanchor="bottom",
        yshift=8,
        showarrow=False,
        font={"size": 13},
    )


def _chance_label(value: float, drawn: np.ndarray, theme: Theme, **axes: str) -> dict[str, Any]:
    """Name of the dashed line, at the end from which the drawn values stay away."""
    third = max(1, len(drawn) // 3)
    apart = np.abs(np.asarray(drawn, dtype=np.float64) - value)
    starts = not apart[:third].min(initial=np.inf) < apart[-third:].min(initial=np.inf)
    place = {"x": 0, "xanchor": "left", "xshift": 2} if starts else {"x": 1, "xanchor": "right"}
    font = {"color": theme.muted, "size": 11}
    return {
        "text": _("chance"),
        "y": value,
        "yanchor": "bottom",
        "showarrow": False,
        "font": font,
        **place,
        **axes,
    }


def label_dicts(
    labels: Sequence[tuple[str, float, str]], span: tuple[float, float], plot_px: float, **axes: str
) -> list[dict[str, Any]]:
    """Labels at the right edge of a panel, at the height of their values, moved apart where they overlap."""
    finite = [label for label in labels if np.isfinite(label[1])]
    scale = plot_px / (span[1] - span[0])
    shifts = spread_labels([(value - span[0]) * scale for _text, value, _color in finite])
    return [
        {
            "text": text,
            "x": 1,
            "y": value,
            "xshift": 5,
            "yshift": shift,
            "xanchor": "left",
            "yanchor": "middle",
            "showarrow": False,
            "font": {"color": color, "size": 12},
            **axes,
        }
        for (text, value, color), shift in zip(finite, shifts, strict=True)
    ]


def _axis(number: int) -> str:
    return "" if number == 1 else str(number)


def _on(number: int) -> dict[str, str]:
    return {"xaxis": f"x{_axis(number)}", "yaxis": f"y{_axis(number)}"}


def _series_name(name: str) -> str:
    return _("across") if name == ACROSS else modality_name(name)


def _band(rows: pd.DataFrame, color: str, unit: str) -> dict[str, Any]:
    """The interval around a line, there and back again; where it is not known there is none."""
    known = rows[np.isfinite(rows["low"]) & np.isfinite(rows["high"])]
    return {
        "type": "scatter",
        "x": floats(np.concatenate([known[unit], known[unit][::-1]])),
        "y": floats(np.concatenate([known["low"], known["high"][::-1]])),
        "mode": "lines",
        "fill": "toself",
        "fillcolor": fade(color, 0.18),
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _line(rows: pd.DataFrame, measure: str, name: str | None, color: str, unit: str) -> dict[str, Any]:
    title = measure_name(measure)
    if name is not None:
        title = f"{title}, {escape(_series_name(name))}"
    return {
        "type": "scatter",
        "x": floats(rows[unit]),
        "y": floats(rows["value"]),
        "customdata": floats(rows[["step", "n", "low", "high"]].to_numpy(np.float64)),
        "mode": "lines+markers",
        "name": title,
        "line": {"color": color, "width": 2},
        "marker": {"size": 4},
        "hovertemplate": f"<b>{title}</b> %{{y:.3f}} [%{{customdata[2]:.3f}}, %{{customdata[3]:.3f}}]<br>"
        + _("step %{customdata[0]:,.0f} · n = %{customdata[1]:,.0f} items")
        + "<extra></extra>",
    }


def _marks(rows: pd.DataFrame, unit: str, theme: Theme) -> list[dict[str, Any]]:
    ring = {"symbol": "circle-open", "size": 9, "color": theme.text, "line": {"width": 1.5}}
    mark = {"type": "scatter", "mode": "markers", "marker": ring, "hoverinfo": "skip"}
    x, y, measure = floats(rows[unit]), floats(rows["value"]), rows["measure"].to_numpy(object)
    places = {number: measure == name for number, name in enumerate(MEASURES, start=1)}
    return [
        {**mark, "x": x[mine], "y": y[mine], **_on(number)} for number, mine in places.items() if mine.any()
    ]
