"""Shares of the gradient by band and the spread of weights, before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.analysis.bands import BAND_NAMES, band_label
from uwml_core.figures.draft import Draft, axis_number
from uwml_core.figures.frame import floats, say_empty
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

# room for the names of the bars
_BARS_LEFT = 84


def bands_figure(
    bands_frame: pd.DataFrame, theme: Theme, *, directions: tuple[str, str], height: int = 260
) -> go.Figure:
    """Which bands the gradient comes from: a bar per direction before and after, filled by band.

    Args:
        bands_frame: ``[direction, band, n, steps, share_before, share_after, ..._sd]``.
        theme: colours.
        directions: the run's directions.
        height: pixels.
    """
    figure = Draft(theme, height=height, l=_BARS_LEFT, r=24, t=28)
    if bands_frame.empty or not np.isfinite(bands_frame["share_before"]).any():
        return say_empty(figure, theme, _("No gradient share logged")).figure()
    names = {"before": _("in use"), "after": _("tried")}
    bars = [(d, when) for d in directions for when in ("before", "after")]
    labels = [f"{d} {names[when]}" for d, when in bars]
    rows: list[dict[Any, Any]] = bands_frame.to_dict("records")
    of_band = {(row["direction"], row["band"]): row for row in rows}
    for place, band in enumerate(dict.fromkeys(row["band"] for row in rows)):
        found = [(of_band.get((direction, band), {}), f"share_{when}") for direction, when in bars]
        share = 100.0 * np.array([row.get(name, np.nan) for row, name in found], dtype=np.float64)
        extra = np.array(
            [[100.0 * row.get(f"{name}_sd", np.nan), row.get("steps", np.nan)] for row, name in found]
        )
        bars_of_band = _band_bars(labels, share, extra, band_label(str(band)), theme.bands[place])
        figure.add_trace({**bars_of_band, "textfont": {"color": theme.on_bands[place], "size": 12}})
    figure.update_layout(barmode="stack", bargap=0.28)
    _name_bands(figure, theme)
    figure.update_xaxes(
        range=[0, 100],
        tickvals=[0, 25, 50, 75, 100],
        title={"text": _("% of the direction's gradient")},
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="", ticklabelstandoff=6)
    return figure.figure()


def _name_bands(figure: Draft, theme: Theme) -> None:
    keys = [
        f'<span style="color:{color}">■</span> {band_label(name)}'
        for name, color in zip(BAND_NAMES, theme.bands, strict=True)
    ]
    # from the left edge of the figure, so that a narrow card does not cut it off
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
    text, shift = "&nbsp;&nbsp; ".join(keys), 2 - _BARS_LEFT
    figure.add_annotation(text=text, showarrow=False, xshift=shift, yshift=4, font={"size": 12}, **place)


def _band_bars(
    labels: list[str], share: np.ndarray, extra: np.ndarray, band: str, color: str
) -> dict[str, Any]:
    return {
        "type": "bar",
        "y": labels,
        "x": floats(share),
        "orientation": "h",
        "name": band,
        "marker": {"color": color, "line": {"width": 0}},
        "text": [f"{value:.0f} %" if value >= 8 else "" for value in share],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "customdata": floats(extra),
        "hovertemplate": f"<b>%{{y}}</b> {band} %{{x:.1f}} %<br>"
        + _("spread over steps %{customdata[0]:.1f}, n = %{customdata[1]:,.0f} steps")
        + "<extra></extra>",
    }


def weights_figure(
    weights_frame: pd.DataFrame,
    theme: Theme,
    *,
    directions: tuple[str, str],
    max_weight: float | None = None,
    height: int = 260,
) -> go.Figure:
    """How relative weights are spread, a panel per direction: in use as a grey area, tried as a line.

    Args:
        weights_frame: ``[direction, bin, left, right, count_before, count_after]``.
        theme: colours.
        directions: the run's directions.
        max_weight: clamp of the tried weights, marked; None leaves it out.
        height: pixels.
    """
    counts = weights_frame[["count_before", "count_after"]].to_numpy()
    if not counts.size or not counts.any():
        return say_empty(Draft(theme, height=height, t=16), theme, _("No weight logged")).figure()
    figure = Draft(theme, height=height, r=16, t=22)
    figure.pair(spacing=0.06)
    used = float(weights_frame["left"].to_numpy()[counts.any(axis=1)].max()) + 0.1
    for column, direction in enumerate(directions, start=1):
        rows = weights_frame[weights_frame["direction"] == direction]
        color, number = theme.direction(direction, directions), axis_number(column)
        axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        figure.add_trace({**_steps(rows, "count_before", theme.ghost, _("in use"), 0.25), **axes})
        figure.add_trace({**_steps(rows, "count_after", color, f"{direction} {_('tried')}", 0.0), **axes})
        if max_weight is not None:
            _add_clamp(figure, number, max_weight, theme)
        _name_panel(figure, number, direction, color)
    right = max(used, 1.5) if max_weight is None else max(used, max_weight + 0.1)
    figure.update_xaxes(range=[0, right], nticks=6)
    # once for both panels, as twice would overlap in a narrow card
    place = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0, "yanchor": "top", "yshift": -22}
    font = {"color": theme.muted, "size": 12}
    figure.add_annotation(text=_("weight, 1 = average pair"), showarrow=False, font=font, **place)
    figure.update_yaxes(rangemode="tozero", tickformat="~s", nticks=5)
    return figure.figure()


def _add_clamp(figure: Draft, number: str, at: float, theme: Theme) -> None:
    line = {"color": theme.muted, "width": 1, "dash": "dot"}
    place = {"xref": f"x{number}", "yref": f"y{number} domain", "x0": at, "x1": at, "y0": 0, "y1": 1}
    figure.add_shape(type="line", line=line, **place)
    _name_panel(figure, number, _("clamp"), theme.muted, x=at)


def _name_panel(figure: Draft, number: str, text: str, color: str, x: float | None = None) -> None:
    figure.add_annotation(
        text=text,
        xref=f"x{number} domain" if x is None else f"x{number}",
        yref=f"y{number} domain",
        x=0 if x is None else x,
        y=1,
        xanchor="left" if x is None else "right",
        yanchor="bottom",
        xshift=0 if x is None else 3,
        showarrow=False,
        font={"color": color, "size": 12},
    )


def _steps(rows: pd.DataFrame, column: str, color: str, name: str, fill: float) -> dict[str, Any]:
    left, count = rows["left"].to_numpy(), rows[column].to_numpy()
    return {
        "type": "scatter",
        "x": floats(left),
        "y": floats(count),
        "mode": "lines",
        "line": {"color": color, "width": 1.0 if fill else 1.8, "shape": "hv"},
        "fill": "tozeroy" if fill else "none",
        "fillcolor": fade(color, fill),
        "name": name,
        "hovertemplate": f"<b>{name}</b> "
        + _("weight from %{x:.2f}: n = %{y:,.0f} anchors")
        + "<extra></extra>",
    }
