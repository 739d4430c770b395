"""From curve values to relative weights, and from relative weights to one loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uwml_core.weighting.namespace import namespace_of

COMBINATIONS = ("multiply", "add")
NORMALIZATIONS = ("l2", "sum", "rss", "none")

# From sums over the anchors at hand to those over all anchors, some of which may be in other processes.
Total = Callable[..., tuple[Any, ...]]


def at_hand(*sums: Any) -> tuple[Any, ...]:
    """The sums as they are: all anchors are at hand."""
    return sums


def combined_weight(weight: Any, direction_weight: Any, stage_factor: Any) -> Any:
    """Pair, direction and stage weight as one: the plain mean of the three (``combination="add"``).

    Args:
        weight: array ``[..., n]`` of pair weights; 0 marks an anchor without negatives and stays 0.
        direction_weight: weight of the direction, in [0, 1]; broadcasts with ``weight``.
        stage_factor: steepness relative to its largest, in [0, 1]; broadcasts with ``weight``.

    Returns:
        Array of the shape of ``weight``, in [0, 1].

    Example:
        >>> import numpy as np
        >>> combined_weight(np.array([1.0, 0.4, 0.0]), 0.5, 0.6).round(3).tolist()
        [0.7, 0.5, 0.0]
    """
    xp = namespace_of(weight)
    return xp.where(weight > 0, (weight + direction_weight + stage_factor) / 3.0, xp.zeros_like(weight))


def relative_weight(weight: Any, max_weight: float = 2.0, *, total: Total = at_hand) -> Any:
    """Weights divided by their mean over the last axis, then clamped.

    The mean runs over anchors that have a weight; weight 0 marks an anchor without negatives.

    Args:
        weight: array ``[..., n]``, values >= 0.
        max_weight: upper clamp on the relative weight, >= 1.
        total: adds sums up over all anchors, where others hold some of them.

    Returns:
        Array ``[..., n]`` in [0, max_weight]; all 0 where no anchor has weight.

    Example:
        >>> import numpy as np
        >>> relative_weight(np.array([1.0, 1.0, 7.0, 0.0]), max_weight=2.0).round(3).tolist()
        [0.333, 0.333, 2.0, 0.0]
    """
    xp = namespace_of(weight)
    summed, count = total(xp.sum(weight, axis=-1, keepdims=True), _count(xp, weight)[..., None])
    mean = _or_one(xp, summed) / _or_one(xp, count)
    relative = weight / mean
    return xp.where(relative > max_weight, xp.full_like(relative, max_weight), relative)


def effective_sample_size(weight: Any, *, total: Total = at_hand) -> Any:
    """Kish's effective sample size (sum r)^2 / sum r^2 over the last axis.

    Args:
        weight: array ``[..., n]``, values >= 0; scale does not matter.
        total: as in ``relative_weight``.

    Returns:
        Array ``[...]`` in [1, n]; 0 where no anchor has weight.

    Reference:
        L. Kish, Survey Sampling, 1965, section 11.7.

    Example:
        >>> import numpy as np
        >>> float(effective_sample_size(np.array([2.0, 2.0, 0.0])))
        2.0
    """
    xp = namespace_of(weight)
    summed, squares = total(xp.sum(weight, axis=-1), xp.sum(weight * weight, axis=-1))
    return summed * summed / _or_one(xp, squares)


def loss_denominator(relative: Any, normalization: str = "l2", *, total: Total = at_hand) -> Any:
    """What the weighted sum of base losses is divided by, over the last axis.

    ``l2``: sqrt(n sum r^2), so the loss is the weighted mean times sqrt(ESS / n). ``sum``: sum r.
    ``rss``: sqrt(sum r^2). ``none``: n, the number of anchors that have a weight.

    Args:
        relative: array ``[..., n]`` of relative weights.
        normalization: one of ``NORMALIZATIONS``.
        total: as in ``relative_weight``.

    Returns:
        Array ``[...]``, > 0 (1 where no anchor has weight, so an empty direction gives 0, not NaN).

    Raises:
        ValueError: if ``normalization`` is unknown.

    Example:
        >>> import numpy as np
        >>> [float(loss_denominator(np.ones(4), name)) for name in NORMALIZATIONS]
        [4.0, 4.0, 2.0, 4.0]
    """
    xp = namespace_of(relative)
    if normalization == "l2":
        count, squares = total(_count(xp, relative), xp.sum(relative * relative, axis=-1))
        denominator = xp.sqrt(count * squares)
    elif normalization == "sum":
        (denominator,) = total(xp.sum(relative, axis=-1))
    elif normalization == "rss":
        denominator = xp.sqrt(total(xp.sum(relative * relative, axis=-1))[0])
    elif normalization == "none":
        (denominator,) = total(_count(xp, relative))
    else:
        known = ", ".join(NORMALIZATIONS)
        raise ValueError(f"normalization={normalization!r} is unknown; choose one of {known}")
    return _or_one(xp, denominator)


def _count(xp: Any, weight: Any) -> Any:
    return xp.sum(xp.astype(weight > 0, weight.dtype), axis=-1)


def _or_one(xp: Any, values: Any) -> Any:
    return xp.where(values > 0, values, xp.ones_like(values))
