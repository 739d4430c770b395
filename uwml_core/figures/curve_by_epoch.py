"""The difficulty curve through training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import end_labels, floats, say_empty
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _


def curve_by_epoch_figure(curve_frame: pd.DataFrame, theme: Theme, *, height: int = 260) -> go.Figure:
    """The curve in the middle of several epochs, coloured from the first to the last.

    Args:
        curve_frame: ``[epoch, margin, weight, progress, steepness]``.
        theme: colours.
        height: pixels.
    """
    figure = Draft(theme, height=height, r=72)
    if curve_frame.empty:
        return say_empty(figure, theme, _("No epoch yet")).figure()
    names = ("margin", "weight", "steepness")
    epoch, columns = curve_frame["epoch"].to_numpy(), [curve_frame[name].to_numpy() for name in names]
    epochs = list(dict.fromkeys(epoch.tolist()))
    low, high = -0.3, 0.6
    ends = []
    for shown, color in zip(epochs, theme.ramp(len(epochs)), strict=True):
        margin, weight, steepness = (values[epoch == shown] for values in columns)
        name = _("epoch {epoch}").format(epoch=shown)
        figure.add_trace(_of_epoch(name, margin, weight, steepness, color))
        ends.append((shown, float(weight[margin <= high][-1]), theme.muted))
    figure.update_xaxes(title={"text": _("margin (cosine)")}, range=[low, high], tickformat=".1f")
    figure.update_yaxes(range=[0, 1.05], tickvals=[0, 0.25, 0.5, 0.75, 1])
    end_labels(figure, _spaced(ends, height), (0.0, 1.05))
    return figure.figure()


def _of_epoch(
    name: str, margin: np.ndarray, weight: np.ndarray, steepness: np.ndarray, color: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": floats(margin),
        "y": floats(weight),
        "mode": "lines",
        "line": {"color": color, "width": 1.8},
        "name": name,
        "customdata": floats(steepness)[:, None],
        "hovertemplate": f"<b>{name}</b> "
        + _("weight %{y:.3f} at margin %{x:.2f}, steepness %{customdata[0]:.1f}")
        + "<extra></extra>",
    }


def _spaced(ends: list[tuple[int, float, str]], height: int) -> list[tuple[str, float, str]]:
    # As many labels as fit between the first and the last, whose labels always stand.
    room = max(2, (height - 72) // 30)
    every = np.unique(np.linspace(0, len(ends) - 1, min(len(ends), room)).round().astype(int))
    return [(_("epoch {epoch}").format(epoch=ends[i][0]), ends[i][1], ends[i][2]) for i in every]
