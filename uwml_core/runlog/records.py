"""What the training thread hands to the writer thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class StepRecord:
    """One optimizer step, read in the writer thread.

    ``last`` and tensors are kept by reference. ``item_ids`` are whole numbers ``[batch]`` as ``arrays.kept``
    keeps them, ``captions``, too, or None.
    """

    step: int
    epoch: int | None
    phase: str | None
    time: int
    elapsed_s: float
    step_time_ms: Any
    telemetry_time_ms: float | None
    last: Any
    item_ids: Any
    captions: Any
    scalars: dict[str, Any]


@dataclass(slots=True)
class EventRecord:
    """One event; ``time`` in microseconds since 1970 UTC, ``data`` as JSON."""

    time: int
    step: int
    level: str
    kind: str
    message: str
    data: str | None


@dataclass(slots=True)
class RowsRecord:
    """Rows of evals or ranks, as columns of equal length; None is null."""

    table: str
    columns: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class SnapshotRecord:
    """One snapshot: per modality an array ``[n, dim]`` of float16, and n ids, labels and splits."""

    step: int
    epoch: int | None
    embeddings: dict[str, NDArray[np.float16]]
    item_ids: NDArray[np.int32]
    labels: NDArray[np.int32]
    splits: list[str]


@dataclass(slots=True)
class NeighborsRecord:
    """Nearest wrong candidates at one snapshot: n ids and splits, and columns of equal length.

    ``values["row"]`` is the position among the ids, ``values["direction"]`` that of the direction.
    """

    step: int
    epoch: int | None
    caption: int
    item_ids: NDArray[np.int32]
    splits: list[str]
    values: dict[str, NDArray[Any]]


Record = StepRecord | EventRecord | RowsRecord | SnapshotRecord | NeighborsRecord
