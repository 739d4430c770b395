"""The difficulty curve over the margins it acts on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import floats
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
    known: bool = True,
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
        known: whether the run tells its curve; otherwise only one that is tried is drawn.
        height: pixels.
    """
    figure = Draft(theme, height=height, t=44, l=64, r=56)
    inside = _Bins.inside(hist)
    low, high = _range(inside)
    top = _add_margins(figure, inside, theme, directions, (low, high))
    _add_bands(figure, bands, theme, (low, high))
    tried = not np.array_equal(curve_now["weight"], curve_new["weight"])
    if tried and known:
        _add_curve(figure, curve_now, _("in use"), {"color": theme.ghost, "width": 2, "dash": "dash"})
    name = _("tried") if tried else _("in use")
    if tried or known:
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


class _Bins(NamedTuple):
    """Bins of the histogram as arrays, which are many times as fast to choose from as a frame."""

    direction: np.ndarray
    left: np.ndarray
    right: np.ndarray
    anchors: np.ndarray

    @classmethod
    def inside(cls, hist: pd.DataFrame) -> _Bins:
        """Those that have both edges."""
        left, right, anchors = (hist[name].to_numpy(dtype=np.float64) for name in ("left", "right", "count"))
        bins = cls(hist["direction"].to_numpy(dtype=object), left, right, anchors)
        return bins.where(np.isfinite(bins.left) & np.isfinite(bins.right))

    def where(self, chosen: np.ndarray) -> _Bins:
        """Some of them."""
        return _Bins(*(values[chosen] for values in self))

    def of(self, direction: str) -> _Bins:
        """Those of a direction."""
        return self.where(self.direction == direction)

    def mean(self) -> float:
        """Mean margin."""
        middle = (self.left + self.right) / 2
        return float((middle * self.anchors).sum() / max(1.0, self.anchors.sum()))


def _range(inside: _Bins) -> tuple[float, float]:
    filled = inside.where(inside.anchors > 0)
    if not len(filled.anchors):
        return _LEAST_RANGE
    low = min(_LEAST_RANGE[0], float(filled.left.min()) - 0.02)
    return low, max(_LEAST_RANGE[1], float(filled.right.max()) + 0.02)


def _add_margins(
    figure: Draft, inside: _Bins, theme: Theme, directions: tuple[str, str], span: Span
) -> float:
    tops = [1.0]
    shown = {name: bins for name in directions if len((bins := inside.of(name)).anchors)}
    means = {name: bins.mean() for name, bins in shown.items()}
    for direction in sorted(shown, key=means.__getitem__):
        bins, color = shown[direction], theme.direction(direction, directions)
        figure.add_trace(_outline(bins, direction, color))
        # Named on its outer flank, where the other direction and the top of the curve are not.
        is_left = direction == min(means, key=means.__getitem__)
        _name_margins(figure, inside, direction, theme, color, is_left=is_left, span=span)
        tops.append(float(bins.anchors.max()))
    return max(tops)


def _name_margins(
    figure: Draft, inside: _Bins, direction: str, theme: Theme, color: str, *, is_left: bool, span: Span
) -> None:
    count = inside.of(direction).anchors
    # Low on the left, below the floor of the curve; on the right the curve has come down by half height.
    # Inwards where it would reach beyond the axes, at last on the other side of the highest bar.
    levels = np.linspace(0.15 if is_left else 0.5, 1.0, 6) * count.max()
    for level in levels:
        high = inside.anchors >= level
        x = float(inside.left[high].min() if is_left else inside.right[high].max())
        if fits := abs(x - span[0 if is_left else 1]) >= _NAME_WIDTH * (span[1] - span[0]):
            break
    to_left = is_left == fits
    if fits and not is_left and level > levels[0]:
        # at the edge, as far from the curve as there is room
        x, to_left = span[1], True
    figure.add_annotation(
        text=_("{direction}, n = {n}").format(direction=direction, n=f"{int(count.sum()):,}"),
        x=x,
        y=float(level),
        xanchor="right" if to_left else "left",
        yanchor="middle",
        xshift=-6 if to_left else 6,
        showarrow=False,
        font={"color": color, "size": 12},
        # the curve may pass there
        bgcolor=fade(theme.surface, 0.7),
    )


def _outline(bins: _Bins, direction: str, color: str) -> dict[str, Any]:
    left, right, count = bins.left, bins.right, bins.anchors
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
    if curve["weight"].nunique() > 1:
        # what is flat has none
        steepness = f"{float(curve['steepness'].iloc[0]):.1f}"
        name = _("{name}, steepness {steepness}").format(name=name, steepness=steepness)
    figure.add_trace(
        {
            "type": "scatter",
            "x": floats(curve["margin"]),
            "y": floats(curve["weight"]),
            "yaxis": WEIGHT_AXIS,
            "mode": "lines",
            "line": line,
            "name": name,
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
    count = int(hist["count"].sum() - _Bins.inside(hist).anchors.sum())
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
