"""Sums without rounding error, so that a sliding mean equals the one that adds up its window anew."""

from __future__ import annotations

from itertools import accumulate
from operator import lshift

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MANTISSA_BITS = 53
# Bits of the lower of two machine words that hold a sum; so many low words as ``_MOST`` add up in one.
_LOW_BITS = 40
_MOST = 1 << 22
# Scaling a smaller sum back could round it a second time.
_LOWEST_EXPONENT = -900


class RunningSums:
    """Exact sums over stretches of a series, each rounded once, as ``math.fsum`` rounds.

    Every value is a whole multiple of one power of 2. Two machine words each hold these multiples where the
    values are of similar size, as gaps are; Python's integers hold any.

    Args:
        values: finite numbers ``[n]``, float64.

    Example:
        >>> RunningSums(np.array([1e16, 1.0, -1e16])).over([0, 1], [3, 3]).tolist()
        [1.0, -1e+16]
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
        whole = np.ldexp(mantissa, _MANTISSA_BITS).astype(np.int64)
        self._lowest = int(exponent[whole != 0].min(initial=_MANTISSA_BITS))
        shift = np.where(whole != 0, exponent - self._lowest, 0).astype(np.int64)
        widest = _MANTISSA_BITS + int(shift.max(initial=0)) + len(shift).bit_length()
        fits = widest - _LOW_BITS < 63 and len(shift) < _MOST and self._lowest > _LOWEST_EXPONENT
        self._words = _words(whole, shift) if fits and shift.max(initial=0) <= _LOW_BITS else None
        self._sums: list[int] = []
        if self._words is None:
            self._sums = list(accumulate(map(lshift, whole.tolist(), shift.tolist()), initial=0))

    def over(self, start: ArrayLike, stop: ArrayLike) -> NDArray[np.float64]:
        """Sums of ``values[start:stop]``, correctly rounded; 0 where a stretch is empty.

        Args:
            start, stop: bounds of each stretch, of one shape.

        Raises:
            OverflowError: if a sum is beyond the largest float.
        """
        begin, end = np.asarray(start, np.int64), np.asarray(stop, np.int64)
        if self._words is None:
            whole = [self._sums[b] - self._sums[a] for a, b in zip(begin.flat, end.flat, strict=True)]
            return np.array([self._quotient(value) for value in whole], np.float64).reshape(begin.shape)
        high, low = (word[end] - word[begin] for word in self._words)
        high, low = high + (low >> _LOW_BITS), low & ((1 << _LOW_BITS) - 1)
        # both words are floats without rounding, so that adding them rounds once
        total = np.ldexp(high.astype(np.float64), _LOW_BITS) + low.astype(np.float64)
        sums = np.asarray(np.ldexp(total, self._lowest - _MANTISSA_BITS))
        for place in np.argwhere(np.abs(high) > 1 << _MANTISSA_BITS):
            at = tuple(place)
            sums[at] = self._quotient((int(high[at]) << _LOW_BITS) + int(low[at]))
        return sums

    def _quotient(self, whole: int) -> float:
        # a quotient of integers is correctly rounded
        return whole / (1 << (_MANTISSA_BITS - self._lowest))


def _words(whole: NDArray[np.int64], shift: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Running sums of the upper and of the lower bits of ``whole << shift``, from 0 on."""
    high = whole >> (_LOW_BITS - shift)
    low = (whole & ((1 << (_LOW_BITS - shift)) - 1)) << shift
    return tuple(np.concatenate([[0], np.cumsum(word)]) for word in (high, low))  # type: ignore[return-value]
