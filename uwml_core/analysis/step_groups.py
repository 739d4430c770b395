"""Rows grouped by step and direction, the unit in which weights are relative to each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uwml_core.weighting import effective_sample_size, loss_denominator, relative_weight


@dataclass(frozen=True)
class StepGroups:
    """Groups of neighbouring rows; one group is one direction of one step.

    Attributes:
        starts: first row of each group, int64 ``[groups]``.
        counts: rows of each group, int64 ``[groups]``, >= 1.
        step: step of each group.
        direction: position of each group's direction.
    """

    starts: np.ndarray
    counts: np.ndarray
    step: np.ndarray
    direction: np.ndarray

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Sum of a row value in each group, float64 ``[groups]``."""
        if not len(self.starts):
            return np.empty(0)
        return np.add.reduceat(values, self.starts, dtype=np.float64)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Each group's value repeated for its rows."""
        return np.repeat(values, self.counts)

    def relative_weight(self, weight: np.ndarray, max_weight: float) -> np.ndarray:
        """``weighting.relative_weight`` within each group, ``[rows]``."""
        result = np.empty_like(weight)
        for block in self._blocks:
            block.put(result, relative_weight(block.take(weight), max_weight))
        return result

    def effective_sample_size(self, relative: np.ndarray) -> np.ndarray:
        """``weighting.effective_sample_size`` of each group, float64 ``[groups]``."""
        return self._reduce(relative, effective_sample_size)

    def loss_denominator(self, relative: np.ndarray, normalization: str) -> np.ndarray:
        """``weighting.loss_denominator`` of each group, float64 ``[groups]``."""
        return self._reduce(relative, lambda block: loss_denominator(block, normalization))

    def _reduce(self, values: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        result = np.empty(len(self.starts))
        for block in self._blocks:
            result[block.groups] = function(block.take(values))
        return result

    @cached_property
    def _blocks(self) -> list[_Block]:
        # Groups of similar size share a padded matrix: one matrix for all would be as wide as the widest.
        size_class = np.ceil(np.log2(self.counts)).astype(np.int64)
        return [self._block(np.flatnonzero(size_class == size)) for size in np.unique(size_class)]

    def _block(self, groups: np.ndarray) -> _Block:
        counts = self.counts[groups]
        columns = np.arange(counts.max())
        rows = self.starts[groups][:, None] + columns
        inside = columns < counts[:, None]
        if not inside.all():
            return _Block(groups, rows[inside], inside)
        is_whole = len(groups) == len(self.starts)
        return _Block(groups, slice(None) if is_whole else rows.ravel(), inside)


@dataclass(frozen=True)
class _Block:
    """Groups as a matrix, one per line; ``inside`` is False where a line is padded."""

    groups: np.ndarray
    rows: np.ndarray | slice
    inside: np.ndarray

    def take(self, values: np.ndarray) -> np.ndarray:
        # Weight 0 marks a row that is not there, in the weighting functions as in here.
        if self.is_full:
            return np.reshape(values[self.rows], self.inside.shape)
        block = np.zeros(self.inside.shape, dtype=values.dtype)
        block[self.inside] = values[self.rows]
        return block

    def put(self, target: np.ndarray, block: np.ndarray) -> None:
        target[self.rows] = block.ravel() if self.is_full else block[self.inside]

    @cached_property
    def is_full(self) -> bool:
        return bool(self.inside.all())


def group_rows(step: np.ndarray, direction: np.ndarray) -> tuple[StepGroups, np.ndarray | None]:
    """Group rows by step and direction.

    Args:
        step: int64 ``[rows]``.
        direction: int64 ``[rows]``, >= 0.

    Returns:
        The groups and the order ``[rows]`` in which rows must be taken for them; None where the rows
        already stand group by group, as a log has them.
    """
    changed = np.ones(len(step), dtype=bool)
    changed[1:] = (np.diff(step) != 0) | (np.diff(direction) != 0)
    starts = np.flatnonzero(changed)
    heads = np.stack([step[starts], direction[starts]])
    order = None
    if len(np.unique(heads, axis=1).T) < len(starts):
        order = np.lexsort((direction, step))
        regrouped, _ = group_rows(step[order], direction[order])
        return regrouped, order
    counts = np.diff(np.append(starts, len(step)))
    return StepGroups(starts, counts, heads[0], heads[1]), order
