"""The map with its key and its small print, and the measures of the gap below."""

from __future__ import annotations

import html

import pandas as pd

from uwml_core.analysis.map_classes import point_classes
from uwml_core.analysis.map_points import map_range, of_split, pair_lines, worst_pairs
from uwml_core.analysis.projection_quality import ProjectionQuality
from uwml_core.analysis.text import modality_name
from uwml_core.figures.embedding_map import embedding_map_figure
from uwml_core.figures.map_colors import class_colors
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _
from uwml_core.report.numbers import quality_note
from uwml_core.ui.card import card
from uwml_core.ui.layout_choice import MapLayout
from uwml_core.ui.map_controls import WORST_PAIRS, MapView
from uwml_core.ui.point_card import choose_item

HEIGHT = 520
GLIDE_MS = 600


def map_card(
    points: pd.DataFrame,
    layout: MapLayout,
    view: MapView,
    item: int | None,
    quality: ProjectionQuality,
    *,
    modalities: tuple[str, str],
    theme: Theme,
) -> None:
    """Draw the map of one snapshot.

    Args:
        points: frame of ``map_points``.
        layout: where the points lie.
        view: what of them is shown.
        item: the chosen item.
        quality: what the map kept of the neighborhoods.
        modalities: names of both.
        theme: colours.
    """
    codes, names = point_classes(points, view.color_by, modalities)
    shown = of_split(points.assign(code=codes), view.split)
    links = [worst_pairs(shown, modalities, WORST_PAIRS)] if view.links else []
    if item is not None:
        links.append(pair_lines(shown, modalities, [item]))
    colors = class_colors(view.color_by, len(names), theme)
    figure = embedding_map_figure(
        shown,
        shown["code"].to_numpy(),
        colors,
        theme,
        modalities=modalities,
        ranges=map_range(layout.frame),
        links=pd.concat(links) if links else None,
        found=shown[shown["item_id"].isin(view.found)],
        chosen=shown[shown["item_id"] == item],
        height=HEIGHT,
    )
    card(
        _("Map of {first} (circles) and {second} (diamonds)").format(
            first=modality_name(modalities[0]), second=modality_name(modalities[1])
        ),
        figure,
        shown.drop(columns="code"),
        _counts(points, shown),
        layout.note,
        quality_note(quality),
        key="map",
        height=HEIGHT,
        on_click=lambda numbers: choose_item(int(numbers[0])),
        glide_ms=GLIDE_MS,
        legend=_key(names, colors),
    )


def _counts(points: pd.DataFrame, shown: pd.DataFrame) -> str:
    return _("{n} of {total} points").format(n=f"{len(shown):,}", total=f"{len(points):,}")


def _key(names: list[str], colors: list[str]) -> str:
    """The classes with their colours, as HTML."""
    entries = [
        f'<span><i style="background:{color}"></i><span class="uw-cut">{html.escape(name)}</span></span>'
        for name, color in zip(names, colors, strict=True)
    ]
    return f'<div class="uw-key">{"".join(entries)}</div>'
