"""Numbers that are not finite: counted and told, never dropped in silence."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.text import listed
from uwml_core.i18n import ngettext


def count_nonfinite(frame: pd.DataFrame) -> pd.DataFrame:
    """Count NaN and infinite values of each float column.

    A column without any value was not logged and is left out; within a logged column a null counts as
    NaN, because a frame cannot tell them apart.

    Args:
        frame: any frame; columns that are not floats are ignored.

    Returns:
        Frame ``[column, nan, inf]``, one row per column that has some.

    Example:
        >>> count_nonfinite(pd.DataFrame({"loss": [1.0, float("nan"), float("inf")]})).values.tolist()
        [['loss', 1, 1]]
    """
    rows = []
    for name in frame.columns:
        if frame[name].dtype.kind != "f":
            continue
        values = frame[name].to_numpy()
        nan, inf = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        if (nan or inf) and nan < len(values):
            rows.append((str(name), nan, inf))
    return pd.DataFrame(rows, columns=["column", "nan", "inf"])


def nonfinite_note(frame: pd.DataFrame) -> str:
    """One sentence that counts the values that are not finite; empty when all are."""
    counts = count_nonfinite(frame)
    if counts.empty:
        return ""
    each = counts["nan"] + counts["inf"]
    named = listed(f"{name} {n:,}" for name, n in zip(counts["column"], each, strict=True))
    total = int(each.sum())
    return ngettext(
        "{total} value is not finite and left out of ranges and means ({named}).",
        "{total} values are not finite and left out of ranges and means ({named}).",
        total,
    ).format(total=f"{total:,}", named=named)


def split_finite(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row indices of the finite and of the other values, each in order.

    Args:
        values: float array ``[n]``.

    Returns:
        Two int64 arrays that together hold 0 .. n - 1.

    Example:
        >>> [rows.tolist() for rows in split_finite(np.array([1.0, np.nan, 2.0, -np.inf]))]
        [[0, 2], [1, 3]]
    """
    finite = np.isfinite(values)
    if finite.all():
        return np.arange(len(values)), np.empty(0, np.int64)
    return np.flatnonzero(finite), np.flatnonzero(~finite)


def marked(count: int) -> str:
    """How many values that are not finite a chart marks at its edge; empty for none."""
    if not count:
        return ""
    return ngettext(
        "{count} value is not finite, marked at the edge",
        "{count} values are not finite, marked at the edge",
        count,
    ).format(count=f"{count:,}")
