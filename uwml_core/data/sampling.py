"""Which pairs an epoch shows, as pure functions of seed, epoch and item.

Nothing here has a state: any step of any epoch can be computed on its own, in any order and process, so
a resumed run sees exactly what an unbroken one would.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

UInts = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

CAPTIONS, ORDER, SAMPLE = 1, 2, 3

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def random_bits(seed: int, stream: int, epoch: int, index: npt.ArrayLike) -> UInts:
    """64 random bits for each index: a counter-based generator (SplitMix64's finaliser, chained).

    Args:
        seed: seed of the run, any integer.
        stream: one of ``CAPTIONS``, ``ORDER``, ``SAMPLE``; different uses never share numbers.
        epoch: epoch, from 0.
        index: integers [n], such as the rows of a data set.

    Returns:
        uint64 [n], a pure function of the four arguments.

    Reference: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
    """
    state = np.zeros(1, dtype=np.uint64)
    for word in (seed % 2**64, stream, epoch):
        state = _mix(state + np.array(word, dtype=np.uint64))
    return _mix(state + np.asarray(index).astype(np.uint64))


def _mix(state: UInts) -> UInts:
    z = state + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def draw_captions(seed: int, epoch: int, rows: npt.ArrayLike, counts: npt.ArrayLike) -> Ints:
    """Index of the caption that each row shows in an epoch.

    Args:
        seed: seed of the run.
        epoch: epoch, from 0.
        rows: int [n], rows of the data set.
        counts: int [n], captions of each of these rows, >= 1.

    Returns:
        int64 [n], in [0, counts); the same for a row whatever else is asked.
    """
    bits = random_bits(seed, CAPTIONS, epoch, rows)
    return (bits % np.asarray(counts).astype(np.uint64)).astype(np.int64)


def epoch_batches(seed: int, epoch: int, rows: Ints, labels: npt.NDArray[np.integer], size: int) -> Ints:
    """Rows of every batch of an epoch, shuffled without replacement.

    The remainder that fills no batch sits this epoch out, another one in the next. A batch of a single
    label would have no negatives; one of its rows is exchanged where another batch can give one.

    Args:
        seed: seed of the run.
        epoch: epoch, from 0.
        rows: int64 [n], rows to draw from.
        labels: int [n], their labels.
        size: pairs per batch; clipped to n.

    Returns:
        int64 [batches, min(size, n)].

    Raises:
        ValueError: with fewer than two labels, or a size below 2.
    """
    if size < 2:
        raise ValueError(f"size={size!r} leaves a batch without negatives; expected >= 2")
    if len(np.unique(labels)) < 2:
        raise ValueError(f"labels name {len(np.unique(labels))} concept(s); expected at least 2 as negatives")
    size = min(size, len(rows))
    order = np.argsort(random_bits(seed, ORDER, epoch, rows), kind="stable")
    picked = order[: len(rows) // size * size].reshape(-1, size)
    return rows[_spread(picked, labels, spare=order[picked.size :])]


def _spread(picked: Ints, labels: npt.NDArray[np.integer], spare: Ints) -> Ints:
    """Give each batch of a single label a row of another one, from the spare rows or another batch."""
    batch_labels = labels[picked]
    for batch in np.flatnonzero((batch_labels == batch_labels[:, :1]).all(axis=1)):
        label = int(labels[picked[batch, 0]])
        if (labels[picked[batch]] != label).any():
            continue  # an earlier exchange mixed it
        useful = np.flatnonzero(labels[spare] != label)
        if len(useful):
            picked[batch, 0], spare[useful[0]] = spare[useful[0]], picked[batch, 0]
            continue
        for other in range(len(picked)):
            column = _exchangeable(labels[picked[other]], label)
            if column is not None:
                picked[batch, 0], picked[other, column] = picked[other, column], picked[batch, 0]
                break
    return picked


def _exchangeable(batch: npt.NDArray[np.integer], label: int) -> int | None:
    """Column of another label whose exchange for ``label`` leaves the batch with two labels."""
    for column in np.flatnonzero(batch != label):
        rest = np.delete(batch, column)
        if (rest != label).any():
            return int(column)
    return None
