"""Both modalities on one map, and the gap between them from snapshot to snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from uwml_core.analysis.text import modality_name
from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import floats, say_empty
from uwml_core.figures.map_colors import flat_scale
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

# What the chart component moves smoothly from one figure to the next.
GLIDE = "glide"
_SYMBOLS = ("circle", "diamond")
_LONGEST = 90
# Of more points the texts would be most of what is sent; a click tells them.
MOST_SPOKEN = 5_000
Range = tuple[float, float]


def embedding_map_figure(
    points: pd.DataFrame,
    codes: NDArray[np.int64],
    colors: Sequence[str],
    theme: Theme,
    *,
    modalities: tuple[str, str],
    ranges: tuple[Range, Range],
    height: int = 520,
) -> go.Figure:
    """The map of one snapshot: a circle per point of the first modality, a diamond per one of the second.

    Args:
        points: frame of ``map_points``.
        codes: class of each point, −1 for none, drawn in grey.
        colors: colour of each class.
        theme: colours.
        modalities: names of both.
        ranges: of both axes, the same for every snapshot.
        height: pixels.
    """
    figure = Draft(theme, height=height, l=8, r=8, t=8, b=8)
    figure.update_layout(dragmode="lasso")
    if points.empty:
        return say_empty(figure, theme, _("No point of this choice has a place on the map")).figure()
    for place, name in enumerate(modalities):
        rows = np.flatnonzero(points["modality"].to_numpy(object) == name)
        if len(rows):
            palette = [theme.ghost, *colors]
            look = {**_look(len(points)), "symbol": _SYMBOLS[place]}
            spoken = len(points) <= MOST_SPOKEN
            figure.add_trace(_points(points, rows, codes[rows], palette, spoken=spoken, **look))
    # ranges that grow with a window would never shrink with it: the points would end as a dot
    axis = {"showgrid": False, "showticklabels": False, "ticks": "", "showline": False, "constrain": "domain"}
    figure.update_xaxes(range=list(ranges[0]), **axis)
    figure.update_yaxes(range=list(ranges[1]), scaleanchor="x", scaleratio=1, **axis)
    return figure.figure()


def _look(n: int) -> dict[str, float]:
    """Size and opacity of a marker: of many, none may hide what lies below it."""
    crowd = min(max((n - 2_000) / 38_000, 0.0), 1.0)
    return {"size": 5.0 - 2.0 * crowd, "opacity": 0.85 - 0.45 * crowd}


def _points(
    points: pd.DataFrame,
    rows: NDArray[np.int64],
    codes: NDArray[np.int64],
    palette: Sequence[str],
    *,
    spoken: bool,
    **look: Any,
) -> dict[str, Any]:
    def column(name: str) -> NDArray[Any]:
        return points[name].to_numpy()[rows]

    name = modality_name(str(column("modality")[0]))
    about = zip(column("caption"), column("group"), strict=True)
    texts = [_hover(*each) for each in about] if spoken else None
    ranked = not np.isnan(column("margin")).all()
    extra = np.stack([column(each) for each in ("item_id", "margin", "rank")[: 3 if ranked else 1]], axis=1)
    told = _("of item %{customdata[0]:.0f}<br>margin %{customdata[1]:.3f} · rank %{customdata[2]:.1f}")
    if not ranked:
        told = _("of item %{customdata[0]:.0f}")
    if not spoken:
        told += "<br>" + _("click it for picture and caption")
    return {
        "type": "scattergl",
        "x": floats(column("x")),
        "y": floats(column("y")),
        "mode": "markers",
        "name": name,
        "meta": GLIDE,
        "marker": {
            **look,
            "color": floats(codes),
            "colorscale": flat_scale(palette),
            "cmin": -1.5,
            "cmax": len(palette) - 1.5,
            "line": {"width": 0.5 if look["size"] > 4 else 0, "color": fade("#6b7280", 0.55)},
        },
        "customdata": floats(extra),
        **({} if texts is None else {"text": texts}),
        "hovertemplate": f"{'' if texts is None else '%{text}'}<b>{escape(name)}</b> {told}<extra></extra>",
    }


# an item is two points, and the page is drawn again at every click
@lru_cache(maxsize=2 * MOST_SPOKEN)
def _hover(caption: str, group: str) -> str:
    lines = [escape(shortened(text)) for text in (caption, group) if text]
    return "".join(f"{line}<br>" for line in lines)


def shortened(text: str, longest: int = _LONGEST) -> str:
    r"""A text on one line, cut where it is too long.

    Example:
        >>> shortened("a  b\nc", 3)
        'a b…'
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else line[:longest].rstrip() + "…"
