"""The fixed sample of items whose embeddings are kept at every snapshot."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from uwml_core.data import CaptionedItems
from uwml_core.data.sampling import SAMPLE, random_bits

PROBES_PER_SPLIT = 1000
# One constant, not the run's seed: runs that differ in their seed then show the same items.
_SEED = 0

Ints = npt.NDArray[np.int64]


def probe_rows(dataset: CaptionedItems, rows: Ints, size: int = PROBES_PER_SPLIT) -> Ints:
    """Up to ``size`` of these rows, each group in proportion, the same at every call.

    Args:
        dataset: the data.
        rows: int64 [n], rows of one split.
        size: rows wanted.

    Returns:
        int64 [min(size, n)], ascending.
    """
    bits = random_bits(_SEED, SAMPLE, 0, rows)
    groups = np.unique([dataset.groups[row] for row in rows], return_inverse=True)[1]
    by_group = np.lexsort((bits, groups))
    sorted_groups = groups[by_group]
    counts = np.bincount(groups)
    starts = np.cumsum(counts) - counts
    place = np.arange(len(rows)) - starts[sorted_groups]
    # The first k of n places of a group lie below k / n, so a common threshold takes equal shares.
    quantile = (place + 0.5) / counts[sorted_groups]
    chosen = by_group[np.lexsort((bits[by_group], quantile))[:size]]
    return np.sort(rows[chosen])
