"""A run's steps from arrays: a million of them in a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from uwml_core.runlog.parts import part_name, write_parquet
from uwml_core.runlog.schema import STEPS, schema

DIRECTIONS = ("i2t", "t2i")
PER_PART = 250_000


def write_steps(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Write part files of the table ``steps``.

    Args:
        path: folder of the run.
        columns: values by column, ``step`` among them.
    """
    types = schema("steps", DIRECTIONS)
    fields = [types.field(name) for name in columns]
    table = pa.table(
        [pa.array(values).cast(field.type) for field, values in zip(fields, columns.values(), strict=True)],
        schema=pa.schema(fields, metadata=types.metadata),
    )
    (path / "steps").mkdir(exist_ok=True)
    for first in range(0, table.num_rows, PER_PART):
        part = table.slice(first, PER_PART)
        write_parquet(part, path / "steps" / part_name(0, first, first + part.num_rows - 1), STEPS)
