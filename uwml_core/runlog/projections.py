"""Layouts of a run's snapshots: one file per key, in the run or, where that is read-only, in the cache."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from uwml_core.runlog import columns
from uwml_core.runlog.cache_folder import cache_folder, named
from uwml_core.runlog.parts import write_parquet
from uwml_core.runlog.projection_facts import FACTS, ProjectionFacts, facts_json
from uwml_core.runlog.schema import PROJECTIONS

_PARAMETERS = b"uwml_projection"
_KEY = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacedSnapshot:
    """Where the points of one snapshot lie.

    Attributes:
        step, epoch: of the snapshot.
        item_ids: int64 ``[n]``.
        modality: text ``[n]``.
        places: float32 ``[n, 2]``.
    """

    step: int
    epoch: int | None
    item_ids: NDArray[np.int64]
    modality: NDArray[np.object_]
    places: NDArray[np.float32]


def projection_folders(run: Path) -> tuple[Path, Path]:
    """Where a run's layouts may lie: in the run, and in the user's cache for a run that is read-only."""
    # two runs of one name in different folders are different runs
    return run / PROJECTIONS.name, cache_folder() / PROJECTIONS.name / named(str(run.absolute()), run.name)


def writable_folder(run: Path) -> Path:
    """The folder to write layouts into, made when missing.

    Raises:
        OSError: if neither the run nor the cache can be written.
    """
    own, cache = projection_folders(run)
    with contextlib.suppress(OSError):
        own.mkdir(exist_ok=True)
    # a mode bit says nothing about a read-only file system; access() asks it
    if own.is_dir() and os.access(own, os.W_OK | os.X_OK):
        return own
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def projection_path(folder: Path, key: str) -> Path:
    """File of a key.

    Raises:
        ValueError: if the key is none.
    """
    if not _KEY.fullmatch(key):
        raise ValueError(f"key={key!r} is no key; expected 8 to 64 hex digits")
    return folder / f"{key}.parquet"


def find_projection(run: Path, key: str) -> Path | None:
    """The file of a key, in the run or in the cache; None where it was not computed."""
    paths = [projection_path(folder, key) for folder in projection_folders(run)]
    return next((path for path in paths if path.is_file()), None)


def any_projection(run: Path) -> bool:
    """Whether there is any layout of the run; asks for no key, for which all snapshots are digested."""
    return any(next(folder.glob("*.parquet"), None) is not None for folder in projection_folders(run))


def write_projection(
    path: Path,
    snapshots: Sequence[PlacedSnapshot],
    parameters: Mapping[str, Any],
    facts: ProjectionFacts | None = None,
) -> None:
    """Write a layout; a reader sees all of it or nothing.

    Args:
        path: from ``projection_path``.
        snapshots: in order; those without a point leave no row.
        parameters: what made it, kept in the file's metadata.
        facts: what else is known of it, kept there too and read by ``read_facts``.

    Raises:
        OSError: if the folder, the space or the permission is missing; nothing is left behind then.
    """
    sizes = np.array([len(snapshot.item_ids) for snapshot in snapshots], np.int64)
    places = np.concatenate([np.empty((0, 2), np.float32), *(snapshot.places for snapshot in snapshots)])
    names = [str(name) for snapshot in snapshots for name in snapshot.modality]
    known = np.repeat(np.array([snapshot.epoch is not None for snapshot in snapshots], bool), sizes)
    epochs = np.repeat(np.array([snapshot.epoch or 0 for snapshot in snapshots], np.int64), sizes)
    steps = np.repeat(np.array([snapshot.step for snapshot in snapshots], np.int64), sizes)
    items = np.concatenate([np.empty(0, np.int64), *(snapshot.item_ids for snapshot in snapshots)])
    schema = PROJECTIONS.schema(("", ""))
    built = {
        "step": columns.numbers(steps, pa.int64()),
        "epoch": columns.numbers(epochs, pa.int32(), known),
        "item_id": columns.numbers(items, pa.int32()),
        "modality": columns.column(names, schema.field("modality").type),
        "x": columns.numbers(places[:, 0], pa.float32()),
        "y": columns.numbers(places[:, 1], pa.float32()),
    }
    table = columns.table(built, schema)
    metadata = {**(table.schema.metadata or {}), _PARAMETERS: json.dumps(dict(parameters)).encode()}
    metadata |= {} if facts is None else {FACTS: facts_json(facts)}
    write_parquet(table.replace_schema_metadata(metadata), path, PROJECTIONS)


def read_projection(path: Path) -> pd.DataFrame | None:
    """Frame ``[step, epoch, item_id, modality, x, y]`` of a layout; None where the file cannot be read."""
    try:
        table = pq.read_table(path, columns=[column.name for column in PROJECTIONS.columns])
    except (OSError, pa.ArrowException):
        return None
    frame: pd.DataFrame = table.to_pandas()
    return frame


def read_parameters(path: Path) -> dict[str, Any]:
    """Parameters that made a layout; empty where the file does not say.

    Raises:
        OSError: if the file cannot be read.
    """
    metadata = pq.read_schema(path).metadata or {}
    values = json.loads(metadata.get(_PARAMETERS, b"{}"))
    return values if isinstance(values, dict) else {}


def to_frame(snapshots: Sequence[PlacedSnapshot]) -> pd.DataFrame:
    """Layouts that were not written, as ``read_projection`` gives those that were."""
    frames = [
        pd.DataFrame(
            {
                "step": np.full(len(placed.item_ids), placed.step, np.int64),
                "epoch": _epochs(placed.epoch, len(placed.item_ids)),
                "item_id": placed.item_ids.astype(np.int32),
                "modality": pd.Categorical(placed.modality),
                "x": placed.places[:, 0],
                "y": placed.places[:, 1],
            }
        )
        for placed in snapshots
    ]
    if not frames:
        return pd.DataFrame({column.name: [] for column in PROJECTIONS.columns})
    return pd.concat(frames, ignore_index=True)


def _epochs(epoch: int | None, n: int) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(np.full(n, epoch or 0, np.int32), np.full(n, epoch is None))


def placed_snapshots(frame: pd.DataFrame) -> list[PlacedSnapshot]:
    """A frame of ``read_projection`` snapshot by snapshot."""
    steps = np.unique(frame["step"].to_numpy(np.int64))
    return [_placed(int(step), frame[frame["step"] == step]) for step in steps]


def _placed(step: int, rows: pd.DataFrame) -> PlacedSnapshot:
    epoch = rows["epoch"].iloc[0]
    return PlacedSnapshot(
        step=step,
        epoch=None if pd.isna(epoch) else int(epoch),
        item_ids=rows["item_id"].to_numpy(np.int64),
        modality=rows["modality"].astype(object).to_numpy(),
        places=rows[["x", "y"]].to_numpy(np.float32),
    )
