"""Hand-made snapshots for tests: as objects, as Arrow tables, as runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from uwml_core.runlog.schema import SNAPSHOTS
from uwml_core.runlog.snapshots import Snapshot, snapshots_in
from uwml_core.runlog.writer import RunLogger


def unit(vectors: Any) -> np.ndarray:
    """Rows of norm 1."""
    wide = np.asarray(vectors, dtype=np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def pair_vectors(n: int, *, dim: int = 8, noise: float = 0.5, seed: int = 0, gap: float = 0.3) -> Any:
    """Vectors of two modalities of n items, as float16 keeps them."""
    random = np.random.default_rng(seed)
    concept = random.normal(size=(n, dim))
    made = []
    for side in (-1.0, 1.0):
        shifted = concept + noise * random.normal(size=(n, dim)) + side * gap
        made.append(unit(shifted).astype(np.float16).astype(np.float64))
    return made[0], made[1]


def table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of (step, epoch, item, modality, vector, label, split) as the reader gives them."""
    names = ("step", "epoch", "item_id", "modality", "embedding", "label", "split")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    schema = SNAPSHOTS.schema(("i2t", "t2i"))
    arrays = []
    for field in schema:
        values = columns.get(field.name)
        if values is None:
            arrays.append(pa.array([0] * len(rows), field.type))
        elif field.name == "embedding":
            halves = [None if v is None else np.asarray(v, np.float16) for v in values]
            arrays.append(pa.array(halves, field.type))
        else:
            arrays.append(pa.array(list(values), field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def snapshot(
    first: Any,
    second: Any,
    *,
    labels: Sequence[int] | None = None,
    items: Sequence[int] | None = None,
    step: int = 10,
    names: tuple[str, str] = ("image", "text"),
) -> Snapshot:
    """A snapshot of two modalities, row by row one item; None leaves a modality out."""
    n = len(first if first is not None else second)
    items = list(range(n)) if items is None else list(items)
    labels = list(range(n)) if labels is None else list(labels)
    rows = [
        (step, 1, items[k], name, vectors[k], labels[k], "val" if k % 2 else "train")
        for name, vectors in zip(names, (first, second), strict=True)
        if vectors is not None
        for k in range(n)
    ]
    return snapshots_in(table(rows))[0]


def log_run(root: Path, run_id: str, snapshots: Sequence[tuple[Any, Any]], *, first_step: int = 0) -> Path:
    """A run with these snapshots, ten steps apart."""
    with RunLogger(root, run_id) as log:
        for place, (first, second) in enumerate(snapshots):
            n = len(first)
            log.log_snapshot(
                step=first_step + 10 * place,
                epoch=place,
                embeddings={"image": first, "text": second},
                item_ids=np.arange(n),
                labels=np.arange(n),
                splits=["val" if k % 2 else "train" for k in range(n)],
            )
        return log.path
