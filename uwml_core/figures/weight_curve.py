"""The difficulty curve over the margins it acts on, and the curve through training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import end_labels, floats, say_empty
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _, ngettext

WEIGHT_AXIS = "y2"
# Room above the highest bar and the peak of the curve for the label of the center.
HEADROOM = 1.18
# Of a direction's name, as a share of the plot in a narrow window.
_NAME_WIDTH = 0.2
Span = tuple[float, float]
# Always in view, so that the four bands can be told apart whatever the data.
_LEAST_RANGE = (-0.15, 0.4)


def weight_curve_figure(
    hist: pd.DataFrame,
    curve_now: pd.DataFrame,
    curve_new: pd.DataFrame,
    bands: pd.DataFrame,
    theme: Theme,
    *,
    directions: tuple[str, str],
    center: float | None = None,
    height: int = 440,
) -> go.Figure:
    """Margins of both directions, and over them the weight that each margin gets.

    Args:
        hist: ``[direction, bin, left, right, count, ...]`` as ``margins.select_epoch`` gives it.
        curve_now: ``[margin, weight, ...]`` in use, one moment; a dashed ghost where
            it differs.
        curve_new: the curve being tried, at the same moment.
        bands: ``[band, label, low, high]``.
        theme: colours.
        directions: the run's directions.
        center: of ``curve_new``; not marked when None or when the curve is flat.
        height: pixels.
    """
    figure = Draft(theme, height=height, t=44, l=64, r=56)
    inside = hist[np.isfinite(hist["left"]) & np.isfinite(hist["right"])]
    low, high = _range(inside)
    top = _add_margins(figure, inside, theme, directions, (low, high))
    _add_bands(figure, bands, theme, (low, high))
    tried = not np.array_equal(curve_now["weight"], curve_new["weight"])
    if tried:
        _add_curve(figure, curve_now, _("in use"), {"color": theme.ghost, "width": 2, "dash": "dash"})
    name = _("tried") if tried else _("in use")
    _add_curve(figure, curve_new, name, {"color": theme.accent, "width": 3.5})
    if center is not None and curve_new["weight"].nunique() > 1:
        _add_center(figure, curve_new, center, theme)
    tick = 0.1 if high - low < 1.3 else 0.2
    figure.update_xaxes(title={"text": _("margin (cosine)")}, range=[low, high], dtick=tick, tickformat=".1f")
    figure.update_yaxes(
        title={"text": _("anchors per 0.01 of margin")},
        rangemode="tozero",
        range=[0, HEADROOM * top],
        **({"tickformat": "~s", "nticks": 6} if top > 5 else {"tickformat": "d", "dtick": 1}),
    )
    figure.update_layout(yaxis2=_weight_axis(theme))
    is_right = center is not None and center > (low + high) / 2
    figure.update_layout(showlegend=True, legend=_legend("left" if is_right else "right", theme))
    _add_outside(figure, hist, theme)
    return figure.figure()


def _legend(side: str, theme: Theme) -> dict[str, Any]:
    # Away from the label of the center, which is at the same height.
    at = {"x": 0 if side == "left" else 1, "y": 1, "xanchor": side, "yanchor": "top"}
    return {**at, "bgcolor": fade(theme.surface, 0.0), "font": {"size": 12}}


def _weight_axis(theme: Theme) -> dict[str, Any]:
    return {
        "overlaying": "y",
        "side": "right",
        "range": [0, HEADROOM],
        "tickvals": [0, 0.25, 0.5, 0.75, 1],
        "showgrid": False,
        "title": {"text": _("pair weight"), "font": {"color": theme.accent}},
        "tickfont": {"color": theme.accent},
        "fixedrange": True,
    }


def _range(inside: pd.DataFrame) -> tuple[float, float]:
    filled = inside[inside["count"] > 0]
    if filled.empty:
        return _LEAST_RANGE
    low = min(_LEAST_RANGE[0], float(filled["left"].min()) - 0.02)
    return low, max(_LEAST_RANGE[1], float(filled["right"].max()) + 0.02)


def _add_margins(
    figure: Draft, inside: pd.DataFrame, theme: Theme, directions: tuple[str, str], span: Span
) -> float:
    tops = [1.0]
    shown = [d for d in directions if (inside["direction"] == d).any()]
    means = {d: _mean_margin(inside[inside["direction"] == d]) for d in shown}
    for direction in sorted(shown, key=lambda name: means[name]):
        rows, color = inside[inside["direction"] == direction], theme.direction(direction, directions)
        figure.add_trace(_outline(rows, direction, color))
        # Named on its outer flank, where the other direction and the top of the curve are not.
        is_left = direction == min(means, key=lambda d: means[d])
        _name_margins(figure, inside, direction, color, is_left=is_left, span=span)
        tops.append(float(rows["count"].max()))
    return max(tops)


def _mean_margin(rows: pd.DataFrame) -> float:
    return float(((rows["left"] + rows["right"]) / 2 * rows["count"]).sum() / max(1, rows["count"].sum()))


def _name_margins(
    figure: Draft, inside: pd.DataFrame, direction: str, color: str, *, is_left: bool, span: Span
) -> None:
    count = inside.loc[inside["direction"] == direction, "count"]
    # Low on the left, below the floor of the curve; on the right the curve has come down by half height.
    # Inwards where it would reach beyond the axes, at last on the other side of the highest bar.
    for level in np.linspace(0.15 if is_left else 0.5, 1.0, 6) * count.max():
        bars = inside[inside["count"] >= level]
        x = float(bars["left"].min() if is_left else bars["right"].max())
        if fits := abs(x - span[0 if is_left else 1]) >= _NAME_WIDTH * (span[1] - span[0]):
            break
    to_left = is_left == fits
    figure.add_annotation(
        text=_("{direction}, n = {n}").format(direction=direction, n=f"{int(count.sum()):,}"),
        x=x,
        y=float(level),
        xanchor="right" if to_left else "left",
        yanchor="middle",
        xshift=-6 if to_left else 6,
        showarrow=False,
        font={"color": color, "size": 12},
    )


def _outline(rows: pd.DataFrame, direction: str, color: str) -> dict[str, Any]:
    left, right = rows["left"].to_numpy(), rows["right"].to_numpy()
    count = rows["count"].to_numpy(dtype=np.float64)
    # A step at each edge, down to 0 on both sides.
    x = np.concatenate([left[:1], left, right[-1:], right[-1:]])
    y = np.concatenate([[0.0], count, count[-1:], [0.0]])
    far = np.concatenate([right[:1], right, right[-1:], right[-1:]])
    return {
        "type": "scatter",
        "x": floats(x),
        "y": floats(y),
        "customdata": floats(far)[:, None],
        "mode": "lines",
        "line": {"color": color, "width": 1.2, "shape": "hv"},
        "showlegend": False,
        "fill": "tozeroy",
        "fillcolor": fade(color, 0.14),
        "name": direction,
        "hovertemplate": f"<b>{direction}</b> "
        + _("margin %{x:.2f} to %{customdata[0]:.2f}: n = %{y:,.0f} anchors")
        + "<extra></extra>",
    }


def _add_curve(figure: Draft, curve: pd.DataFrame, name: str, line: dict[str, Any]) -> None:
    if curve.empty:
        return
    steepness = float(curve["steepness"].iloc[0])
    figure.add_trace(
        {
            "type": "scatter",
            "x": floats(curve["margin"]),
            "y": floats(curve["weight"]),
            "yaxis": WEIGHT_AXIS,
            "mode": "lines",
            "line": line,
            "name": _("{name}, steepness {steepness}").format(name=name, steepness=f"{steepness:.1f}"),
            "showlegend": True,
            "hovertemplate": "<b>%{fullData.name}</b><br>"
            + _("weight %{y:.3f} at margin %{x:.2f}")
            + "<extra></extra>",
        }
    )


def _add_center(figure: Draft, curve: pd.DataFrame, center: float, theme: Theme) -> None:
    line = {"color": theme.accent, "width": 1, "dash": "dot"}
    figure.add_shape(type="line", x0=center, x1=center, y0=0, y1=1, yref=WEIGHT_AXIS, line=line)
    figure.add_annotation(
        text=_("center {center}").format(center=f"{center:.2f}"),
        x=center,
        y=1.0,
        yref=WEIGHT_AXIS,
        yanchor="bottom",
        yshift=4,
        showarrow=False,
        font={"color": theme.accent, "size": 12},
        bgcolor=fade(theme.surface, 0.7),
    )


def _add_bands(figure: Draft, bands: pd.DataFrame, theme: Theme, span: Span) -> None:
    for band, color in zip(bands.to_dict("records"), theme.bands, strict=True):
        x0, x1 = max(band["low"], span[0]), min(band["high"], span[1])
        figure.add_shape(
            type="rect",
            x0=max(band["low"], -2.0),
            x1=min(band["high"], 2.0),
            yref="paper",
            y0=0,
            y1=1,
            layer="below",
            fillcolor=fade(color, 0.13),
            line={"width": 0},
        )
        # beside a narrow band, and above its neighbours' names, rather than across them
        narrow = x1 - x0 < 0.1
        figure.add_annotation(
            text=band["label"],
            x=x1 if narrow else (x0 + x1) / 2,
            xanchor="right" if narrow else "center",
            yref="paper",
            y=1,
            yanchor="bottom",
            yshift=18 if x1 - x0 < 0.04 * (span[1] - span[0]) else 3,
            showarrow=False,
            font={"color": theme.muted, "size": 12},
        )


def _add_outside(figure: Draft, hist: pd.DataFrame, theme: Theme) -> None:
    outside = hist[~(np.isfinite(hist["left"]) & np.isfinite(hist["right"]))]
    count = int(outside["count"].sum())
    if count == 0:
        return
    text = ngettext("{n} anchor beyond ±2 not drawn", "{n} anchors beyond ±2 not drawn", count)
    figure.add_annotation(
        text=text.format(n=f"{count:,}"),
        xref="paper",
        yref="paper",
        x=1,
        y=0,
        xanchor="right",
        yanchor="bottom",
        showarrow=False,
        font={"color": theme.warning, "size": 11},
    )


def curve_by_epoch_figure(curve_frame: pd.DataFrame, theme: Theme, *, height: int = 260) -> go.Figure:
    """The curve in the middle of several epochs, coloured from the first to the last.

    Args:
        curve_frame: ``[epoch, margin, weight, progress, steepness]``.
        theme: colours.
        height: pixels.
    """
    figure = Draft(theme, height=height, r=72)
    epochs = list(dict.fromkeys(curve_frame["epoch"]))
    if not epochs:
        return say_empty(figure, theme, _("No epoch yet")).figure()
    low, high = -0.3, 0.6
    ends = []
    for epoch, color in zip(epochs, theme.ramp(len(epochs)), strict=True):
        rows = curve_frame[curve_frame["epoch"] == epoch]
        figure.add_trace(
            {
                "type": "scatter",
                "x": floats(rows["margin"]),
                "y": floats(rows["weight"]),
                "mode": "lines",
                "line": {"color": color, "width": 1.8},
                "name": _("epoch {epoch}").format(epoch=epoch),
                "customdata": floats(rows["steepness"])[:, None],
                "hovertemplate": f"<b>{_('epoch {epoch}').format(epoch=epoch)}</b> "
                + _("weight %{y:.3f} at margin %{x:.2f}, steepness %{customdata[0]:.1f}")
                + "<extra></extra>",
            }
        )
        shown = rows["weight"].to_numpy()[rows["margin"].to_numpy() <= high]
        ends.append((epoch, float(shown[-1]), theme.muted))
    figure.update_xaxes(title={"text": _("margin (cosine)")}, range=[low, high], tickformat=".1f")
    figure.update_yaxes(range=[0, 1.05], tickvals=[0, 0.25, 0.5, 0.75, 1])
    end_labels(figure, _spaced(ends, height), (0.0, 1.05))
    return figure.figure()


def _spaced(ends: list[tuple[int, float, str]], height: int) -> list[tuple[str, float, str]]:
    # As many labels as fit between the first and the last, whose labels always stand.
    room = max(2, (height - 72) // 30)
    every = np.unique(np.linspace(0, len(ends) - 1, min(len(ends), room)).round().astype(int))
    return [(_("epoch {epoch}").format(epoch=ends[i][0]), ends[i][1], ends[i][2]) for i in every]
