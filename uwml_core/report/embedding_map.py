"""Section: where the two modalities lie and how they move."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from uwml_core.analysis.map_classes import point_classes
from uwml_core.analysis.map_headline import epoch_name, map_headline
from uwml_core.analysis.map_points import map_points, map_range, places_of
from uwml_core.analysis.pair_strength import pair_strength
from uwml_core.analysis.projection_quality import projection_quality
from uwml_core.analysis.text import modality_name
from uwml_core.figures.embedding_map import embedding_map_figure
from uwml_core.figures.gap_measures import gap_measures_figure
from uwml_core.figures.map_colors import class_colors
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _
from uwml_core.projection.parameters import ProjectionParameters, chain_keys
from uwml_core.projection.pca import joint_axes, moments, place
from uwml_core.report.content import Chart, Section
from uwml_core.report.numbers import quality_note
from uwml_core.report.source import Source
from uwml_core.runlog.projections import find_projection, read_projection, to_frame
from uwml_core.runlog.reader import Run
from uwml_core.runlog.snapshots import Snapshot, read_snapshot, snapshot_steps


def embedding_map_section(source: Source) -> Section:
    """The newest snapshot's map and the measures of the gap, of the page Embedding map."""
    gaps = source.gaps
    found = [read_snapshot(source.run, step) for step, _epoch in snapshot_steps(source.run)]
    snapshots = [snapshot for snapshot in found if snapshot is not None]
    draw = partial(gap_measures_figure, gaps, modalities=source.modalities, height=460)
    gap = Chart(
        key="gap", title=_("The gap in the original space"), draw=draw, frame=gaps, height=460,
        notes=(_("A gap is not in itself a fault: closing it changes recall little."),), wide=True,
    )  # fmt: skip
    return Section(
        key="embedding_map",
        title=_("Embedding map"),
        question=_("Where do the two modalities lie, how do they move?"),
        headline=map_headline(gaps),
        blocks=[*([_map(source, snapshots)] if snapshots else []), gap],
    )


def _map(source: Source, snapshots: list[Snapshot]) -> Chart:
    snapshot, modalities = snapshots[-1], snapshots[-1].named(source.modalities)
    layout, method = _layout(source.run, snapshots)
    strength = pair_strength(snapshot, modalities)
    points = map_points(snapshot, layout, strength, source.items)
    codes, names = point_classes(points, "modality", modalities)
    places = places_of(snapshot, layout)
    known = np.isfinite(places).all(axis=1)

    def draw(theme: Theme) -> object:
        colors = class_colors("modality", len(names), theme)
        return embedding_map_figure(
            points, codes, colors, theme, modalities=modalities, ranges=map_range(layout)
        )

    return Chart(
        key="map",
        title=_("Map of {first} (circles) and {second} (diamonds)").format(
            first=modality_name(modalities[0]), second=modality_name(modalities[1])
        ),
        draw=draw,
        frame=points,
        height=520,
        notes=(
            method,
            epoch_name(snapshot.step, snapshot.epoch),
            quality_note(projection_quality(snapshot.vectors[known], places[known])),
        ),
        wide=True,
    )


def _layout(run: Run, snapshots: list[Snapshot]) -> tuple[pd.DataFrame, str]:
    """The page's UMAP of the newest snapshot where it was computed, else principal components."""
    for key in chain_keys(run, ProjectionParameters())[-1:]:
        path = find_projection(run.path, key)
        umap = None if path is None else read_projection(path)
        if umap is not None:
            return umap, "UMAP"
    alike = [s for s in snapshots if s.vectors.shape[1] == snapshots[-1].vectors.shape[1]]
    axes = joint_axes(moments(snapshot.vectors) for snapshot in alike)
    placed = [] if axes is None else [place(snapshot, axes) for snapshot in alike]
    return to_frame(placed), _("Principal components of all snapshots together.")
