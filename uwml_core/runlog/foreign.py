"""What can be told about a run without a run.json of ours, from the columns of its files."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uwml_core.runlog.cache import BoundedCache
from uwml_core.runlog.listing import Part

DEFAULT = ("i2t", "t2i")

_DIRECTION = re.compile(r"([a-z])2([a-z])")
_WIDE = re.compile(r"(?:loss|gap|direction_weight|ess|accuracy)_(([a-z])2([a-z]))")
_MODALITIES = {"a": "audio", "i": "image", "t": "text", "v": "video"}

_found: BoundedCache[tuple[str, str]] = BoundedCache(1024)


def guess_directions(parts: Iterable[Part]) -> tuple[str, str]:
    """Names of the directions in the first part that has any; ``DEFAULT`` where none has."""
    for part in parts:
        known = _found.get(part.key)
        if known is None:
            known = _directions_in(part)
            if known is None:
                continue
            _found.put(part.key, known)
        return known
    return DEFAULT


def _directions_in(part: Part) -> tuple[str, str] | None:
    try:
        names = pq.read_schema(part.path).names
        wide = [match[1] for match in map(_WIDE.fullmatch, names) if match]
        values = wide or (_direction_values(part) if "direction" in names else [])
    except (OSError, pa.ArrowException):
        return None
    matches = [match for match in map(_DIRECTION.fullmatch, values) if match]
    return (matches[0][0], f"{matches[0][2]}2{matches[0][1]}") if matches else None


def _direction_values(part: Part) -> list[str]:
    column = pq.read_table(part.path, columns=["direction"])["direction"]
    return [value for value in pc.unique(column).to_pylist() if isinstance(value, str)]


def guess_modalities(directions: tuple[str, str]) -> tuple[str, str]:
    """Names of the modalities from the letters of the directions.

    Example:
        >>> guess_modalities(("v2t", "t2v"))
        ('video', 'text')
    """
    first, second = (_MODALITIES.get(direction[:1], direction[:1]) for direction in directions)
    return first, second
