"""Panels under each other over one axis of steps, which zoom together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import end_labels, panel_title, titled
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _

_SPACING = 0.13
_TITLE_PX = 28


@dataclass(frozen=True)
class Panel:
    """One panel's axes.

    Attributes:
        row: 1 at the top.
        height_px: height of its plot.
    """

    row: int
    height_px: float

    @property
    def x(self) -> str:
        """Name of its horizontal axis in a trace."""
        return "x" if self.row == 1 else f"x{self.row}"

    @property
    def y(self) -> str:
        """Name of its vertical axis in a trace."""
        return "y" if self.row == 1 else f"y{self.row}"

    @property
    def edge(self) -> str:
        """Name of an invisible axis from 0 (its bottom) to 1 (its top), for ticks at the edges."""
        return f"y{10 + self.row}"


def step_panels(theme: Theme, titles: Sequence[tuple[str, str]], *, height: int) -> tuple[Draft, list[Panel]]:
    """An empty figure with a panel per title.

    Args:
        theme: colours.
        titles: what a panel shows and, quieter, its unit; top to bottom.
        height: of the figure, pixels.
    """
    figure, count = Draft(theme, height=height, t=_TITLE_PX), len(titles)
    margin, share = figure.layout["margin"], (1 - _SPACING * (count - 1)) / count
    plot_px = (height - margin["t"] - margin["b"]) * share
    panels = [Panel(row, plot_px) for row in range(1, count + 1)]
    for panel, (title, unit) in zip(panels, titles, strict=True):
        top = 1 - (panel.row - 1) * (share + _SPACING)
        figure.update_layout(**_axes(panel, [max(0.0, top - share), top], panels[-1]))
        panel_title(figure, titled(title, unit, theme), panel.y)
    return figure, panels


def _axes(panel: Panel, domain: list[float], last: Panel) -> dict[str, Any]:
    x: dict[str, Any] = {"anchor": panel.y, "tickformat": "~s"}
    x |= {"title": {"text": _("step")}} if panel == last else {"matches": last.x, "showticklabels": False}
    edge = {"overlaying": panel.y, "anchor": panel.x, "domain": domain, "range": [0, 1]}
    return {
        _layout_name(panel.x): x,
        _layout_name(panel.y): {"anchor": panel.x, "domain": domain, "nticks": 5},
        _layout_name(panel.edge): {**edge, "visible": False, "fixedrange": True},
    }


def _layout_name(axis: str) -> str:
    return f"{axis[0]}axis{axis[1:]}"


def fit_panel(
    figure: Draft, panel: Panel, span: tuple[float, float], labels: Sequence[tuple[str, float, str]]
) -> None:
    """Give a panel the vertical range of its values, with a little room, and write labels at its right.

    Args:
        figure: the figure.
        panel: the panel.
        span: smallest and largest value to show.
        labels: (text, value, colour) each.
    """
    room = 0.06 * (span[1] - span[0]) or 0.1 * abs(span[0]) or 1.0
    low, high = span[0] - room, span[1] + room
    figure.update_layout(**{_layout_name(panel.y): {"range": [low, high]}})
    end_labels(figure, labels, (low, high), plot_px=panel.height_px, yref=panel.y)


def fit_steps(figure: Draft, steps: np.ndarray) -> None:
    """Show the logged steps from edge to edge; few of them with a tick each.

    Args:
        figure: the figure.
        steps: steps that are drawn, >= 1 of them.
    """
    first, last = float(steps.min()), float(steps.max())
    if last - first < 10:
        figure.update_xaxes(dtick=1, tickformat="d", range=[first - 0.5, last + 0.5])
    else:
        figure.update_xaxes(range=[first, last])
