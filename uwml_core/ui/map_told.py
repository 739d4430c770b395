"""What is told about the points of a map; of large snapshots some of it comes while the page is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from uwml_core.analysis.hard_negatives.rows import rows_of_epoch
from uwml_core.analysis.map_measures import WEIGHT_COLUMNS, item_weights
from uwml_core.analysis.map_points import map_points as points_of
from uwml_core.analysis.map_points import places_of
from uwml_core.analysis.map_selection import with_strength
from uwml_core.analysis.neighbors_across import neighbors_across
from uwml_core.analysis.pair_strength import pair_strength
from uwml_core.analysis.projection_quality import ProjectionQuality, point_quality, projection_quality
from uwml_core.analysis.training import phase_bands
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.ui.kept import kept_of, table_version
from uwml_core.ui.later import later
from uwml_core.ui.map_read import AT_ONCE_POINTS, snapshot, snapshots_version
from uwml_core.ui.map_texts import captions_of
from uwml_core.ui.read import step_sizes, steps
from uwml_core.ui.shared import shared

T = TypeVar("T")
Floats = NDArray[np.float64]

# Points whose margins are computed at once where those of the whole snapshot are not known.
MOST_COMPARED = 200
# Comparing all points of a snapshot with all takes a hundredth of a second up to here.
COMPARED_AT_ONCE = 1_500
# Points of a larger one whose neighborhoods are looked at.
KEPT_PROBES = 2_000


def map_points(run: Run, step: int, places: pd.DataFrame, name: str, *, ranked: bool) -> pd.DataFrame:
    """Points of one snapshot, which lie at ``places``, with all that is told; ``name`` identifies the layout.

    But of small snapshots margin and rank come later, of large ones only where ``ranked`` asks for them.
    """
    few = len(snapshot(run, step).item_ids) <= AT_ONCE_POINTS
    strength = pair_strengths(run, step, wanted=ranked or few)
    at = (snapshots_version(run), run.has("items"), strength is None)
    return _points(str(run.path), at, step, name, _run=run, _places=places, _strength=strength)


def pair_strengths(run: Run, step: int, *, wanted: bool) -> pd.DataFrame | None:
    """Frame of ``pair_strength``; unless the snapshot is small None until it was wanted and is there."""
    shot = snapshot(run, step)
    names = shot.named(run.modalities)
    if len(shot.item_ids) <= COMPARED_AT_ONCE:
        return _strength(str(run.path), snapshots_version(run), step, names, _run=run)
    key = ("strength", str(run.path), snapshots_version(run), step, names)
    return later(key, lambda: pair_strength(shot, names), wanted=wanted, after_page=True)


def map_quality(run: Run, step: int, places: pd.DataFrame, name: str) -> ProjectionQuality | None:
    """What the map of one snapshot kept of its neighborhoods; ``name`` identifies the layout.

    None while that of any but a small snapshot is being computed.
    """
    return _judged(run, step, places, projection_quality, ("quality", name))


def kept_shares(run: Run, step: int, places: pd.DataFrame, name: str) -> pd.DataFrame | None:
    """What the map kept of the neighborhood of each point, of many points of some; None likewise."""
    judge = partial(point_quality, most_probes=KEPT_PROBES)
    return _judged(run, step, places, judge, ("kept", name))


def _judged(
    run: Run, step: int, layout: pd.DataFrame, judge: Callable[[Any, Any], T], name: Hashable
) -> T | None:
    shot = snapshot(run, step)
    key = (name, str(run.path), snapshots_version(run), step)

    def work() -> T:
        places = places_of(shot, layout)
        known = np.isfinite(places).all(axis=1)
        return judge(shot.vectors[known], places[known])

    if len(shot.item_ids) <= COMPARED_AT_ONCE:
        return _kept(key, _work=work)  # type: ignore[no-any-return]
    return later(key, work, after_page=True)


def item_told(run: Run, step: int, item_id: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """An item's frames of ``neighbors_across`` and of ``[modality, margin, rank]``, a row per point."""
    if item_id is None:
        return pd.DataFrame(), pd.DataFrame()
    names = snapshot(run, step).named(run.modalities)
    return _of_item(str(run.path), snapshots_version(run), step, names, item_id, _run=run)


def strength_of(run: Run, step: int, points: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Points with margin and rank, of many points those of a sample, and how many are in it."""
    if points.empty or points["margin"].notna().any():
        return points, len(points)
    shot = snapshot(run, step)
    names = shot.named(run.modalities)
    keys = points["item_id"].to_numpy(np.int64).tobytes(), tuple(points["modality"] == names[0])
    at = (str(run.path), snapshots_version(run), step, names, blake2b(repr(keys).encode()).digest())
    margin, rank, compared = _compared(*at, _points=points, _run=run)
    return points.assign(margin=margin, rank=rank), compared


def point_weights(run: Run, step: int) -> tuple[pd.DataFrame, str]:
    """Mean weight of each item in the epoch that a snapshot ended, and which steps these are."""
    shot = snapshot(run, step)
    epoch = shot.epoch
    empty = pd.DataFrame({"item_id": [], "direction": [], "weight": []})
    if epoch is None or epoch < 0 or not run.has("pairs"):
        return empty, _("No weight was logged for the epoch of this snapshot.")
    items = np.unique(shot.item_ids)
    which = blake2b(items.tobytes(), digest_size=16).digest()
    return _weights(str(run.path), table_version(run, "pairs"), epoch, which, _run=run, _items=items)


def phases_of(run: Run) -> pd.DataFrame:
    """Phases of training, a row per stretch of steps; none where they were not logged."""
    if not run.has("steps"):
        return phase_bands(pd.DataFrame())
    return kept_of(run, "steps", "phases", lambda: phase_bands(steps(run)))


@shared
def _points(
    path: str,
    version: Hashable,
    step: int,
    name: str,
    *,
    _run: Run,
    _places: pd.DataFrame,
    _strength: pd.DataFrame | None,
) -> pd.DataFrame:
    shot = snapshot(_run, step)
    unknown = pd.DataFrame({"margin": np.nan, "rank": np.nan}, index=range(len(shot.item_ids)))
    told = captions_of(_run, np.unique(shot.item_ids))
    return points_of(shot, _places, unknown if _strength is None else _strength, told)


@shared
def _strength(
    path: str, version: Hashable, step: int, modalities: tuple[str, str], *, _run: Run
) -> pd.DataFrame:
    return pair_strength(snapshot(_run, step), modalities)


@shared
def _of_item(
    path: str, version: Hashable, step: int, modalities: tuple[str, str], item_id: int, *, _run: Run
) -> tuple[pd.DataFrame, pd.DataFrame]:
    shot = snapshot(_run, step)
    rows = np.flatnonzero(shot.item_ids == item_id)
    strength = pair_strength(shot, modalities, rows).iloc[rows]
    names = np.array(shot.modalities, dtype=object)[shot.modality[rows]]
    return neighbors_across(shot, modalities, item_id), strength.assign(modality=names)


@shared
def _compared(
    path: str,
    version: Hashable,
    step: int,
    modalities: tuple[str, str],
    digest: bytes,
    *,
    _points: pd.DataFrame,
    _run: Run,
) -> tuple[Floats, Floats, int]:
    told, compared = with_strength(snapshot(_run, step), _points, modalities, MOST_COMPARED)
    return told["margin"].to_numpy(np.float64), told["rank"].to_numpy(np.float64), compared


@shared
def _kept(key: Hashable, *, _work: Callable[[], Any]) -> Any:
    return _work()


@shared
def _weights(
    path: str, version: Hashable, epoch: int, which: bytes, *, _run: Run, _items: NDArray[np.int64]
) -> tuple[pd.DataFrame, str]:
    logged = step_sizes(_run) if _run.has("steps") else pd.DataFrame()
    rows = rows_of_epoch(logged, epoch, until=False)
    table = _run.table("pairs", columns=list(WEIGHT_COLUMNS), filter=rows.filter, steps=rows.span)
    return item_weights(table, _items), rows.note
