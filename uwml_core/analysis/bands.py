"""Four bands of margin, from misaligned to easy; the edges never move."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.i18n import _

BAND_EDGES = (0.0, 0.05, 0.25)
BAND_NAMES = ("misaligned", "hard", "informative", "easy")


def band_of(margin: np.ndarray) -> np.ndarray:
    """Band of each margin: misaligned below 0, hard below 0.05, informative below 0.25, easy above.

    An edge belongs to the band above it. Edges are compared in the precision of the margins, so a
    logged 0.05 is informative.

    Args:
        margin: float array of any shape, cosine units.

    Returns:
        int8 array of the shape of ``margin``, index into ``BAND_NAMES``; −1 where the margin is NaN.

    Example:
        >>> band_of(np.array([-0.1, 0.0, 0.05, 0.25, np.nan])).tolist()
        [0, 1, 2, 3, -1]
    """
    band = np.zeros(margin.shape, dtype=np.int8)
    for edge in BAND_EDGES:
        band += margin >= np.asarray(edge, dtype=margin.dtype)
    band[np.isnan(margin)] = -1
    return band


def band_label(name: str) -> str:
    """Name of a band in the reader's language.

    Raises:
        ValueError: if there is no such band.
    """
    labels = {
        "misaligned": _("misaligned"),
        "hard": _("hard"),
        "informative": _("informative"),
        "easy": _("easy"),
    }
    if name not in labels:
        raise ValueError(f"name={name!r} is no band; choose one of {', '.join(BAND_NAMES)}")
    return labels[name]


def bands_frame() -> pd.DataFrame:
    """The bands as a frame ``[band, label, low, high]``; the outer bounds are infinite."""
    return pd.DataFrame(
        {
            "band": BAND_NAMES,
            "label": [band_label(name) for name in BAND_NAMES],
            "low": [-np.inf, *BAND_EDGES],
            "high": [*BAND_EDGES, np.inf],
        }
    )
