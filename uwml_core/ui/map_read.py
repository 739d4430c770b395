"""Cached reading for the embedding map: snapshots, layouts and what follows from them."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from uwml_core.analysis.gap_measures import gap_measures as measures_of
from uwml_core.analysis.gap_measures import merge_gaps
from uwml_core.analysis.map_points import map_points as points_of
from uwml_core.analysis.map_points import places_of
from uwml_core.analysis.pair_strength import pair_strength
from uwml_core.analysis.projection_quality import ProjectionQuality, projection_quality
from uwml_core.i18n import _
from uwml_core.projection.parameters import ProjectionParameters, chain_keys
from uwml_core.projection.pca import joint_axes, moments, place
from uwml_core.runlog.projections import find_projection, read_projection, to_frame
from uwml_core.runlog.reader import Run
from uwml_core.runlog.snapshots import Snapshot, read_snapshot, snapshot_steps, snapshots_in
from uwml_core.ui.text import note


def gap_measures(run: Run) -> pd.DataFrame:
    """Measures of the gap of every snapshot; of a growing run only new ones are computed."""
    return _gaps(str(run.path), _version(run), _run=run)


def moments_of(run: Run) -> list[tuple[int, int | None]]:
    """Step and epoch of every snapshot."""
    return snapshot_steps(run)


def snapshot(run: Run, step: int) -> Snapshot:
    """The snapshot of a step; the page ends here, saying so, where its file has vanished meanwhile."""
    found = _snapshot(str(run.path), _version(run), step, _run=run)
    if found is None:
        note(_("The snapshot can no longer be read."))
        st.stop()
    return found


def items_of(run: Run) -> pd.DataFrame | None:
    """Items of the run's data set."""
    return _items(str(run.path), run.info.get("data_fingerprint"), run.has("items"), _run=run)


def pca_layout(run: Run) -> pd.DataFrame:
    """Layout of all snapshots along their common principal components."""
    return _pca(str(run.path), _version(run), _run=run)


def umap_layout(run: Run, parameters: ProjectionParameters) -> tuple[pd.DataFrame | None, str, bool]:
    """Layout that was computed, its key, and whether it has all snapshots.

    Of a run that has grown since, the layout of what it was.
    """
    keys = chain_keys(run, parameters)
    folder = run.folder("projections").parent
    for key in reversed(keys):
        path = find_projection(folder, key)
        frame = None if path is None else _layout(str(path), path.stat().st_mtime_ns)
        if frame is not None:
            return frame, keys[-1], key == keys[-1]
    return None, keys[-1] if keys else "", False


def map_points(run: Run, step: int, layout: pd.DataFrame, name: str) -> pd.DataFrame:
    """Points of one snapshot with everything that is told about them; ``name`` identifies the layout."""
    return _points(str(run.path), (_version(run), run.has("items")), step, name, _run=run, _layout=layout)


def map_quality(run: Run, step: int, layout: pd.DataFrame, name: str) -> ProjectionQuality:
    """What the map of one snapshot kept of its neighborhoods; ``name`` identifies the layout."""
    return _quality(str(run.path), _version(run), step, name, _run=run, _layout=layout)


def _version(run: Run) -> Hashable:
    return tuple(part.key for part in run.parts("snapshots"))


@st.cache_resource(max_entries=16, show_spinner=False)
def _gaps(path: str, version: Hashable, *, _run: Run) -> pd.DataFrame:
    return merge_gaps(_run.map_parts("snapshots", measures_of))


@st.cache_resource(max_entries=12, show_spinner=False)
def _snapshot(path: str, version: Hashable, step: int, *, _run: Run) -> Snapshot | None:
    return read_snapshot(_run, step)


@st.cache_resource(max_entries=4, show_spinner=False)
def _items(path: str, fingerprint: Any, there: bool, *, _run: Run) -> pd.DataFrame | None:
    return _run.items()


@st.cache_resource(max_entries=8, show_spinner=False)
def _pca(path: str, version: Hashable, *, _run: Run) -> pd.DataFrame:
    axes = joint_axes(part for parts in _run.map_parts("snapshots", _moments) for part in parts)
    found = [snapshot(_run, step) for step, _epoch in snapshot_steps(_run)]
    return to_frame(
        [place(s, axes) for s in found if axes is not None and s.vectors.shape[1] == len(axes.mean)]
    )


def _moments(table: Any) -> list[Any]:
    return [moments(found.vectors) for found in snapshots_in(table)]


@st.cache_resource(max_entries=8, show_spinner=False)
def _layout(path: str, mtime_ns: int) -> pd.DataFrame | None:
    return read_projection(Path(path))


@st.cache_resource(max_entries=64, show_spinner=False)
def _points(
    path: str, version: Hashable, step: int, name: str, *, _run: Run, _layout: pd.DataFrame
) -> pd.DataFrame:
    shot = snapshot(_run, step)
    strength = _strength(path, _version(_run), step, shot.named(_run.modalities), _run=_run)
    return points_of(shot, _layout, strength, items_of(_run))


@st.cache_resource(max_entries=64, show_spinner=False)
def _strength(
    path: str, version: Hashable, step: int, modalities: tuple[str, str], *, _run: Run
) -> pd.DataFrame:
    return pair_strength(snapshot(_run, step), modalities)


@st.cache_resource(max_entries=256, show_spinner=False)
def _quality(
    path: str, version: Hashable, step: int, name: str, *, _run: Run, _layout: pd.DataFrame
) -> ProjectionQuality:
    shot = snapshot(_run, step)
    places = places_of(shot, _layout)
    known = np.isfinite(places).all(axis=1)
    return projection_quality(shot.vectors[known], places[known])
