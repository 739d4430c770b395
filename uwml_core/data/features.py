"""Precomputed features that stand for pictures: rows of .npy files, read when they are asked for.

Shapes: N items, R regions, D numbers of a feature.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]


class FeatureRows:
    """Rows of memory-mapped arrays; the regions of a row are averaged.

    Args:
        files: arrays ``[rows, D]`` or ``[rows, R, D]``, equal but for the rows.
        rows: int64 ``[N]``, row of each item in the files one after the other.

    Raises:
        ValueError: if the files differ in more than their rows, or a row does not exist.
    """

    def __init__(self, files: Sequence[Floats], rows: Ints) -> None:
        shapes = {array.shape[1:] for array in files}
        if len(shapes) != 1 or len(next(iter(shapes))) not in (1, 2):
            found = ", ".join(str(list(array.shape)) for array in files)
            raise ValueError(f"features have shapes {found}; expected [rows, D] or [rows, regions, D] in all")
        self._files = list(files)
        self._starts = np.cumsum([0, *(len(array) for array in files)])
        if len(rows) and not 0 <= rows.min() <= rows.max() < self._starts[-1]:
            raise ValueError(f"feature row {rows.max()} does not exist; there are {self._starts[-1]}")
        self._rows = np.asarray(rows, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size(self) -> int:
        """Numbers of a feature, D."""
        return int(self._files[0].shape[-1])

    @property
    def regions(self) -> int:
        """Regions that are averaged, 1 where there are none."""
        return int(self._files[0].shape[1]) if self._files[0].ndim == 3 else 1

    def take(self, items: Ints) -> npt.NDArray[np.float32]:
        """Features of some items, float32 ``[n, D]``."""
        taken = np.empty((len(items), self.size), np.float32)
        rows = self._rows[items]
        file_of = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(file_of):
            here = np.flatnonzero(file_of == number)
            # in the order of the file: a memory map is read from front to back
            here = here[np.argsort(rows[here], kind="stable")]
            values = self._files[number][rows[here] - self._starts[number]]
            taken[here] = values if values.ndim == 2 else values.mean(axis=1, dtype=np.float32)
        return taken

    def chosen(self, items: Ints) -> FeatureRows:
        """The same for some of the items."""
        return FeatureRows(self._files, self._rows[items])

    def digest(self, item: int) -> bytes:
        """SHA-256 of what is stored for an item."""
        row = int(self._rows[item])
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return hashlib.sha256(self._files[number][row - self._starts[number]].tobytes()).digest()
