"""What must be known of a snapshot before its map is read: what is missing, left out, or not comparable."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.map_headline import epoch_name
from uwml_core.analysis.text import listed, modality_name
from uwml_core.i18n import _, ngettext
from uwml_core.runlog.snapshots import Snapshot


def snapshot_statements(
    snapshot: Snapshot, before: Snapshot | None, modalities: tuple[str, str]
) -> list[str]:
    """Sentences about a snapshot whose map cannot be read like any other; none for a common one.

    Args:
        snapshot: the one that is shown.
        before: the one before it; None for the first.
        modalities: names of both.
    """
    told = [_left_out(snapshot), _missing(snapshot, modalities), _alone(snapshot), _equal(snapshot)]
    if before is not None and len(before.item_ids) and len(snapshot.item_ids):
        told += [_dimension(snapshot, before), _other_items(snapshot, before)]
    return [text for text in told if text]


def _left_out(snapshot: Snapshot) -> str:
    if not snapshot.left_out:
        return ""
    if not len(snapshot.item_ids):
        return _("No row of this snapshot has a usable vector: all hold NaN or Inf, are zero, or missing.")
    text = ngettext(
        "{n} of {total} rows is left out: a vector with NaN or Inf, of another length, or logged twice.",
        "{n} of {total} rows are left out: vectors with NaN or Inf, of another length, or logged twice.",
        snapshot.left_out,
    )
    total = snapshot.left_out + len(snapshot.item_ids)
    return text.format(n=f"{snapshot.left_out:,}", total=f"{total:,}")


def _missing(snapshot: Snapshot, modalities: tuple[str, str]) -> str:
    names = [modality_name(name) for name in modalities if not len(snapshot.rows(name))]
    if not names or not len(snapshot.item_ids):
        return ""
    text = _("This snapshot has no point of {modality}: there is no gap, no margin and no neighbor across.")
    return text.format(modality=listed(names))


def _alone(snapshot: Snapshot) -> str:
    items = snapshot.item_ids
    told = _("This snapshot holds a single item: it has no neighbors, and its place says nothing.")
    return told if len(items) and (items == items[0]).all() else ""


def _equal(snapshot: Snapshot) -> str:
    vectors = snapshot.vectors
    # most often two of them tell
    if len(vectors) < 2 or any(float(np.ptp(some, axis=0).max()) > 1e-6 for some in (vectors[:2], vectors)):
        return ""
    return _("All vectors of this snapshot are equal: every place on the map says nothing.")


def _dimension(snapshot: Snapshot, before: Snapshot) -> str:
    here, there = snapshot.vectors.shape[1], before.vectors.shape[1]
    if here == there:
        return ""
    text = _(
        "The vectors have {here} numbers, in {moment} they had {there}: the spaces differ, and ways between "
        "these snapshots mean nothing."
    )
    moment = epoch_name(before.step, before.epoch)
    return text.format(here=f"{here:,}", moment=moment, there=f"{there:,}")


def _other_items(snapshot: Snapshot, before: Snapshot) -> str:
    if np.array_equal(snapshot.item_ids, before.item_ids):
        return ""
    here, there = np.unique(snapshot.item_ids), np.unique(before.item_ids)
    kept = len(np.intersect1d(here, there, assume_unique=True))
    if kept == len(here) == len(there):
        return ""
    text = _(
        "Other items than in {moment} ({kept} stayed, {new} new, {gone} gone): measures over epochs compare "
        "different items."
    )
    moment = epoch_name(before.step, before.epoch)
    return text.format(
        moment=moment, kept=f"{kept:,}", new=f"{len(here) - kept:,}", gone=f"{len(there) - kept:,}"
    )
