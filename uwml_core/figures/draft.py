"""A figure in the making, kept as plain dictionaries until it is finished."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from uwml_core.figures.drawing import Drawing
from uwml_core.figures.frame import layout_of
from uwml_core.figures.theme import Theme


class Draft:
    """Collects what a figure shows; Plotly checks none of it: the tests do.

    It takes the same calls as a Figure, which would check and copy its whole layout at each of them. Fields
    are nested dictionaries, without Plotly's underscores: ``title={"text": ...}``, not ``title_text``.

    Example:
        >>> from uwml_core.figures.theme import theme
        >>> draft = Draft(theme("light"), height=200)
        >>> draft.add_trace({"type": "scatter", "y": [1, 2]})
        >>> draft.update_xaxes(title={"text": "step"})
        >>> draft.figure().layout.xaxis.title.text
        'step'
    """

    def __init__(self, theme: Theme, *, height: int, title: str = "", unit: str = "", **margin: int) -> None:
        """Begin a figure with the page's look; arguments as for ``frame.layout_of``."""
        self.layout: dict[str, Any] = layout_of(theme, height=height, title=title, unit=unit, **margin)
        self.layout |= {"xaxis": {}, "yaxis": {}, "annotations": [], "shapes": []}
        self.data: list[dict[str, Any]] = []

    def add_trace(self, trace: dict[str, Any]) -> None:
        """Add a trace, its ``type`` included."""
        self.data.append(trace)

    def add_annotation(self, **annotation: Any) -> None:
        """Add an annotation."""
        self.layout["annotations"].append(annotation)

    def add_shape(self, **shape: Any) -> None:
        """Add a shape."""
        self.layout["shapes"].append(shape)

    def update_layout(self, **fields: Any) -> None:
        """Set fields of the layout; those of an axis are merged into it."""
        for name, value in fields.items():
            known = self.layout.get(name)
            is_part = isinstance(known, dict) and isinstance(value, dict)
            self.layout[name] = known | value if known and is_part else value

    def update_xaxes(self, **fields: Any) -> None:
        """Set fields of every horizontal axis that the draft has so far."""
        self._update_axes("xaxis", fields)

    def update_yaxes(self, **fields: Any) -> None:
        """Set fields of every vertical axis that the draft has so far."""
        self._update_axes("yaxis", fields)

    def _update_axes(self, kind: str, fields: dict[str, Any]) -> None:
        self.update_layout(**{name: fields for name in self.layout if name.startswith(kind)})

    def stack(self, rows: int, *, spacing: float) -> None:
        """Divide the plot into panels under each other, which zoom together; the lowest has the numbers.

        Args:
            rows: number of panels, >= 1; the axes of the first, at the top, are ``x`` and ``y``.
            spacing: between two of them, as a share of the whole.
        """
        height = (1.0 - spacing * (rows - 1)) / rows
        for row in range(1, rows + 1):
            number, top = axis_number(row), 1.0 - (row - 1) * (height + spacing)
            shared = {} if row == rows else {"matches": f"x{axis_number(rows)}", "showticklabels": False}
            across = {"anchor": f"y{number}", "domain": [0.0, 1.0], **shared}
            up = {"anchor": f"x{number}", "domain": [max(0.0, top - height), top]}
            self.update_layout(**{f"xaxis{number}": across, f"yaxis{number}": up})

    def pair(self, *, spacing: float) -> None:
        """Divide the plot into two panels side by side with one vertical axis; the left has its numbers."""
        width = (1.0 - spacing) / 2
        self.update_layout(
            xaxis={"anchor": "y", "domain": [0.0, width]},
            yaxis={"anchor": "x", "domain": [0.0, 1.0]},
            xaxis2={"anchor": "y2", "domain": [1.0 - width, 1.0]},
            yaxis2={"anchor": "x2", "domain": [0.0, 1.0], "matches": "y", "showticklabels": False},
        )

    def figure(self, *over: dict[str, Any]) -> go.Figure:
        """The finished figure, with more traces over it that the draft itself does not keep."""
        # the tests check every field; to check them again here takes ten times as long as the rest
        return Drawing([*self.data, *over], self.layout)


def axis_number(panel: int) -> str:
    """What follows ``x`` or ``yaxis`` in the name of a panel's axis.

    Example:
        >>> axis_number(1), axis_number(2)
        ('', '2')
    """
    return "" if panel == 1 else str(panel)
