"""Pictures that are decoded when a batch asks for them: of very many, not all fit in memory.

Shapes: n rows asked for, F frames of a clip, S picture size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data.errors import DataError
from uwml_core.data.pictures import scaled

_THREADS = 2
T = TypeVar("T")


class StreamedPictures:
    """Pictures of a data set's rows, decoded anew at each call.

    Args:
        name: file or set, for messages.
        keys: the data's own name of each row.
        encoded: encoded frames of each row; equally many in all of them.
        clips: whether a row is a clip, of one frame or more.
    """

    def __init__(
        self, name: str, keys: Sequence[str], encoded: Sequence[Sequence[bytes]], *, clips: bool
    ) -> None:
        self._name, self._keys, self._encoded, self._clips = name, keys, encoded, clips

    def take(self, rows: npt.NDArray[np.int64]) -> torch.Tensor:
        """Some rows at ``PICTURE_SIZE``, uint8 ``[n, 3, S, S]``, clips ``[n, F, 3, S, S]``.

        Raises:
            DataError: naming the first picture that cannot be decoded.
        """
        pixels = torch.from_numpy(np.stack(self.each(rows, lambda frames: np.stack([*map(scaled, frames)]))))
        pixels = pixels.permute(0, 1, 4, 2, 3).contiguous()
        return pixels if self._clips else pixels[:, 0]

    def each(self, rows: npt.NDArray[np.int64], made: Callable[[Sequence[bytes]], T]) -> list[T]:
        """What a function makes of the encoded frames of each row, in two threads.

        Raises:
            DataError: naming the row that cannot be read or decoded.
        """

        def of(row: int) -> T:
            try:
                return made(self._encoded[row])
            except (OSError, ValueError) as error:
                problem = f"picture of {self._keys[row][:80]!r} cannot be used ({error})"
                remedy = "uwml inspect-data names all such: take them out of the list"
                raise DataError(self._name, f"{problem}; {remedy}") from error

        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(of, rows.tolist()))
