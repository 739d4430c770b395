"""The map with its key and its small print."""

from __future__ import annotations

import html
from collections.abc import Callable, Hashable
from hashlib import blake2b

import streamlit as st

from uwml_core.analysis.projection_quality import ProjectionQuality
from uwml_core.analysis.text import modality_name
from uwml_core.figures.drawing import Encoded
from uwml_core.figures.embedding_map import Range, embedding_map_figure
from uwml_core.figures.map_colors import class_colors
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _, language, ngettext
from uwml_core.report.numbers import quality_note
from uwml_core.runlog.reader import Run
from uwml_core.ui.card import card
from uwml_core.ui.layout_choice import MapLayout
from uwml_core.ui.map_controls import ColoredPoints, MapView
from uwml_core.ui.map_read import layout_range
from uwml_core.ui.shared import shared
from uwml_core.ui.text import element, notes

HEIGHT = 520
GLIDE_MS = 600
OVERLAY = "map"


def map_card(
    run: Run,
    shown: ColoredPoints,
    layout: MapLayout,
    view: MapView,
    quality: Callable[[], ProjectionQuality | None],
    *,
    modalities: tuple[str, str],
    theme: Theme,
) -> None:
    """Draw the map of one snapshot; what is drawn over it comes from ``map_reading``.

    Args:
        run: the run.
        shown: the points with their classes.
        layout: where the points lie.
        view: what of them is shown.
        quality: tells what the map kept of the neighborhoods, None while that is being computed; called when
            the map is drawn.
        modalities: names of both.
        theme: colours.
    """
    title = _("Map of {first} (circles) and {second} (diamonds)").format(
        first=modality_name(modalities[0]), second=modality_name(modalities[1])
    )
    if shown.points.empty:
        with st.container(border=True, key="card-map", gap="xsmall"):
            st.html(element("h2", title, "uw-title"))
            notes(_("No point of this choice has a place on the map"), _counts(shown), shown.note)
        return
    colors = class_colors(view.color_by, len(shown.names), theme)
    # the texts of the items are not in the digest, but follow from these
    items = (str(run.path), run.info.get("data_fingerprint"), run.has("items"))
    figure = _figure(
        (items, _digest(shown, modalities[0]), theme.base, language()),
        tuple(colors),
        modalities,
        layout_range(run, layout.name, layout.places),
        _shown=shown,
        _theme=theme,
    )
    card(
        title,
        figure,
        shown.points,
        _counts(shown),
        shown.note,
        layout.note,
        lambda: _told(quality()),
        *layout.details,
        layout.caution,
        key="map",
        height=HEIGHT,
        overlay=OVERLAY,
        glide_ms=GLIDE_MS,
        legend=_key(shown.names, colors),
    )


def _digest(shown: ColoredPoints, first: str) -> bytes:
    """Of all numbers that the map shows: a fiftieth of the time that it takes to encode them."""
    digest = blake2b(shown.codes.tobytes(), digest_size=16)
    digest.update((shown.points["modality"].to_numpy(object) == first).tobytes())
    for name in ("x", "y", "item_id", "margin", "rank"):
        digest.update(shown.points[name].to_numpy().tobytes())
    return digest.digest()


@shared
def _figure(
    points: Hashable,
    colors: tuple[str, ...],
    modalities: tuple[str, str],
    ranges: tuple[Range, Range],
    *,
    _shown: ColoredPoints,
    _theme: Theme,
) -> Encoded:
    figure = embedding_map_figure(
        _shown.points, _shown.codes, colors, _theme, modalities=modalities, ranges=ranges, height=HEIGHT
    )
    return Encoded(figure)


def _told(quality: ProjectionQuality | None) -> str:
    return _("The map's quality is being computed") if quality is None else quality_note(quality)


def _counts(shown: ColoredPoints) -> str:
    text = ngettext("{n} of {total} point", "{n} of {total} points", shown.total)
    return text.format(n=f"{len(shown.points):,}", total=f"{shown.total:,}")


def _key(names: list[str], colors: list[str]) -> str:
    """The classes with their colours, as HTML."""
    entries = [
        f'<span><i style="background:{color}"></i><span class="uw-cut">{html.escape(name)}</span></span>'
        for name, color in zip(names, colors, strict=True)
    ]
    return f'<div class="uw-key">{"".join(entries)}</div>'
