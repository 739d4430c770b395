"""What the similarities of a batch tell by themselves, whatever loss trains on them.

Shapes: B pairs of the batch; axis 0 of ``[2, B]`` is the direction. Arrays are NumPy arrays or tensors of
a library that ``array_api_compat`` knows; none is imported here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from uwml_core.runlog.arrays import host, integers
from uwml_core.runlog.rows import check_length

# A larger matrix is reduced at once: hundreds of steps may wait for the writer thread.
_KEPT_BYTES = 2**20


class Hardest(NamedTuple):
    """Positives and hardest negatives of each anchor, ``[2, B]``, where the similarities lay.

    Attributes:
        positive: similarity to the positive.
        negative: similarity to the hardest negative, -inf where there is none.
        index: its position in the batch, of no meaning where there is none.
        negatives: how many negatives each anchor has, the same both ways, ``[B]``.
        finite: whether all similarities of a row are finite, ``[B]``.
    """

    positive: Any
    negative: Any
    index: Any
    negatives: Any
    finite: Any


def hardest_negatives(similarity: Any, labels: Any) -> Hardest:
    """Reduce a batch's similarities to each anchor's positive and hardest negative, both ways.

    Rows are the first direction's anchors, columns the second's; pairs of equal label are never negatives
    of each other.

    Args:
        similarity: float ``[B, B]``, the pairs on the diagonal.
        labels: integers ``[B]`` on the same device.

    Example:
        >>> found = hardest_negatives(np.array([[0.9, 0.2], [0.4, 0.7]]), np.array([0, 1]))
        >>> found.negative.tolist(), found.index.tolist()
        ([[0.2, 0.4], [0.4, 0.2]], [[1, 0], [1, 0]])
    """
    xp = array_namespace(similarity)
    same = labels[:, None] == labels[None, :]
    candidates = xp.where(same, xp.full_like(similarity, -xp.inf), similarity)
    positive, anchors = xp.linalg.diagonal(similarity), xp.arange(labels.shape[0], device=device(similarity))
    index = [xp.argmax(side, axis=1) for side in (candidates, candidates.T)]
    return Hardest(
        positive=xp.stack([positive, positive]),
        negative=xp.stack([candidates[anchors, index[0]], candidates[index[1], anchors]]),
        index=xp.stack(index),
        negatives=xp.sum(xp.astype(~same, xp.int64), axis=1),
        finite=xp.all(xp.isfinite(similarity), axis=1),
    )


class SimilarityStep:
    """A step's diagnostics without a loss of ours, read by the log as ``StepDiagnostics`` is.

    Construction checks and copies, the rest is computed when the first field is read. A matrix above
    1 MiB is reduced at once, where it lies, so that little memory waits for the writer thread.

    Args:
        similarity: cosine similarities ``[B, B]``, the pairs on the diagonal; NumPy array or tensor.
        labels: whole numbers ``[B]``; equal ones are never negatives of each other.
        directions: names of both directions, that of the rows first.
        name: what the caller calls the labels, for messages.

    Attributes:
        batch_size, own_pairs: pairs of the batch, known without looking at the similarities.
        pair_loss, pair_weight, weight, gradient_share, loss: None, as only a loss could tell them.

    Raises:
        ValueError: if the similarities are no square matrix of finite floats, or labels do not fit. On an
            accelerator, where looking would wait for it, numbers are looked at when they are read.
    """

    pair_loss = pair_weight = weight = gradient_share = loss = None

    def __init__(
        self, similarity: Any, labels: Any, directions: tuple[str, str], name: str = "labels"
    ) -> None:
        self.directions = directions
        self.batch_size = self.own_pairs = _batch_of(similarity)
        check_length(name, labels, self.batch_size)
        similarity = _plain_floats(similarity)
        on_host = isinstance(similarity, np.ndarray)
        if on_host and not np.isfinite(similarity).all():
            raise _not_finite(np.isfinite(similarity).all(axis=1))
        if on_host or not hasattr(labels, "detach"):
            labels = integers(labels, np.int64, name)
        if not on_host:
            labels = array_namespace(similarity).asarray(labels, device=device(similarity))
        waits = on_host and similarity.nbytes <= _KEPT_BYTES
        # a copy: loops mask their similarities in place
        self._inputs = (similarity.copy(), labels) if waits else None
        self._found = None if waits else hardest_negatives(similarity, labels)

    @cached_property
    def _host(self) -> Hardest:
        if self._inputs is not None:
            self._found = hardest_negatives(*self._inputs)
        found = Hardest(*map(host, self._found or ()))
        if not found.finite.all():
            raise _not_finite(found.finite)
        self._inputs = self._found = None
        return found

    @property
    def _missing(self) -> NDArray[np.bool_]:
        return np.broadcast_to(self._host.negatives == 0, self._host.index.shape)

    @property
    def negative_index(self) -> NDArray[np.int64]:
        """Position of the hardest negative in the batch ``[2, B]``, -1 where there is none."""
        return np.where(self._missing, -1, self._host.index)

    @property
    def positive_similarity(self) -> NDArray[Any]:
        """Similarity to the positive ``[2, B]``."""
        values: NDArray[Any] = self._host.positive
        return values

    @property
    def negative_similarity(self) -> NDArray[Any]:
        """Similarity to the hardest negative ``[2, B]``, NaN where there is none."""
        return np.where(self._missing, np.float32(np.nan), self._host.negative)

    @property
    def margin(self) -> NDArray[Any]:
        """Positive minus hardest negative ``[2, B]``, NaN where there is none."""
        margin: NDArray[Any] = self.positive_similarity - self.negative_similarity
        return margin

    @property
    def gap(self) -> NDArray[np.float64]:
        """Mean margin of each direction ``[2]``, NaN without any negative."""
        return self._mean(self.margin)

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Share of the anchors with a negative whose margin is above 0 ``[2]``."""
        return self._mean(self.margin > 0)

    def _mean(self, values: NDArray[Any]) -> NDArray[np.float64]:
        known = self._host.negatives > 0
        # without any anchor the mean of nothing would warn
        total: NDArray[np.float64] = values[:, known].sum(axis=1, dtype=np.float64)
        mean: NDArray[np.float64] = np.divide(total, known.sum(), out=np.full(2, np.nan), where=known.any())
        return mean

    @property
    def no_negative_count(self) -> NDArray[np.float64]:
        """Anchors without negatives ``[2]``."""
        count: NDArray[np.float64] = self._missing.sum(axis=1, dtype=np.float64)
        return count

    @property
    def negatives_per_anchor(self) -> float:
        """Mean number of negatives."""
        return float(self._host.negatives.mean())


def _batch_of(similarity: Any) -> int:
    shape, kind = tuple(getattr(similarity, "shape", ())), getattr(similarity, "dtype", type(similarity))
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise ValueError(
            f"sim has shape {list(shape)}; expected [batch, batch] similarities, each pair on the diagonal"
        )
    if "float" not in str(kind):
        raise ValueError(f"sim has type {kind}; expected floating-point similarities")
    return int(shape[0])


def _plain_floats(similarity: Any) -> Any:
    """Without a graph, in float32 or float64; a NumPy array unless it lies on an accelerator."""
    if hasattr(similarity, "detach"):
        similarity = similarity.detach()
    xp = array_namespace(similarity)
    if similarity.dtype != xp.float64:
        similarity = xp.astype(similarity, xp.float32, copy=False)
    # NumPy searches several times faster than torch on one thread
    return host(similarity) if str(device(similarity)) == "cpu" else similarity


def _not_finite(finite: NDArray[np.bool_]) -> ValueError:
    rows = np.flatnonzero(~finite)[:5].tolist()
    return ValueError(f"sim is not finite in rows {rows}; expected similarities of finite embeddings")
