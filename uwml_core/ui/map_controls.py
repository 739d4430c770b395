"""How the points of the map are coloured, and which of them are shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from uwml_core.analysis.map_classes import COLOR_BY, point_classes
from uwml_core.analysis.map_measures import with_kept_share, with_weights
from uwml_core.analysis.map_points import of_split
from uwml_core.analysis.map_trails import phase_at
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.runlog.snapshots import Snapshot
from uwml_core.ui.choice import choice
from uwml_core.ui.layout_choice import MapLayout
from uwml_core.ui.map_told import kept_shares, phases_of, point_weights


@dataclass(frozen=True, kw_only=True)
class MapView:
    """What of the points is shown.

    Attributes:
        color_by: one of ``COLOR_BY``.
        split: the split shown, None for all.
    """

    color_by: str
    split: str | None

    @property
    def ranked(self) -> bool:
        """Whether margins or ranks are shown."""
        return self.color_by in ("margin", "rank")


@dataclass(frozen=True, kw_only=True, eq=False)
class ColoredPoints:
    """Points of a map with the classes that their colours tell apart.

    Attributes:
        points: frame of ``map_points`` of the chosen split, with what the colours are about.
        codes: class of each point, −1 for none.
        names: of the classes.
        total: points of all splits.
        note: what there is to say about it; may be empty.
    """

    points: pd.DataFrame
    codes: NDArray[np.int64]
    names: list[str]
    total: int
    note: str


def map_controls(snapshot: Snapshot) -> MapView:
    """Draw the controls; the address carries them.

    Args:
        snapshot: whose points the map shows.
    """
    splits = sorted(set(snapshot.splits) - {""})
    left, right = st.columns(2, gap="small")
    with left:
        names = {
            "modality": _("Modality"), "group": _("Group"), "margin": _("Margin"), "rank": _("Rank"),
            "weight": _("Weight"), "phase": _("Phase"), "kept": _("Distortion"),
        }  # fmt: skip
        color_by = choice(_("Color by"), "color", COLOR_BY, "modality", names.__getitem__)
    with right:
        split = choice(_("Points of"), "points", ["all", *splits], "all", _split_name)
    return MapView(color_by=color_by, split=None if split == "all" else split)


def _split_name(split: str) -> str:
    return _("All splits") if split == "all" else split


def colored_points(
    run: Run, snapshot: Snapshot, points: pd.DataFrame, layout: MapLayout, view: MapView
) -> ColoredPoints:
    """Points of the chosen split and the classes of the chosen colouring.

    Args:
        run: the run.
        snapshot: whose points these are.
        points: frame of ``map_points``.
        layout: where the points lie.
        view: what is shown.
    """
    told, note = _told(run, snapshot, points, layout, view)
    modalities = snapshot.named(run.modalities)
    phases = list(dict.fromkeys(phases_of(run)["phase"])) if view.color_by == "phase" else []
    codes, names = point_classes(told, view.color_by, modalities, phases)
    if view.split is not None:
        codes = codes[told["split"].to_numpy(object) == view.split]
    shown = of_split(told, view.split)
    return ColoredPoints(points=shown, codes=codes, names=names, total=len(points), note=note)


def _told(
    run: Run, snapshot: Snapshot, points: pd.DataFrame, layout: MapLayout, view: MapView
) -> tuple[pd.DataFrame, str]:
    if view.ranked and points["margin"].isna().all() and len(points):
        return points, _("Margins and ranks are being computed.")
    if view.color_by == "weight":
        weights, note = point_weights(run, snapshot.step)
        about = _("Mean weight of the item as an anchor in the epoch; grey points were not trained on.")
        told = with_weights(points, weights, snapshot.named(run.modalities), run.directions)
        return told, note if weights.empty else about
    if view.color_by == "phase":
        phase = phase_at(phases_of(run), snapshot.step)
        return points.assign(phase=phase), "" if phase else _("No phase was logged for this snapshot.")
    if view.color_by == "kept":
        return _with_kept(run, snapshot.step, points, layout)
    return points, ""


def _with_kept(run: Run, step: int, points: pd.DataFrame, layout: MapLayout) -> tuple[pd.DataFrame, str]:
    quality = kept_shares(run, step, layout.at(step), layout.name)
    if quality is None:
        return points.assign(kept_share=np.nan), _("Distortions are being computed.")
    text = _(
        "Share of each point's nearest neighbors that are nearest on the map too, of {n} of {total} points"
    )
    note = text.format(n=f"{len(quality):,}", total=f"{len(points):,}")
    return with_kept_share(points, quality), note
