"""Find items by what their captions say."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def items_saying(items: pd.DataFrame | None, text: str) -> NDArray[np.int64]:
    """Items one of whose captions, or whose key, contains a text, whatever its case.

    Args:
        items: frame of the table ``items``; None where they were not logged.
        text: what to look for; blank finds nothing.

    Returns:
        Their ids, ascending.
    """
    wanted = text.strip().casefold()
    if items is None or not wanted:
        return np.empty(0, np.int64)
    keys, said = items["item_key"].to_numpy(object), items["captions"].to_numpy(object)
    found = [
        any(wanted in str(part).casefold() for part in (key, *(() if captions is None else captions)))
        for key, captions in zip(keys, said, strict=True)
    ]
    return np.unique(items.loc[found, "item_id"].to_numpy(np.int64))
