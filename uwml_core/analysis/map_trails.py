"""The way of chosen items over the map, from snapshot to snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

TRAIL_COLUMNS = ("item_id", "modality", "step", "x", "y", "phase")


def trails(
    layout: pd.DataFrame, item_ids: Sequence[int], until: int, phases: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Places of items up to a snapshot.

    Args:
        layout: frame ``[step, item_id, modality, x, y]`` of several snapshots.
        item_ids: whose way is told.
        until: step of the last snapshot that is looked at.
        phases: frame of ``phase_bands``; None where phases were not logged.

    Returns:
        Frame ``[item_id, modality, step, x, y, phase]``, each item's way in order of steps; ``phase`` is an
        empty text where it is not known. Places that are not finite are left out.
    """
    wanted = layout["item_id"].isin(list(item_ids)) & (layout["step"] <= until)
    mine = layout.loc[wanted, ["item_id", "modality", "step", "x", "y"]].astype({"modality": object})
    mine = mine[np.isfinite(mine["x"]) & np.isfinite(mine["y"])]
    mine = mine.sort_values(["item_id", "modality", "step"], kind="stable", ignore_index=True)
    steps = mine["step"].tolist()
    # many places, few snapshots
    phase = {step: phase_at(phases, step) for step in set(steps)}
    told: pd.DataFrame = mine.assign(phase=[phase[step] for step in steps])
    return told


def phase_at(phases: pd.DataFrame | None, step: int) -> str:
    """Phase of training that a step belongs to; empty where it is not known.

    Args:
        phases: frame ``[phase, first_step, last_step]``.
        step: the step; before the first step there is no phase.
    """
    if phases is None or phases.empty:
        return ""
    found = phases[(phases["first_step"] <= step) & (step <= phases["last_step"])]
    return str(found["phase"].iloc[-1]) if len(found) else ""
