"""The largest entry of every row or column, and where it is."""

from __future__ import annotations

import torch

# Below this width torch.max with indices is as fast as the blocked search.
_BLOCKED_FROM = 512
_BLOCK = 64


def max_with_index(values: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Largest value along a dimension of a matrix, and where it is.

    Equal to ``values.max(dim)`` up to the choice among ties; on a CPU the indices are found in blocks,
    because there only ``amax`` without indices is vectorised.

    Args:
        values: ``[n, m]`` without NaN.
        dim: 0 or 1, the dimension to search.

    Returns:
        Values and int64 indices, each of the length of the other dimension.

    Example:
        >>> max_with_index(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), 0)[1].tolist()
        [1, 0]
    """
    size = values.shape[dim]
    if size < _BLOCKED_FROM or values.device.type != "cpu":
        best, index = values.max(dim)
        return best, index
    blocks = torch.stack([block.amax(dim) for block in torch.split(values, _BLOCK, dim)])
    best, block = blocks.max(0)
    inside = torch.arange(_BLOCK, device=values.device)
    candidates = (block[:, None] * _BLOCK + inside).clamp_(max=size - 1)
    found = values.gather(1, candidates) if dim == 1 else values.gather(0, candidates.T).T
    return best, (block * _BLOCK + found.argmax(1)).clamp_(max=size - 1)
