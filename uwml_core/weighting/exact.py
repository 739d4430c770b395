"""Sums without rounding error, so that a sliding mean equals the one that adds up its window anew."""

from __future__ import annotations

from itertools import accumulate
from operator import lshift

import numpy as np

_MANTISSA_BITS = 53


class RunningSums:
    """Exact sums over stretches of a series, each rounded once, as ``math.fsum`` rounds.

    Args:
        values: finite numbers ``[n]``, float64.

    Example:
        >>> RunningSums(np.array([1e16, 1.0, -1e16])).over(0, 3)
        1.0
    """

    def __init__(self, values: np.ndarray) -> None:
        mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
        whole = np.ldexp(mantissa, _MANTISSA_BITS).astype(np.int64)
        lowest = int(exponent.min(initial=_MANTISSA_BITS))
        # Every value is a whole multiple of 2 ** (lowest - 53); Python's integers add them exactly.
        shifts = (exponent - lowest).tolist()
        self._sums: list[int] = list(accumulate(map(lshift, whole.tolist(), shifts), initial=0))
        self._per_unit: int = 1 << (_MANTISSA_BITS - lowest)

    def over(self, start: int, stop: int) -> float:
        """Sum of ``values[start:stop]``, correctly rounded; 0 where it is empty.

        Raises:
            OverflowError: if the sum is beyond the largest float.
        """
        # A quotient of integers is correctly rounded.
        return (self._sums[stop] - self._sums[start]) / self._per_unit
