"""What is known of a layout beside its places: how much is noise, what became of each snapshot."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FACTS = b"uwml_projection_facts"
"""Metadata key of a layout's file."""

OUTCOMES = ("start", "moved", "still", "new", "few", "same", "empty", "axes", "other_size")
"""What can become of a snapshot, see ``SnapshotFacts``."""


@dataclass(frozen=True, kw_only=True)
class SnapshotFacts:
    """What became of one snapshot.

    Attributes:
        step, epoch: of the snapshot.
        outcome: ``start``, the first layout; ``moved``, carried on from the one before; ``still``, no point
            moved in the data, so none did on the map; ``new``, no point has a place in the layout before;
            ``few``, fewer than five points, in their principal components; ``same``, all vectors are equal,
            so all points lie in one place; ``empty``, no vector can be used; ``axes``, laid along common
            principal components; ``other_size``, left out there, as its vectors have another size.
        points: points laid out.
        left_out: rows of the snapshot without a usable vector.
        new: points that had no place in the layout before.
        missing: modalities that the layout before has and this one lacks.
        dimension: size of the vectors, 0 where there is none.
        dimension_before: size of those of the layout before.
        data_motion: median way in the data since the layout before, as a share of the distance to the
            neighbors, a turn of the whole space being none; None where there is no layout before.
        map_motion: median way on the map, as a share of the map's radius; None likewise.
    """

    step: int
    epoch: int | None
    outcome: str
    points: int
    left_out: int = 0
    new: int = 0
    missing: tuple[str, ...] = ()
    dimension: int = 0
    dimension_before: int | None = None
    data_motion: float | None = None
    map_motion: float | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the next layout goes on from this one."""
        return self.outcome in ("start", "moved", "still", "new")


@dataclass(frozen=True, kw_only=True)
class ProjectionFacts:
    """What is known of a layout.

    Attributes:
        noise_floor: median way on the map, as a share of its radius (RMS distance from the middle), of points
            that moved by a twentieth of the distance to their neighbors: the newest snapshot laid out once
            more with that jitter. Motion below it means nothing. None where it was not measured.
        items: items on the map where they are a sample of more; None where all are shown.
        items_of: items of the newest snapshot.
        stratified_by: ``group`` or ``split``, what the sample keeps the shares of; empty without a sample.
        snapshots: one per snapshot, by step, those without a point among them.
    """

    noise_floor: float | None = None
    items: int | None = None
    items_of: int = 0
    stratified_by: str = ""
    snapshots: tuple[SnapshotFacts, ...] = ()


def facts_json(facts: ProjectionFacts) -> bytes:
    """The facts as they stand in a file's metadata."""
    return json.dumps(dataclasses.asdict(facts)).encode()


def read_facts(path: Path) -> ProjectionFacts | None:
    """Facts of a layout's file; None where it does not say them or cannot be read."""
    try:
        values = json.loads((pq.read_schema(path).metadata or {})[FACTS])
        snapshots = tuple(
            SnapshotFacts(**{**one, "missing": tuple(one["missing"])}) for one in values.pop("snapshots")
        )
        return ProjectionFacts(snapshots=snapshots, **values)
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError, AttributeError):
        return None
