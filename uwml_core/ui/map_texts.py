"""What the items of a map say: their keys, captions and groups, read once for the same items."""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from uwml_core.analysis.hard_negatives.rows import rows_of_items
from uwml_core.analysis.map_points import describe_items
from uwml_core.runlog.reader import Run
from uwml_core.ui.shared import shared

_TEXTS = ("item_id", "item_key", "group", "captions")


def texts_of(run: Run, item_ids: NDArray[np.int64]) -> pd.DataFrame | None:
    """Some of the run's items, without pictures, which are ten times as many bytes."""
    return _texts(*_named(run, item_ids), _run=run, _items=item_ids)


def captions_of(run: Run, item_ids: NDArray[np.int64]) -> pd.DataFrame | None:
    """What ``describe_items`` tells of them; None where items were not logged."""
    return _captions(*_named(run, item_ids), _run=run, _items=item_ids)


def _named(run: Run, item_ids: NDArray[np.int64]) -> tuple[str, Hashable, bytes]:
    # the snapshots of a run are mostly of the same items
    known = (run.info.get("data_fingerprint"), run.has("items"))
    return str(run.path), known, blake2b(item_ids.tobytes(), digest_size=16).digest()


@shared
def _texts(
    path: str, known: Hashable, which: bytes, *, _run: Run, _items: NDArray[np.int64]
) -> pd.DataFrame | None:
    return _run.items(columns=_TEXTS, filter=rows_of_items(_items))


@shared
def _captions(
    path: str, known: Hashable, which: bytes, *, _run: Run, _items: NDArray[np.int64]
) -> pd.DataFrame | None:
    told = texts_of(_run, _items)
    return None if told is None else describe_items(_items, told)
