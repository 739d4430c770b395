"""What the readers of ``logger_peers`` need where a package cannot read its own files offline."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.loggers import ARRAYS, SCALARS, Columns


def by_step(sparse: tuple[list[int], list[Any]]) -> list[Any]:
    return [value for _step, value in sorted(zip(*sparse, strict=True), key=lambda pair: pair[0])]


def rows_to_columns(rows: list[dict[str, Any]]) -> Columns:
    # a histogram is a mapping; its values are gone, so there is nothing to compare
    names = [
        name for name in (*SCALARS, *ARRAYS) if all(isinstance(row.get(name), float | list) for row in rows)
    ]
    return {name: np.array([row[name] for row in rows]) for name in names}


def level_db(content: bytes) -> Iterator[bytes]:
    """Records of a log in LevelDB's format, behind wandb's own 7 bytes."""
    block, head, position, parts = 32768, 7, 7, b""
    while position + head <= len(content):
        left = block - position % block
        if left < head:
            position += left
            continue
        length, kind = struct.unpack_from("<HB", content, position + 4)
        position += head
        parts += content[position : position + length]
        position += length
        # whole or last
        if kind in (1, 4):
            yield parts
            parts = b""
