"""Cached reading for the embedding map: snapshots, layouts and what follows from them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.analysis.gap_measures import gap_measures as measures_of
from uwml_core.analysis.gap_measures import merge_gaps
from uwml_core.analysis.map_headline import map_headline
from uwml_core.analysis.map_points import map_range
from uwml_core.analysis.map_statements import snapshot_statements
from uwml_core.analysis.spread import spread_order
from uwml_core.i18n import _
from uwml_core.projection.parameters import ProjectionParameters, chain_keys
from uwml_core.projection.pca import Axes, joint_axes, moments, place
from uwml_core.runlog.projection_facts import ProjectionFacts, read_facts
from uwml_core.runlog.projections import find_projection, read_projection, to_frame
from uwml_core.runlog.reader import Part, Run
from uwml_core.runlog.snapshots import Snapshot, read_snapshot, snapshot_steps
from uwml_core.ui.frame import apply_language
from uwml_core.ui.kept import kept_of, table_version
from uwml_core.ui.live import REFRESH_S
from uwml_core.ui.shared import shared
from uwml_core.ui.text import escape_markdown, note

# The axes of all snapshots are those of some, evenly spread, where a run has more than these, or of large
# ones, where they have more points: reading 40,000 takes a tenth of a second.
MOST_SNAPSHOTS, LEAST_SNAPSHOTS, MOST_POINTS = 6, 3, 100_000
# Comparing all points of a snapshot with all, and measuring the gap, takes a tenth of a second up to here.
AT_ONCE_POINTS = 5_000
# For the measures of the gap at the first visit; two of them tell from where to where.
AT_ONCE_S, AT_LEAST = 0.2, 2

Places = Mapping[int, pd.DataFrame]
"""A layout: by step the frame ``[step, epoch, item_id, modality, x, y]`` of a snapshot."""


def gap_measures(run: Run, shown: Snapshot) -> tuple[pd.DataFrame, int]:
    """Measures of the gap of the snapshots that were looked at so far, and how many are still to be.

    Each takes a tenth of a second, so of many only some are measured at once, spread over the run, and of
    large ones none at the first visit; ``measure_rest`` goes on with the others. Of a growing run only new
    ones are computed.

    Args:
        run: the run.
        shown: one of its snapshots, which tells how large they are.
    """
    at_once = len(shown.item_ids) <= AT_ONCE_POINTS or _done(str(run.path))
    order = spread_order(len(run.parts("snapshots")))
    return _measured(run, order[:AT_LEAST] if at_once else [], math.inf)


def gaps_at_hand(run: Run) -> tuple[pd.DataFrame, int]:
    """As ``gap_measures``, of what is measured already."""
    return _measured(run, [], 0.0)


def measure_rest(run: Run) -> None:
    """Measure the snapshots that are left, a few every two seconds.

    The page is drawn again when there are enough to say something, and when all are there.
    """
    if not _unmeasured(run):
        return
    first, drawn = not _done(str(run.path)), time.monotonic()

    @st.fragment(run_every=REFRESH_S)
    def measure() -> None:
        apply_language()
        # the first time, as a part of the page, it would only hold the page up
        if time.monotonic() - drawn > REFRESH_S / 2 and _go_on(run, first=first):
            st.rerun(scope="app")

    measure()


def _go_on(run: Run, *, first: bool) -> bool:
    """Measure some more snapshots; whether it is time to draw the page again."""
    order = spread_order(len(run.parts("snapshots")))
    if first:
        _measured(run, order[:AT_LEAST], math.inf)
        return True
    return not _measured(run, order, AT_ONCE_S)[1]


def _measured(run: Run, order: list[int], seconds: float) -> tuple[pd.DataFrame, int]:
    parts, done = run.parts("snapshots"), _done(str(run.path))
    end = time.monotonic() + seconds
    for part in (parts[position] for position in order if position < len(parts)):
        if part.key in done:
            continue
        if time.monotonic() >= end:
            break
        run.map_each("snapshots", _only({part.key}))
        done.add(part.key)
    known = tuple(part.key for part in parts if part.key in done)
    gaps = _merged(str(run.path), known, repr(run.info.get("segments")), _run=run)
    return gaps, len(parts) - len(known)


def gap_headline(run: Run, gaps: pd.DataFrame, rest: int) -> str:
    """The sentence above the map, of what ``gap_measures`` gave."""
    measured = tuple(dict.fromkeys(gaps["step"].tolist()))
    return kept_of(run, "snapshots", ("headline", measured, rest), map_headline, gaps, rest)


def _unmeasured(run: Run) -> int:
    done = _done(str(run.path))
    return sum(part.key not in done for part in run.parts("snapshots"))


def _only(keys: set[Hashable]) -> Callable[[Part], Callable[[Any], pd.DataFrame] | None]:
    return lambda part: measures_of if part.key in keys else None


def moments_of(run: Run) -> list[tuple[int, int | None]]:
    """Step and epoch of every snapshot."""
    return kept_of(run, "snapshots", "moments", snapshot_steps, run)


def snapshot(run: Run, step: int) -> Snapshot:
    """The snapshot of a step; the page ends here, saying so, where its file has vanished meanwhile."""
    found = _snapshot(str(run.path), snapshots_version(run), step, _run=run)
    if found is None:
        note(_("The snapshot can no longer be read."))
        st.stop()
    return found


def map_statements(run: Run, shown: Snapshot) -> None:
    """Say what must be known of a snapshot before its map is read."""
    for text in kept_of(run, "snapshots", ("statements", shown.step), _statements, run, shown):
        st.warning(escape_markdown(text), icon=":material/info:")


def _statements(run: Run, shown: Snapshot) -> list[str]:
    steps = [step for step, _epoch in moments_of(run) if step < shown.step]
    before = _snapshot(str(run.path), snapshots_version(run), steps[-1], _run=run) if steps else None
    return snapshot_statements(shown, before, shown.named(run.modalities))


def pca_layout(run: Run, steps: Sequence[int]) -> tuple[Places, int, int]:
    """Layout along common principal components, of how many and of how many snapshots these are.

    Args:
        run: the run.
        steps: snapshots that are shown; the layout has them and those that the components come from.
    """
    at = str(run.path), snapshots_version(run)
    axes, few, total = _axes(*at, _run=run)
    if axes is None:
        return {}, len(few), total
    placed = {step: _placed(*at, step, _run=run, _axes=axes) for step in (*few, *steps)}
    return {step: frame for step, frame in placed.items() if frame is not None}, len(few), total


def layout_facts(run: Run, parameters: ProjectionParameters) -> ProjectionFacts | None:
    """What the layout that ``umap_layout`` gives says of itself; None where its file does not say."""
    for key in reversed(chain_keys(run, parameters)):
        path = find_projection(run.folder("projections").parent, key)
        if path is not None:
            return _facts(str(path), path.stat().st_mtime_ns)
    return None


def umap_layout(run: Run, parameters: ProjectionParameters) -> tuple[Places | None, str, bool]:
    """Layout that was computed, its key, and whether it has all snapshots.

    Of a run that has grown since, the layout of what it was.
    """
    keys = chain_keys(run, parameters)
    folder = run.folder("projections").parent
    for key in reversed(keys):
        path = find_projection(folder, key)
        places = None if path is None else _layout(str(path), path.stat().st_mtime_ns)
        if places is not None:
            return places, keys[-1], key == keys[-1]
    return None, keys[-1] if keys else "", False


def layout_range(run: Run, name: str, places: Places) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges of both axes that hold all snapshots of a layout; ``name`` identifies it."""
    return _range(str(run.path), snapshots_version(run), name, tuple(places), _places=places)


def snapshots_version(run: Run) -> str:
    """Changes whenever a snapshot is added or replaced; looked up twice a second at most."""
    return _short(table_version(run, "snapshots"))


@lru_cache(maxsize=1_000)
def _short(version: Hashable) -> str:
    # it is part of many keys, and looking those up takes time
    return blake2b(repr(version).encode(), digest_size=16).hexdigest()


@st.cache_resource(max_entries=64, show_spinner=False)
def _done(path: str) -> set[Hashable]:
    """Parts that were measured; their measures are the reader's to keep."""
    return set()


@shared
def _snapshot(path: str, version: str, step: int, *, _run: Run) -> Snapshot | None:
    return read_snapshot(_run, step)


@shared
def _axes(path: str, version: str, *, _run: Run) -> tuple[Axes | None, list[int], int]:
    known = [step for step, _epoch in snapshot_steps(_run)]
    newest = _snapshot(path, version, known[-1], _run=_run) if known else None
    fitting = MOST_POINTS // max(1, 0 if newest is None else len(newest.item_ids))
    most = min(max(fitting, LEAST_SNAPSHOTS), MOST_SNAPSHOTS)
    few = [known[place] for place in sorted(spread_order(len(known))[:most])]
    found = [shot for step in few if (shot := _snapshot(path, version, step, _run=_run)) is not None]
    return joint_axes(moments(shot.vectors) for shot in found), few, len(known)


@shared
def _merged(path: str, measured: tuple[Hashable, ...], segments: str, *, _run: Run) -> pd.DataFrame:
    return merge_gaps(_run.map_each("snapshots", _only(set(measured))))


@shared
def _placed(path: str, version: str, step: int, *, _run: Run, _axes: Axes) -> pd.DataFrame | None:
    shot = _snapshot(path, version, step, _run=_run)
    fits = shot is not None and shot.vectors.shape[1] == len(_axes.mean)
    return to_frame([place(shot, _axes)]) if shot is not None and fits else None


@shared
def _facts(path: str, mtime_ns: int) -> ProjectionFacts | None:
    return read_facts(Path(path))


@shared
def _layout(path: str, mtime_ns: int) -> Places | None:
    frame = read_projection(Path(path))
    if frame is None:
        return None
    return {int(rows["step"].iloc[0]): rows for _step, rows in frame.groupby("step")}


@shared
def _range(
    path: str, version: str, name: str, steps: tuple[int, ...], *, _places: Places
) -> tuple[tuple[float, float], tuple[float, float]]:
    return map_range(*_places.values())
