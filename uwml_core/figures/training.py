"""Series over steps and retrieval over evaluations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.figures.draft import Draft, axis_number
from uwml_core.figures.frame import (
    end_labels,
    finite_span,
    fit_axes,
    floats,
    last_value,
    panel_title,
    say_empty,
    short_numbers,
    shown_values,
    titled,
)
from uwml_core.figures.overlays import (
    add_broken,
    add_edge_axis,
    add_events,
    add_notes,
    add_phases,
    add_references,
)
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _, ngettext

# Between two panels of retrieval, as a share of the plot; holds the lower one's title.
_SPACING = 0.1
# The least share of a zoomed chart's height that its values take beside a reference line.
_LEAST_SHARE = 0.4


def line_figure(
    series: pd.DataFrame,
    *,
    title: str,
    unit: str,
    theme: Theme,
    directions: tuple[str, str],
    smooth: pd.DataFrame | None = None,
    bands: pd.DataFrame | None = None,
    marks: pd.DataFrame | None = None,
    references: pd.DataFrame | None = None,
    pinned: pd.DataFrame | None = None,
    within: tuple[float, float] | None = None,
    height: int = 220,
) -> go.Figure:
    """A quantity over steps, a line per direction, named and valued at its end.

    Args:
        series: ``[step, epoch, direction, value, n]``, rows of a direction together; drawn as it is.
        title: of the figure, empty where the page has one.
        unit: of the value.
        theme: colours.
        directions: the run's directions.
        smooth: the same averaged; the series then becomes a pale background of it.
        bands: ``[phase, first_step, last_step]``.
        marks: ``[step, kind, level, message, count]``.
        references: ``[name, value, why]``.
        pinned: notes, ``[step, text, count]``.
        within: first and last step that the page shows, whose values give the height and are named; None
            for all.
        height: pixels.

    Returns:
        The figure; values that are not finite are ticks at the edge.
    """
    figure = Draft(theme, height=height, title=title, unit=unit)
    add_edge_axis(figure)
    figure.update_xaxes(title={"text": _("step")}, tickformat="~s")
    if series.empty:
        return say_empty(figure, theme).figure()
    add_phases(figure, bands, theme)
    add_references(figure, references, theme)
    lines, window = _lines(series, theme, directions), 0
    drawn = lines
    if smooth is not None:
        _add_lines(figure, lines, width=1.0, opacity=0.28)
        lines, window = _lines(smooth, theme, directions), int(smooth["window"].iloc[0])
        drawn = [*drawn, *lines]
    _add_lines(figure, lines, width=1.8, opacity=1.0, window=window)
    add_broken(figure, series, theme)
    add_events(figure, marks, theme)
    add_notes(figure, pinned, theme)
    levels = np.empty(0) if references is None else references["value"].to_numpy(dtype=np.float64)
    span = _span(drawn, levels, within)
    if within is not None:
        room = 0.06 * (span[1] - span[0])
        span = span[0] - room, span[1] + room
        figure.update_layout(yaxis={"range": list(span)})
    fit_axes(figure, series["step"].to_numpy(), span)
    figure.update_yaxes(nticks=max(6, height // 40))
    end_labels(figure, _ends(lines, within), span)
    return figure.figure()


class _Line(NamedTuple):
    """Points of one direction, or of the total where it has no name."""

    name: str | None
    color: str
    columns: dict[str, np.ndarray]


def _lines(series: pd.DataFrame, theme: Theme, directions: tuple[str, str]) -> list[_Line]:
    """Finite points of each direction, the total last; frames would take most of a chart's time."""
    columns = {name: series[name].to_numpy(dtype=np.float64) for name in ("step", "epoch", "value", "n")}
    direction = series["direction"].cat
    names, codes = {-1: None, **dict(enumerate(map(str, direction.categories)))}, direction.codes.to_numpy()
    finite, lines = np.isfinite(columns["value"]), []
    for code in sorted(set(codes.tolist()), reverse=True):
        rows, name = np.flatnonzero((codes == code) & finite), names[code]
        points = {column: values[rows] for column, values in columns.items()}
        lines.append(_Line(name, theme.direction(name, directions), points))
    return lines


def _add_lines(figure: Draft, lines: list[_Line], *, width: float, opacity: float, window: int = 0) -> None:
    for name, color, points in lines:
        total = len(points["step"])
        if not total:
            continue
        figure.add_trace(
            {
                "type": "scatter",
                "x": floats(points["step"]),
                "y": floats(points["value"]),
                "customdata": floats(np.stack([points["epoch"], points["n"]], axis=1)),
                "mode": "lines+markers" if total == 1 else "lines",
                "name": name or _("total"),
                "line": {"color": color, "width": width},
                "opacity": opacity,
                "hovertemplate": _hover(name, window),
            }
        )


def _span(lines: list[_Line], levels: np.ndarray, within: tuple[float, float] | None) -> tuple[float, float]:
    """Smallest and largest value to show; of a part without the levels that would flatten it."""
    shown = [shown_values(points["step"], points["value"], within) for _name, _color, points in lines]
    if within is None or not any(map(len, shown)):
        return finite_span(*(points["value"] for _name, _color, points in lines), levels)
    low, high = finite_span(*shown)
    near = np.maximum(levels, high) - np.minimum(levels, low) <= (high - low) / _LEAST_SHARE
    return finite_span(*shown, levels[near])


def _ends(lines: list[_Line], within: tuple[float, float] | None) -> list[tuple[str, float, str]]:
    ends = []
    for name, color, points in lines:
        last = last_value(points["step"], points["value"], within)
        if np.isfinite(last):
            ends.append((name, last, color))
    numbers = short_numbers([last for _name, last, _color in ends])
    alone = len(lines) == 1
    return [
        (number if alone else f"{name or _('total')} {number}", last, color)
        for number, (name, last, color) in zip(numbers, ends, strict=True)
    ]


def _hover(name: str | None, window: int) -> str:
    head = f"<b>{name or _('total')}</b> %{{y:.4~g}}"
    if window:
        mean = ngettext("mean of {window} step", "mean of {window} steps", window)
        head = f"{head}, {mean.format(window=f'{window:,}')}"
    rest = _("step %{x:,} · epoch %{customdata[0]:.0f} · n = %{customdata[1]:,.0f} pairs")
    return f"{head}<br>{rest}<extra></extra>"


def loss_figure(
    series: pd.DataFrame,
    bands: pd.DataFrame | None,
    marks: pd.DataFrame | None,
    references: pd.DataFrame | None,
    theme: Theme,
    *,
    directions: tuple[str, str],
    smooth: pd.DataFrame | None = None,
    pinned: pd.DataFrame | None = None,
    within: tuple[float, float] | None = None,
    height: int = 360,
) -> go.Figure:
    """Loss and its parts over steps; arguments as for ``line_figure``."""
    return line_figure(
        series,
        title="",
        unit="",
        theme=theme,
        directions=directions,
        smooth=smooth,
        bands=bands,
        marks=marks,
        references=references,
        pinned=pinned,
        within=within,
        height=height,
    )


def retrieval_figure(
    curves: pd.DataFrame, theme: Theme, *, directions: tuple[str, str], height: int = 340
) -> go.Figure:
    """R@K over evaluations, one panel per K under each other, both directions in each.

    Args:
        curves: ``[step, epoch, direction, metric, value, n, tied_share]``, values in percent.
        theme: colours.
        directions: the run's directions.
        height: pixels.
    """
    metrics = list(dict.fromkeys(curves["metric"]))
    if not metrics:
        return say_empty(Draft(theme, height=height), theme, _("No evaluation yet")).figure()
    figure = Draft(theme, height=height, t=28)
    figure.stack(len(metrics), spacing=_SPACING)
    panel_px = (height - 72) * (1 - _SPACING * (len(metrics) - 1)) / len(metrics)
    for row, metric in enumerate(metrics, start=1):
        _add_panel(figure, curves[curves["metric"] == metric], row, theme, directions=directions, px=panel_px)
    few = sorted(set(curves["step"])) if curves["step"].nunique() <= 6 else None
    figure.update_xaxes(tickformat="~s" if few is None else ",d", nticks=6, tickvals=few)
    figure.update_layout(**{f"xaxis{axis_number(len(metrics))}": {"title": {"text": _("step")}}})
    figure.update_yaxes(nticks=4)
    return figure.figure()


def _add_panel(
    figure: Draft, rows: pd.DataFrame, row: int, theme: Theme, *, directions: tuple[str, str], px: float
) -> None:
    metric, number, ends = str(rows["metric"].iloc[0]), axis_number(row), []
    for direction in directions:
        mine = rows[rows["direction"] == direction]
        if mine.empty:
            continue
        color, last = theme.direction(direction, directions), float(mine["value"].iloc[-1])
        trace = _retrieval_trace(mine, f"{metric} {direction}", color)
        figure.add_trace({**trace, "xaxis": f"x{number}", "yaxis": f"y{number}"})
        ends.append((f"{direction} {last:.1f}", last, color))
    highest = finite_span(rows["value"].to_numpy(dtype=np.float64))[1]
    top = 1.1 * highest if highest > 0 else 1.0
    # a marker at 0 is seen in whole
    bottom = -0.06 * top
    figure.update_layout(**{f"yaxis{number}": {"range": [bottom, top]}})
    end_labels(figure, ends, (bottom, top), plot_px=px, yref=f"y{number}")
    panel_title(figure, titled(metric, "%", theme), f"y{number}")


def _retrieval_trace(rows: pd.DataFrame, name: str, color: str) -> dict[str, Any]:
    extra = rows[["epoch", "n", "tied_share"]].to_numpy(dtype=np.float64, na_value=np.nan)
    extra[:, 2] *= 100.0
    rest = _(
        "step %{x:,} · epoch %{customdata[0]:.0f}<br>n = %{customdata[1]:,.0f} queries, "
        "%{customdata[2]:.1f} % tied"
    )
    return {
        "type": "scatter",
        "x": floats(rows["step"]),
        "y": floats(rows["value"]),
        "customdata": floats(extra),
        "mode": "lines+markers",
        "name": name,
        "line": {"color": color, "width": 2},
        "marker": {"size": 5, "line": {"width": 1, "color": fade(color, 0.4)}},
        "hovertemplate": f"<b>{name}</b> %{{y:.1f}} %<br>{rest}<extra></extra>",
    }
