"""Colours by meaning, type and number formats, for a light and a dark page."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import plotly.graph_objects as go

# as in .streamlit/config.toml
FONT = '"Source Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif'
# Plotly keeps zoom and visibility over an update as long as this stays the same.
UI_REVISION = "uwml"


@dataclass(frozen=True, kw_only=True)
class Theme:
    """Colours by meaning.

    Attributes:
        base: ``light`` or ``dark``.
        text, muted, grid, surface: page text, secondary text, grid lines, and the page behind a label.
        accent: the one thing that a chart is about, such as the curve being tried.
        first, second: the retrieval directions, by position; distinguishable to colour-blind readers.
        ghost: how it was before.
        warning: values that are not finite, errors.
        bands: misaligned, hard, informative, easy; one ordered ramp.
        on_bands: text on each of them.
        ramp_ends: start and end of training.
        template: Plotly template with all of this applied.
    """

    base: str
    text: str
    muted: str
    grid: str
    surface: str
    accent: str
    first: str
    second: str
    ghost: str
    warning: str
    bands: tuple[str, str, str, str]
    on_bands: tuple[str, str, str, str]
    ramp_ends: tuple[str, str]
    template: go.layout.Template = field(repr=False)

    def direction(self, name: str | None, directions: tuple[str, str]) -> str:
        """Colour of a direction by its position; text colour for the total (None).

        Raises:
            ValueError: if the run has no such direction.
        """
        if name is None:
            return self.text
        if name not in directions:
            raise ValueError(f"name={name!r} is no direction of this run; expected one of {directions}")
        return (self.first, self.second)[directions.index(name)]

    def ramp(self, n: int) -> list[str]:
        """Colours of n moments in order, from the start of training to its end.

        Example:
            >>> theme("light").ramp(1) == [theme("light").ramp_ends[1]]
            True
        """
        if n < 2:
            return [self.ramp_ends[1]] * n
        start, end = (_channels(color) for color in self.ramp_ends)
        steps = [i / (n - 1) for i in range(n)]
        mixed = [[round(a + (b - a) * t) for a, b in zip(start, end, strict=True)] for t in steps]
        return ["#" + "".join(f"{value:02x}" for value in color) for color in mixed]


def fade(color: str, opacity: float) -> str:
    """A colour made transparent, as an rgba string.

    Example:
        >>> fade("#0072B2", 0.25)
        'rgba(0, 114, 178, 0.25)'
    """
    red, green, blue = _channels(color)
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def _channels(color: str) -> tuple[int, int, int]:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue


_LIGHT = {
    "text": "#31333f",
    "muted": "#6b7280",
    "grid": "rgba(49, 51, 63, 0.09)",
    "surface": "#ffffff",
    "accent": "#4f46e5",
    "first": "#0072b2",
    "second": "#d55e00",
    "ghost": "#8b90a0",
    "warning": "#b91c1c",
    "bands": ("#6d1a52", "#ab4a86", "#d793bd", "#f0dae8"),
    "on_bands": ("#ffffff", "#ffffff", "#3b0d2c", "#3b0d2c"),
    "ramp_ends": ("#aab3f2", "#2e2a8c"),
}
_DARK = {
    "text": "#e5e7eb",
    "muted": "#9ca3af",
    "grid": "rgba(229, 231, 235, 0.12)",
    "surface": "#14161c",
    "accent": "#a5b4fc",
    "first": "#56b4e9",
    "second": "#f5a35c",
    "ghost": "#8b90a0",
    "warning": "#fca5a5",
    "bands": ("#f3a6d3", "#c067a0", "#87446f", "#4b2d42"),
    "on_bands": ("#2b0a20", "#1a0513", "#ffffff", "#e9d3e0"),
    "ramp_ends": ("#4b4a8f", "#dbe1ff"),
}


@lru_cache
def theme(base: str) -> Theme:
    """Theme of a light or a dark page.

    Raises:
        ValueError: if ``base`` is neither ``light`` nor ``dark``.
    """
    if base not in ("light", "dark"):
        raise ValueError(f"base={base!r} is unknown; choose light or dark")
    colors = _LIGHT if base == "light" else _DARK
    return Theme(base=base, template=_template(colors), **colors)  # type: ignore[arg-type]


def _template(colors: dict[str, str | tuple[str, ...]]) -> go.layout.Template:
    axis = {
        "gridcolor": colors["grid"],
        "gridwidth": 1,
        "linecolor": colors["grid"],
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": colors["grid"],
        "tickfont": {"color": colors["muted"], "size": 12},
        "title": {"font": {"color": colors["muted"], "size": 12}, "standoff": 8},
        "automargin": False,
        # an SI prefix would read as a unit: 8e-4, not 800µ
        "exponentformat": "e",
    }
    layout = {
        "font": {"family": FONT, "size": 13, "color": colors["text"]},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "colorway": [colors["first"], colors["second"], colors["accent"]],
        "xaxis": {**axis, "showgrid": False},
        "yaxis": axis,
        "hoverlabel": {
            "bgcolor": colors["surface"],
            "bordercolor": colors["grid"],
            "font": {"family": FONT, "size": 13, "color": colors["text"]},
        },
        "hovermode": "closest",
        "showlegend": False,
        "separators": ".,",
        "title": {"font": {"size": 14, "color": colors["text"]}, "x": 0, "xref": "paper", "xanchor": "left"},
    }
    return go.layout.Template(layout=layout)
