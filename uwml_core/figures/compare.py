"""Methods side by side: recall over epochs, and differences to the baseline with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from uwml_core.analysis.compare.comparison import BETTER, WORSE
from uwml_core.analysis.compare.tables import metric_label
from uwml_core.analysis.text import signed
from uwml_core.figures.draft import Draft, axis_number
from uwml_core.figures.frame import end_labels, finite_span, floats, panel_title, say_empty, titled
from uwml_core.figures.theme import Theme, fade
from uwml_core.i18n import _

# Dark enough, or light enough, for words; told apart by colour-blind readers.
_LIGHT = "#117733 #b45309 #aa4499 #0e7490 #882255 #6b6b00"
_DARK = "#44bb99 #eedd88 #ffaabb #99ddff #ee8866 #bbcc33"
_SPACING = 0.14
_LONGEST = 15


def method_colors(methods: Sequence[str], theme: Theme) -> dict[str, str]:
    """A colour for each method, the baseline first: how it was before is the ghost.

    Args:
        methods: names, the baseline first; those beyond the palette take its last colour.
        theme: colours.
    """
    palette = [theme.accent, *(_LIGHT if theme.base == "light" else _DARK).split()]
    colors = [theme.ghost, *palette, *[palette[-1]] * len(methods)]
    return dict(zip(methods, colors, strict=False))


def progress_figure(
    curves: pd.DataFrame,
    theme: Theme,
    *,
    directions: Sequence[str],
    colors: Mapping[str, str],
    metric: str = "R@1",
    height: int = 340,
) -> go.Figure:
    """Recall over epochs, a panel per direction and a line per method, named and valued at its end.

    Args:
        curves: ``recall_progress``; several runs of a method are its mean and, as a band, their range.
        theme: colours.
        directions: a panel each, from the top.
        colors: of the methods; the first is the baseline.
        metric: what is drawn.
        height: pixels.
    """
    panels = [d for d in directions if (curves["direction"] == d).any()]
    if not panels:
        return say_empty(Draft(theme, height=height), theme, _("No evaluation yet")).figure()
    figure = Draft(theme, height=height, t=28, r=124)
    figure.stack(len(panels), spacing=_SPACING)
    px = (height - 72) * (1 - _SPACING * (len(panels) - 1)) / len(panels)
    at = "epoch" if curves["epoch"].notna().all() else "step"
    for row, direction in enumerate(panels, start=1):
        rows = curves[curves["direction"] == direction]
        _add_panel(figure, rows, row, theme, colors=colors, at=at, px=px)
        panel_title(figure, titled(f"{metric} {direction}", "%", theme), f"y{axis_number(row)}")
    name = _("epoch") if at == "epoch" else _("step")
    lowest = f"xaxis{axis_number(len(panels))}"
    figure.update_xaxes(**({"dtick": 1} if np.ptp(curves[at]) < 10 else {"nticks": 8}), tickformat=",d")
    figure.update_layout(**{lowest: {"title": {"text": name}}})
    figure.update_yaxes(nticks=4, rangemode="tozero")
    return figure.figure()


def _add_panel(
    figure: Draft,
    rows: pd.DataFrame,
    row: int,
    theme: Theme,
    *,
    colors: Mapping[str, str],
    at: str,
    px: float,
) -> None:
    axes = {"xaxis": f"x{axis_number(row)}", "yaxis": f"y{axis_number(row)}"}
    ends = []
    # the baseline lies below the others
    for method, color in colors.items():
        mine = rows[rows["method"] == method]
        if mine.empty:
            continue
        if mine["runs"].max() > 1:
            figure.add_trace({**_band(mine, at, color), **axes})
        figure.add_trace({**_line(mine, at, method, color), **axes})
        last = float(mine["value"].iloc[-1])
        ends.append((f"{shortened(method)} {last:.1f}", last, theme.muted if color == theme.ghost else color))
    top = 1.1 * finite_span(rows["high"].to_numpy(dtype=np.float64))[1] or 1.0
    # a marker at 0 is seen in whole
    bottom = -0.04 * top
    figure.update_layout(**{f"yaxis{axis_number(row)}": {"range": [bottom, top]}})
    end_labels(figure, ends, (bottom, top), plot_px=px, yref=f"y{axis_number(row)}")


def _line(rows: pd.DataFrame, at: str, method: str, color: str) -> dict[str, object]:
    extra = rows[["step", "runs", "queries", "low", "high"]].to_numpy(dtype=np.float64, na_value=np.nan)
    rest = _(
        "{at} %{x:,}, step %{customdata[0]:,}<br>n = %{customdata[1]:.0f} runs of "
        "%{customdata[2]:,.0f} queries, %{customdata[3]:.1f} to %{customdata[4]:.1f} %"
    ).replace("{at}", _("epoch") if at == "epoch" else _("step"), 1)
    return {
        "type": "scatter",
        "x": floats(rows[at]),
        "y": floats(rows["value"]),
        "customdata": floats(extra),
        "mode": "lines+markers",
        "name": escaped(method),
        "line": {"color": color, "width": 2},
        "marker": {"size": 5},
        "hovertemplate": f"<b>{escaped(method)}</b> %{{y:.1f}} %<br>{rest}<extra></extra>",
    }


def _band(rows: pd.DataFrame, at: str, color: str) -> dict[str, object]:
    x = rows[at].to_numpy(dtype=np.float64)
    return {
        "type": "scatter",
        "x": floats(np.concatenate([x, x[::-1]])),
        "y": floats(np.concatenate([rows["high"], rows["low"][::-1]])),
        "fill": "toself",
        "fillcolor": fade(color, 0.18),
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
    }


def difference_figure(
    differences: pd.DataFrame, theme: Theme, *, colors: Mapping[str, str], height: int = 340
) -> go.Figure:
    """Differences of R@K to the baseline with their 95 % intervals, a row per metric and direction.

    Filled where the interval leaves out 0. The interval is over seeds where there is one, else over queries.

    Args:
        differences: of a ``Comparison``.
        theme: colours.
        colors: of the methods.
        height: pixels.
    """
    rows = shown_intervals(differences)
    if rows.empty:
        return say_empty(Draft(theme, height=height), theme, _("Nothing to compare yet")).figure()
    labels = list(dict.fromkeys(rows["label"]))
    methods = list(dict.fromkeys(rows["method"]))
    figure = Draft(theme, height=height, t=14, l=84, r=150 if len(methods) == 1 else 24)
    low, high = finite_span(
        rows[["low", "high", "difference"]].to_numpy(dtype=np.float64).ravel(), np.zeros(1)
    )
    room = 0.06 * (high - low) or 1.0
    figure.update_xaxes(
        range=[low - room, high + room],
        title={"text": _("points more than the baseline")},
        showgrid=True,
        nticks=8,
    )
    figure.update_yaxes(
        range=[len(labels) - 0.4, -0.6],
        tickvals=list(range(len(labels))),
        ticktext=labels,
        showgrid=False,
        ticks="",
        tickfont={"color": theme.text, "size": 13},
    )
    zero = {"color": theme.muted, "width": 1}
    figure.add_shape(type="line", x0=0, x1=0, yref="paper", y0=0, y1=1, line=zero, layer="below")
    for place, method in enumerate(methods):
        offset = 0.62 * ((place + 0.5) / len(methods) - 0.5)
        _add_intervals(figure, rows[rows["method"] == method], labels, offset, theme, color=colors[method])
    if len(methods) == 1:
        _write_intervals(figure, rows, labels, theme)
    return figure.figure()


def shown_intervals(differences: pd.DataFrame) -> pd.DataFrame:
    """R@K of a table of differences with the one interval that the verdict goes by.

    Returns:
        Frame ``[method, label, difference, low, high, n, over, verdict]``.
    """
    rows = differences[differences["metric"].str.startswith("R@")]
    by_seeds = rows["seed_low"].notna()
    taken = {name: rows[f"seed_{name}"].where(by_seeds, rows[name]) for name in ("difference", "low", "high")}
    pairs = zip(rows["metric"], rows["direction"], strict=True)
    return pd.DataFrame(
        {
            "method": rows["method"],
            "label": [metric_label(metric, direction) for metric, direction in pairs],
            **taken,
            "n": rows["seeds"].where(by_seeds, rows["queries"]),
            "over": [_("seeds") if seeds else _("queries") for seeds in by_seeds],
            "verdict": rows["verdict"],
        }
    ).reset_index(drop=True)


def _add_intervals(
    figure: Draft, rows: pd.DataFrame, labels: Sequence[str], offset: float, theme: Theme, *, color: str
) -> None:
    name = escaped(str(rows["method"].iloc[0]))
    decided = rows["verdict"].isin([BETTER, WORSE])
    difference = rows["difference"].to_numpy(dtype=np.float64)
    extra = rows[["low", "high", "n"]].to_numpy(dtype=np.float64)
    interval = _("95 % interval %{customdata[0]:+.1f} to %{customdata[1]:+.1f}, n = %{customdata[2]:,.0f}")
    figure.add_trace(
        {
            "type": "scatter",
            "x": floats(difference),
            "y": floats([labels.index(label) + offset for label in rows["label"]]),
            "mode": "markers",
            "name": name,
            "customdata": floats(extra),
            "text": list(rows["over"]),
            "marker": {
                "size": 10,
                "color": [color if known else theme.surface for known in decided],
                "line": {"color": color, "width": 2},
            },
            "error_x": {
                "type": "data",
                "array": floats(extra[:, 1] - difference),
                "arrayminus": floats(difference - extra[:, 0]),
                "color": color,
                "thickness": 2,
                "width": 0,
            },
            "hovertemplate": f"<b>{name}</b> %{{x:+.1f}}<br>{interval} %{{text}}<extra></extra>",
        }
    )


def _write_intervals(figure: Draft, rows: pd.DataFrame, labels: Sequence[str], theme: Theme) -> None:
    for _index, row in rows.iterrows():
        text = f"<b>{signed(row['difference'])}</b>"
        if np.isfinite(row["low"]):
            text += f"  [{signed(row['low'])}, {signed(row['high'])}]"
        figure.add_annotation(
            text=text, xref="paper", x=1.0, y=labels.index(row["label"]), xshift=8, xanchor="left",
            yanchor="middle", showarrow=False, font={"size": 12, "color": theme.text},
        )  # fmt: skip


def shortened(name: str) -> str:
    """A method's name as a label, without what Plotly would read as markup."""
    plain = " ".join(name.split())
    return escaped(plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…")


def escaped(text: str) -> str:
    """Text that Plotly shows literally.

    Example:
        >>> escaped("<b>%{y}")
        '&lt;b&gt;%&#123;y}'
    """
    replaced = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "{": "&#123;", "$": "&#36;"}
    return "".join(replaced.get(letter, letter) for letter in " ".join(text.split()))
