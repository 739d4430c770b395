"""Gaps, direction weights and contributions to the loss over steps, in use and tried."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.analysis.text import fixed
from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import finite_span, floats, last_value, say_empty, shown_values
from uwml_core.figures.overlays import add_broken, add_notes, add_phases
from uwml_core.figures.step_panels import Panel, fit_panel, fit_steps, step_panels
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

# So many points of single steps run into a band, which would hide the mean behind it.
_DENSE = 500
# A weight that hardly moves is not blown up to fill its panel.
_LEAST_WEIGHTS = (0.45, 0.55)
_LEAST_SHARES = (45.0, 55.0)


def balance_figure(
    lines: pd.DataFrame,
    updates: pd.DataFrame,
    theme: Theme,
    *,
    directions: tuple[str, str],
    bands: pd.DataFrame | None = None,
    since: tuple[int, str] | None = None,
    pinned: pd.DataFrame | None = None,
    within: tuple[float, float] | None = None,
    height: int = 460,
) -> go.Figure:
    """Gaps over weights: the tried controller solid, the one in use as a dashed ghost where it differs.

    Args:
        lines: ``[quantity, line, direction, step, epoch, value, n]`` with the quantities gap and weight.
        updates: ``[step, shown]``; the shown ones become ticks at the foot of the weights.
        theme: colours.
        directions: the run's directions.
        bands: ``[phase, first_step, last_step]``.
        since: step and name of a moment to mark in both panels.
        pinned: notes, ``[step, text, count]``.
        within: first and last step that the page shows, whose values give the heights and are named; None
            for all.
        height: pixels.
    """
    if lines.empty:
        return say_empty(Draft(theme, height=height), theme).figure()
    gap = _("cosine · pale: each step · line: mean over the window")
    weight = _("ticks: updates of the controller")
    titles = [(_("Mean margin"), gap + _ghost_note(lines, "gap"))]
    titles += [(_("Direction weight"), weight + _ghost_note(lines, "weight"))]
    figure, (top, bottom) = step_panels(theme, titles, height=height)
    add_phases(figure, bands, theme)
    look, points = _Look(theme, directions, within), _points(lines)
    _fill(figure, top, "gap", points, look, decimals=3)
    _fill(figure, bottom, "weight", points, look, decimals=2, least=_LEAST_WEIGHTS)
    if not np.isfinite(lines["value"].to_numpy()).all():
        raw = lines[(lines["quantity"] == "gap") & (lines["line"] == "raw")]
        add_broken(figure, raw, theme, xaxis=top.x, yaxis=top.edge)
    _add_level(figure, bottom, 0.5, theme)
    _add_updates(figure, bottom, updates, theme)
    _add_moment(figure, [top, bottom], since, theme)
    # below: the panel's title stands above it
    add_notes(figure, pinned, theme, xaxis=top.x, yaxis=top.edge, at=0.0)
    fit_steps(figure, lines["step"].to_numpy())
    return figure.figure()


def contributions_figure(
    lines: pd.DataFrame,
    theme: Theme,
    *,
    directions: tuple[str, str],
    unit: str = "",
    within: tuple[float, float] | None = None,
    height: int = 300,
) -> go.Figure:
    """What each direction adds to the loss, and as its share.

    Args:
        lines: ``[quantity, line, direction, step, epoch, value, n]`` with contribution and share.
        theme: colours.
        directions: the run's directions.
        unit: of the loss; may be empty.
        within: as for ``balance_figure``.
        height: pixels.
    """
    if lines.empty:
        return say_empty(Draft(theme, height=height), theme, _("No loss per direction logged")).figure()
    below = f"{unit}{_ghost_note(lines, 'contribution')}".removeprefix(" · ")
    titles = [(_("Weight × loss"), below), (_("Share of the loss"), "%")]
    figure, (top, bottom) = step_panels(theme, titles, height=height)
    look, points = _Look(theme, directions, within), _points(lines)
    _fill(figure, top, "contribution", points, look, decimals=3)
    _fill(figure, bottom, "share", points, look, decimals=1, least=_LEAST_SHARES)
    _add_level(figure, bottom, 50.0, theme)
    fit_steps(figure, lines["step"].to_numpy())
    return figure.figure()


def _ghost_note(lines: pd.DataFrame, quantity: str) -> str:
    differs = ((lines["quantity"] == quantity) & (lines["line"] == "before")).any()
    return " · " + _("dashed: in use") if differs else ""


class _Look(NamedTuple):
    theme: Theme
    directions: tuple[str, str]
    within: tuple[float, float] | None


_Points = dict[tuple[str, str], dict[str, np.ndarray]]


def _fill(
    figure: Draft,
    panel: Panel,
    quantity: str,
    points: dict[str, _Points],
    look: _Look,
    *,
    decimals: int,
    least: tuple[float, float] | None = None,
) -> None:
    """Draw a quantity into its panel, which becomes as high as what is shown of it."""
    mine = points.get(quantity, {})
    ends = _add_lines(figure, panel, quantity, mine, look, decimals=decimals)
    fit_panel(figure, panel, _span(mine, look.within, least), ends)


def _add_lines(
    figure: Draft, panel: Panel, quantity: str, points: _Points, look: _Look, *, decimals: int
) -> list[tuple[str, float, str]]:
    ends = []
    for line in ("raw", "before", "after"):
        for direction in look.directions[::-1]:
            mine = points.get((line, direction))
            if mine is None:
                continue
            color = look.theme.direction(direction, look.directions)
            figure.add_trace(_trace(mine, quantity, line, direction, color=color, panel=panel))
            if line == "after":
                last = last_value(mine["step"], mine["value"], look.within)
                ends.append((f"{direction} {fixed(last, decimals)}", last, color))
    return ends


def _points(lines: pd.DataFrame) -> dict[str, _Points]:
    """Finite points of each quantity, line and direction: frames would take most of a slider's move."""
    columns = {name: lines[name].to_numpy() for name in ("step", "epoch", "value", "n")}
    known, which, names = np.isfinite(columns["value"]), np.zeros(len(lines), np.int64), []
    for name in ("quantity", "line", "direction"):
        codes, found = pd.factorize(lines[name])
        which = which * len(found) + codes
        names.append(list(map(str, found)))
    points: dict[str, _Points] = {}
    for number, (quantity, *key) in enumerate(itertools.product(*names)):
        mine = np.flatnonzero((which == number) & known)
        if len(mine):
            chosen = {name: values[mine] for name, values in columns.items()}
            points.setdefault(quantity, {})[key[0], key[1]] = chosen
    return points


def _span(
    points: _Points, within: tuple[float, float] | None, least: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Smallest and largest value shown, of a quantity that is not to fill its panel at least so far apart."""
    shown = [shown_values(mine["step"], mine["value"], within) for mine in points.values()]
    if not any(map(len, shown)):
        shown = [mine["value"] for mine in points.values()]
    return finite_span(*shown, np.array(least or ()))


def _trace(
    points: dict[str, np.ndarray], quantity: str, line: str, direction: str, *, color: str, panel: Panel
) -> dict[str, Any]:
    total = len(points["step"])
    strokes: dict[str, dict[str, Any]] = {
        "raw": {"color": fade(color, 0.2 if total > _DENSE else 0.4), "width": 1},
        "before": {"color": fade(color, 0.6), "width": 1.5, "dash": "4px,3px"},
        "after": {"color": color, "width": 2},
    }
    return {
        "type": "scatter",
        "x": floats(points["step"]),
        "y": floats(points["value"]),
        "customdata": floats(np.stack([points["epoch"], points["n"]], axis=1)),
        "xaxis": panel.x,
        "yaxis": panel.y,
        "mode": "lines+markers" if total == 1 else "lines",
        "name": f"{direction} {quantity} {line}",
        "line": {**strokes[line], "shape": "hv" if quantity == "weight" else "linear"},
        "hovertemplate": _hover(quantity, line, direction),
    }


def _hover(quantity: str, line: str, direction: str) -> str:
    bases = {
        "weight": _("after n = %{customdata[1]:,.0f} updates"),
        "gap": _("mean of n = %{customdata[1]:,.0f} gaps"),
        "contribution": _("mean of n = %{customdata[1]:,.0f} steps"),
        "share": _("mean of n = %{customdata[1]:,.0f} steps"),
    }
    basis = _("n = %{customdata[1]:,.0f} pairs") if line == "raw" else bases[quantity]
    when = {"raw": "", "before": f" {_('in use')}", "after": ""}[line]
    form = {"gap": ".4f", "weight": ".4f", "contribution": ".4~g", "share": ".1f"}[quantity]
    place = _("step %{x:,} · epoch %{customdata[0]:.0f}")
    return f"<b>{direction}</b>{when} %{{y:{form}}}, {basis}<br>{place}<extra></extra>"


def _add_level(figure: Draft, panel: Panel, value: float, theme: Theme) -> None:
    line = {"color": theme.muted, "width": 1, "dash": "dot"}
    figure.add_shape(
        type="line", xref="paper", yref=panel.y, x0=0, x1=1, y0=value, y1=value, line=line, layer="below"
    )


def _add_updates(figure: Draft, panel: Panel, updates: pd.DataFrame, theme: Theme) -> None:
    shown = updates["step"].to_numpy()[updates["shown"].to_numpy(dtype=bool)]
    if not len(shown):
        return
    figure.add_trace(
        {
            "type": "scatter",
            "x": floats(shown),
            "y": np.zeros(len(shown), np.float32),
            "xaxis": panel.x,
            "yaxis": panel.edge,
            "mode": "markers",
            "name": _("updates"),
            "marker": {
                "symbol": "line-ns-open",
                "size": 6,
                "color": theme.muted,
                "line": {"width": 1},
            },
            "hovertemplate": _("update at step %{x:,}") + "<extra></extra>",
            "cliponaxis": False,
        }
    )


def _add_moment(figure: Draft, panels: list[Panel], since: tuple[int, str] | None, theme: Theme) -> None:
    if since is None:
        return
    step, name = since
    line = {"color": theme.muted, "width": 1}
    # One line per panel: a single one would cross the title between them.
    for panel in panels:
        place = {"xref": panel.x, "yref": f"{panel.y} domain", "x0": step, "x1": step, "y0": 0, "y1": 1}
        figure.add_shape(type="line", line=line, **place)
    figure.add_annotation(
        text=name,
        x=step,
        xref="x",
        y=1,
        yref="y domain",
        xanchor="left",
        yanchor="top",
        xshift=4,
        showarrow=False,
        font={"color": theme.muted, "size": 11},
    )
