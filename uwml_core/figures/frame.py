"""What every figure has in common: its look, titles, labels that don't overlap.

What is called a figure here may be a ``draft.Draft`` too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from uwml_core.figures.theme import UI_REVISION, Theme
from uwml_core.i18n import _

LABEL_HEIGHT = 15
MARGIN = {"l": 56, "r": 64, "t": 28, "b": 44}


def layout_of(theme: Theme, *, height: int, title: str = "", unit: str = "", **margin: int) -> dict[str, Any]:
    """The page's look, a title on the left and its unit in a quieter colour, both optional."""
    return {
        "template": theme.template,
        "height": height,
        "margin": {**MARGIN, "t": MARGIN["t"] if title or unit else 10, **margin},
        "uirevision": UI_REVISION,
        "title": {
            "text": titled(title, unit, theme),
            "y": 1.0,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 6},
        },
    }


def titled(title: str, unit: str, theme: Theme) -> str:
    """Title with its unit behind it."""
    return f'{title} <span style="color:{theme.muted}">{unit}</span>' if unit else title


def panel_title(figure: go.Figure, text: str, y: str) -> None:
    """Write a panel's title above its top left corner; ``y`` names its vertical axis, such as ``y2``."""
    figure.add_annotation(
        text=text,
        xref="paper",
        yref=f"{y} domain",
        x=0,
        y=1,
        xanchor="left",
        yanchor="bottom",
        showarrow=False,
        font={"size": 13},
    )


def floats(values: Any) -> np.ndarray:
    """Values as float32, the form that travels to the browser in the fewest bytes."""
    return np.asarray(values, dtype=np.float32)


def spread_labels(
    positions_px: Sequence[float],
    gap_px: float = LABEL_HEIGHT,
    lowest_px: float = -math.inf,
    highest_px: float = math.inf,
) -> list[float]:
    """Shifts that move labels apart until none overlaps, each as little as needed.

    Labels that are too close form a group that is centred on the mean of its wishes, as long as that keeps
    it from reaching below ``lowest_px`` or, where there is room for all, above ``highest_px``.

    Args:
        positions_px: wished vertical positions.
        gap_px: least distance.
        lowest_px: least position of a label.
        highest_px: greatest position of a label.

    Returns:
        One shift per label, in pixels.

    Example:
        >>> spread_labels([0.0, 0.0, 100.0], gap_px=10)
        [-5.0, 5.0, 0.0]
    """
    order, bounds = sorted(range(len(positions_px)), key=lambda i: positions_px[i]), (lowest_px, highest_px)
    groups: list[list[int]] = []
    for i in order:
        groups.append([i])
        while len(groups) > 1 and _overlap(groups[-2], groups[-1], positions_px, gap_px, bounds):
            last = groups.pop()
            groups[-1] += last
    shifts = [0.0] * len(positions_px)
    for group in groups:
        for i, place in zip(group, _placed(group, positions_px, gap_px, bounds), strict=True):
            shifts[i] = place - positions_px[i]
    return shifts


def _placed(
    group: list[int], wished: Sequence[float], gap: float, bounds: tuple[float, float]
) -> list[float]:
    middle, extent = sum(wished[i] for i in group) / len(group), gap * (len(group) - 1)
    first = max(bounds[0], min(middle - extent / 2, bounds[1] - extent))
    return [first + gap * k for k in range(len(group))]


def _overlap(
    low: list[int], high: list[int], wished: Sequence[float], gap: float, bounds: tuple[float, float]
) -> bool:
    return _placed(high, wished, gap, bounds)[0] - _placed(low, wished, gap, bounds)[-1] < gap


def end_labels(
    figure: go.Figure,
    labels: Sequence[tuple[str, float, str]],
    span: tuple[float, float],
    plot_px: float | None = None,
    **axis: Any,
) -> None:
    """Write labels at the right edge, at the height of the last values, without overlap.

    Args:
        figure: the figure, with height and margins set.
        labels: (text, value, colour) each; one whose value is not finite is left out.
        span: smallest and largest value that the axis shows.
        plot_px: height of the axis in pixels; None takes that of the whole plot.
        axis: fields of the annotation that place it, such as ``xref``.
    """
    labels = [label for label in labels if np.isfinite(label[1])]
    margin = figure.layout["margin"]
    plot_px = plot_px or figure.layout["height"] - margin["t"] - margin["b"]
    scale = plot_px / (span[1] - span[0]) if span[1] > span[0] else 0.0
    wished = [(value - span[0]) * scale for _text, value, _color in labels]
    # none beside the numbers of the horizontal axis, none beyond the top
    shifts = spread_labels(wished, lowest_px=0.0, highest_px=plot_px)
    for (text, value, color), shift in zip(labels, shifts, strict=True):
        place = {"xref": "paper", "x": 1.0, "yref": "y", **axis}
        figure.add_annotation(
            text=text,
            y=value,
            yshift=shift,
            xshift=6,
            xanchor="left",
            yanchor="middle",
            showarrow=False,
            font={"color": color, "size": 12},
            **place,
        )


def shown_values(steps: Any, values: Any, within: tuple[float, float] | None = None) -> np.ndarray:
    """The finite values of those that a chart shows, float64.

    Args:
        steps: ascending, ``[n]``.
        values: one per step.
        within: first and last step that the chart shows; None for all of them.

    Example:
        >>> shown_values([0, 1, 2], [5.0, 6.0, 7.0], (0.5, 2.0)).tolist()
        [6.0, 7.0]
    """
    steps, found = np.asarray(steps), np.asarray(values, dtype=np.float64)
    shown = np.isfinite(found)
    if within is not None:
        shown &= (steps >= within[0]) & (steps <= within[1])
    return np.asarray(found[shown])


def last_value(steps: Any, values: Any, within: tuple[float, float] | None = None) -> float:
    """The last of ``shown_values``, NaN where there is none.

    Example:
        >>> last_value([0, 1, 2], [5.0, 6.0, 7.0]), last_value([0, 1, 2], [5.0, 6.0, 7.0], (0.0, 1.5))
        (7.0, 6.0)
    """
    shown = shown_values(steps, values, within)
    return float(shown[-1]) if len(shown) else math.nan


# A span over which the ticks of an axis have six decimals at most.
_LEAST_PLAIN = 2e-5


def finite_span(*values: np.ndarray) -> tuple[float, float]:
    """Smallest and largest finite value, (0, 1) where there is none."""
    joined = np.concatenate([np.empty(0), *[np.asarray(v, dtype=np.float64) for v in values]])
    joined = joined[np.isfinite(joined)]
    return (float(joined.min()), float(joined.max())) if len(joined) else (0.0, 1.0)


def short_numbers(values: Sequence[float]) -> list[str]:
    """Numbers to be read together: the same decimals, three digits of the largest, no needless zeros.

    Example:
        >>> short_numbers([0.17, 0.1441]), short_numbers([83.0, 81.46]), short_numbers([18285.7])
        (['0.170', '0.144'], ['83.0', '81.5'], ['18,286'])
        >>> short_numbers([0.07]), short_numbers([3.03e-8])
        (['0.07'], ['3.03e-8'])
    """
    largest = max(map(abs, values), default=0.0)
    kind = "e" if 0.0 < largest < 1e-3 else "f"
    most = 2 if kind == "e" or not largest else max(0, 2 - math.floor(math.log10(largest)))
    exact = [f"{value:.{most}{kind}}" for value in values]
    fewest = next(
        digits
        for digits in range(most + 1)
        if all(
            float(f"{value:.{digits}{kind}}") == float(text)
            for value, text in zip(values, exact, strict=True)
        )
    )
    return [_plain(f"{value:,.{fewest}{kind}}") for value in values]


def _plain(text: str) -> str:
    mantissa, _e, exponent = text.partition("e")
    if not exponent:
        return text
    return f"{mantissa}e{int(exponent)}" if float(text) else "0"


def fit_axes(figure: go.Figure, steps: np.ndarray, span: tuple[float, float]) -> None:
    """Give axes that would have no extent, or fractions of a step, a sensible one."""
    if len(steps) and steps.max() < 10:
        figure.update_xaxes(dtick=1, tickformat="d", range=[-0.5, float(steps.max()) + 0.5])
    low, high = span
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        room = 0.2 * abs(low) or 1.0
        figure.update_layout(yaxis={"range": [low - room, low + room]})
    elif high - low < _LEAST_PLAIN and max(abs(low), abs(high)) < 1e-2:
        # 0.0009975 is wider than the margin, 9.975e-4 is not
        figure.update_layout(yaxis={"tickformat": "~e"})
    if max(abs(low), abs(high)) >= 1000:
        figure.update_layout(yaxis={"exponentformat": "SI", "separatethousands": True})


def say_empty(figure: go.Figure, theme: Theme, text: str | None = None) -> go.Figure:
    """Say in the middle of an empty figure what is missing."""
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.add_annotation(
        text=text or _("Nothing logged yet"),
        xref="paper",
        yref="paper",
        x=0.5,
        y=0.5,
        showarrow=False,
        font={"color": theme.muted, "size": 13},
    )
    return figure
