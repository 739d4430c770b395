"""Bounded hand-over from the training thread to the writer thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import NamedTuple

from uwml_core.runlog.records import Record


class Taken(NamedTuple):
    """All records, the last flush request, and seconds blocked and records dropped since the last time."""

    records: list[Record]
    request: int
    stalled_s: float
    dropped: int


class RecordBuffer:
    """Queue of records that one thread fills, others add to now and then, and the writer empties.

    ``put`` blocks while ``capacity`` records wait, for ``patience_s`` at most: a file system that hangs
    must not stop training, so records are then dropped, and counted, until the writer takes again.

    To write a part costs about as much whether it holds a hundred steps or three hundred. So where records
    come fast the writer rests between two parts, unless many wait.

    Args:
        batch: records that wake the writer.
        capacity: records that may wait.
        patience_s: longest block, seconds.
        rest_s: from one time that the writer takes to the next that it is woken with a batch, seconds.
    """

    def __init__(self, *, batch: int, capacity: int, patience_s: float = 30.0, rest_s: float = 0.0) -> None:
        self._batch, self._capacity, self._patience_s = batch, capacity, patience_s
        self._many = max(batch, 3 * capacity // 4)
        self._rest_s, self._rested = rest_s, 0.0
        self._records: deque[Record] = deque()
        # a plain lock: entering it costs the training thread no Python call
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = False
        self._hung = False
        self._requested = self._served = 0
        self._stalled_s = 0.0
        self._dropped = 0

    def put(self, record: Record) -> None:
        """Append a record; blocks while the buffer is full."""
        records = self._records
        waiting = len(records)
        if waiting < self._batch - 1 or self._batch <= waiting < self._many - 1:
            # nobody is to be woken, and a deque needs no lock
            records.append(record)
            return
        with self._lock:
            if len(records) >= self._capacity and not self._wait_for_room():
                self._dropped += 1
                return
            records.append(record)
            if len(records) >= self._batch:
                self._changed.notify_all()

    def _wait_for_room(self) -> bool:
        if self._hung:
            return False
        start = time.monotonic()
        self._changed.notify_all()
        room = self._changed.wait_for(lambda: len(self._records) < self._capacity, self._patience_s)
        self._stalled_s += time.monotonic() - start
        self._hung = not room
        return room

    def wait(self, timeout_s: float) -> bool:
        """Wait until there is a reason to write or the time is over; True when there is a reason."""
        end = time.monotonic() + timeout_s
        with self._changed:
            while not self._is_due():
                now = time.monotonic()
                if now >= end:
                    return False
                # less than a batch wakes nobody
                self._changed.wait((min(end, self._rested) if self._is_batch() else end) - now)
            return True

    def _is_due(self) -> bool:
        if self._closing or self._requested > self._served or len(self._records) >= self._many:
            return True
        return self._is_batch() and time.monotonic() >= self._rested

    def _is_batch(self) -> bool:
        return len(self._records) >= self._batch

    def take(self) -> Taken:
        """Empty the buffer."""
        with self._changed:
            records = [self._records.popleft() for _ in range(len(self._records))]
            taken = Taken(records, self._requested, self._stalled_s, self._dropped)
            self._stalled_s, self._dropped, self._hung = 0.0, 0, False
            self._rested = time.monotonic() + self._rest_s
            self._changed.notify_all()
            return taken

    def served(self, request: int) -> None:
        """Say that everything taken up to a flush request was handled."""
        with self._changed:
            self._served = max(self._served, request)
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Ask the writer to write now and wait for it; False when the time is over first."""
        with self._changed:
            self._requested += 1
            request = self._requested
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._served >= request, timeout_s)

    def close(self) -> None:
        """Wake the writer for the last time."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    @property
    def closing(self) -> bool:
        """Whether ``close`` was called."""
        return self._closing
