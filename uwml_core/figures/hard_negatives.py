"""One item's margins over the epochs."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.analysis.text import fixed
from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import end_labels, finite_span, floats, say_empty
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

_LONGEST = 60


def history_figure(
    history: pd.DataFrame, theme: Theme, *, directions: tuple[str, str], height: int = 300
) -> go.Figure:
    """Margin of an item over the epochs, a line per direction and source.

    Solid: to the nearest wrong candidate of the pool at each snapshot. Dotted: mean over its batches, with
    the lowest and highest one as a bar.

    Args:
        history: ``[source, direction, epoch, margin, low, high, n, negative]``, sorted.
        theme: colours.
        directions: the run's directions.
        height: pixels.
    """
    figure = Draft(theme, height=height, r=124)
    figure.update_xaxes(title={"text": _("epoch")}, tickformat="d")
    figure.update_yaxes(title={"text": _("margin, cosine")})
    if history.empty:
        return say_empty(figure, theme).figure()
    zero = {"color": theme.muted, "width": 1, "dash": "dash"}
    figure.add_shape(type="line", xref="x domain", x0=0, x1=1, yref="y", y0=0.0, y1=0.0, line=zero)
    labels = []
    for source in ("batches", "pool"):
        for direction in directions:
            rows = history[(history["source"] == source) & (history["direction"] == direction)]
            if len(rows):
                color = theme.direction(direction, directions)
                figure.add_trace(_trace(rows, source, direction, color))
                last = float(rows["margin"].iloc[-1])
                labels.append((f"{direction}, {_source(source)} {fixed(last, 2)}", last, color))
    epochs = history["epoch"].to_numpy(dtype=np.float64)
    low, high = finite_span(history["low"].to_numpy(), history["high"].to_numpy(), np.zeros(1))
    room = 0.06 * (high - low) or 0.1
    figure.update_yaxes(range=[low - room, high + room])
    figure.update_xaxes(range=[epochs.min() - 0.3, epochs.max() + 0.3])
    if np.ptp(epochs) < 12:
        ticks = np.arange(epochs.min(), epochs.max() + 1)
        names = [_("start") if tick < 0 else f"{tick:.0f}" for tick in ticks]
        figure.update_xaxes(tickvals=floats(ticks), ticktext=names)
    end_labels(figure, labels, (low - room, high + room))
    return figure.figure()


def _source(source: str) -> str:
    return _("pool") if source == "pool" else _("batches")


def _trace(rows: pd.DataFrame, source: str, direction: str, color: str) -> dict[str, Any]:
    pool = source == "pool"
    margin = rows["margin"].to_numpy(dtype=np.float64)
    name = f"{direction}, {_source(source)}"
    text = [_plain(value) for value in rows["negative"]]
    what = _("epoch %{x:.0f} · n = %{customdata:,.0f}")
    bars = {
        "type": "data",
        "symmetric": False,
        "array": floats(rows["high"].to_numpy(dtype=np.float64) - margin),
        "arrayminus": floats(margin - rows["low"].to_numpy(dtype=np.float64)),
        "color": fade(color, 0.35),
        "thickness": 1,
        "width": 0,
    }
    return {
        "type": "scatter",
        "x": floats(rows["epoch"]),
        "y": floats(margin),
        "customdata": floats(rows["n"]),
        "text": text,
        "mode": "lines+markers",
        "name": name,
        "line": {"color": color, "width": 2 if pool else 1.2, "dash": "solid" if pool else "dot"},
        "marker": {"size": 6 if pool else 4},
        **({} if pool else {"error_y": bars}),
        "hovertemplate": f"<b>{name}</b> %{{y:.3f}}<br>{what}<br>%{{text}}<extra></extra>",
    }


def _plain(text: str) -> str:
    """Text that Plotly shows as it is, cut to one line."""
    line = " ".join(str(text).split())
    return html.escape(line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…")
