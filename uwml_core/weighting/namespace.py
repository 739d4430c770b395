"""Which array library a function shall compute with."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def namespace_of(array: Any) -> Any:
    """The array API of the library that an array is from.

    Args:
        array: NumPy array, torch tensor, or of another library that ``array_api_compat`` knows.

    Example:
        >>> import numpy as np
        >>> namespace_of(np.zeros(2)).__name__
        'array_api_compat.numpy'
    """
    if type(array).__module__.partition(".")[0] == "torch":
        # array_namespace keeps a cache, which a compiler of torch code warns of
        from array_api_compat import torch

        return torch
    return array_namespace(array)
