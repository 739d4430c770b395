"""Colours of the classes on the embedding map."""

from __future__ import annotations

from collections.abc import Sequence

from uwml_core.figures.theme import Theme

# Paul Tol's "muted" and "light" schemes: distinguishable to colour-blind readers.
_LIGHT = "#332288 #88ccee #44aa99 #117733 #999933 #ddcc77 #cc6677 #882255 #aa4499"
_DARK = "#77aadd #ee8866 #eedd88 #ffaabb #99ddff #44bb99 #bbcc33 #aaaa00 #c7a6f2"


def class_colors(color_by: str, count: int, theme: Theme) -> list[str]:
    """Colours of the classes of ``point_classes``, in their order.

    Args:
        color_by: what the classes are about.
        count: how many there are.
        theme: colours.
    """
    if color_by == "modality":
        return [theme.first, theme.second][:count]
    if color_by in ("weight", "phase"):
        return theme.ramp(count)
    if color_by in ("margin", "kept"):
        return list(theme.bands)[:count]
    if color_by == "rank":
        return list(theme.bands[::-1])[:count]
    groups = _LIGHT if theme.base == "light" else _DARK
    return [*groups.split(), theme.ghost][:count]


def flat_scale(palette: Sequence[str]) -> list[list[object]]:
    """A colour scale of equal flat steps.

    Example:
        >>> flat_scale(["#000000", "#ffffff"])
        [[0.0, '#000000'], [0.5, '#000000'], [0.5, '#ffffff'], [1.0, '#ffffff']]
    """
    edges = [(k / len(palette), (k + 1) / len(palette)) for k in range(len(palette))]
    return [[edge, color] for color, pair in zip(palette, edges, strict=True) for edge in pair]
