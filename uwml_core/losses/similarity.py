"""From features and labels to similarities and masks."""

from __future__ import annotations

import torch

# Norms outside this range lose digits when their squares are summed in float32.
NORM_RANGE = (1e-15, 1e15)
# Outside that range, and small enough that a zero row stays zero.
_SMALLEST_NORM = 1e-18


def row_norms(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
    """Lengths of the rows of both feature matrices, ``[2, B]``; never 0, so dividing by them is safe."""
    norms = torch.stack((torch.linalg.vector_norm(image, dim=1), torch.linalg.vector_norm(text, dim=1)))
    return norms.clamp_(min=_SMALLEST_NORM)


def unit_rows(features: torch.Tensor) -> torch.Tensor:
    """Features divided by their row norms, ``[B, D]``; a zero row stays zero."""
    norm = torch.linalg.vector_norm(features, dim=1, keepdim=True)
    unit: torch.Tensor = features / norm.clamp(min=_SMALLEST_NORM)
    return unit


def rescaled_rows(features: torch.Tensor) -> torch.Tensor:
    """Rows divided by their largest entry, for features whose squares leave the range of the dtype."""
    largest = features.detach().abs().amax(1, keepdim=True)
    return features / torch.where(largest > 0, largest, torch.ones_like(largest))


def same_label_mask(labels: torch.Tensor) -> torch.Tensor:
    """True where two pairs show the same thing and so are no negatives of each other, ``[B, B]``.

    Example:
        >>> same_label_mask(torch.tensor([4, 9, 4])).int().tolist()
        [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    """
    return labels[:, None] == labels[None, :]


def count_negatives(labels: torch.Tensor) -> torch.Tensor:
    """Number of negatives of all anchors together, an int64 scalar, without a ``[B, B]`` pass.

    Example:
        >>> int(count_negatives(torch.tensor([4, 9, 4, 4])))
        6
    """
    ordered = labels.sort().values
    last = torch.searchsorted(ordered, ordered, right=True)
    first = torch.searchsorted(ordered, ordered)
    return (labels.shape[0] - (last - first)).sum()
