"""The newest good result of a question that may fail, such as a listing over the network."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Generic, TypeVar

import pyarrow as pa

FAILURES = (OSError, pa.ArrowException)

FIRST_TRIES = 3
FIRST_DELAY_S = 0.2
PATIENCE_S = 2.0
LONGEST_DELAY_S = 30.0
# a question that takes long is asked more rarely, so that the answers never fill the line
_PAUSES = 5

_Value = TypeVar("_Value")


class LastGood(Generic[_Value]):
    """Keeps the newest good answer; after failures it is asked for ever more rarely.

    Args:
        ask: the question.
        nothing: the answer while there is none.
    """

    def __init__(self, ask: Callable[[], _Value], nothing: _Value) -> None:
        self._ask = ask
        self.value = nothing
        self.read_at: datetime | None = None
        self.problem = ""
        self._failures = 0
        self._asked = self._due = float("-inf")
        self._lock = threading.Lock()

    def get(self, max_age_s: float) -> _Value:
        """The answer, asked for again where it is older; the last good one where that fails.

        Only the very first question is repeated at once; a later one waits for its time.
        """
        # whoever finds somebody asking takes what is there
        if self._lock.acquire(blocking=self.read_at is None):
            try:
                if time.monotonic() >= max(self._due, self._asked + max_age_s):
                    self._look()
            finally:
                self._lock.release()
        return self.value

    def expire(self) -> None:
        """Have the next question asked, whatever its age, unless failures forbid it."""
        self._asked = float("-inf")
        if not self._failures:
            self._due = float("-inf")

    def _look(self) -> None:
        end = time.monotonic() + PATIENCE_S
        tries = 1 if self.read_at or self._failures else FIRST_TRIES
        for attempt in range(tries):
            # a store's own client may have tried several times already, which takes seconds
            if self._try() or time.monotonic() > end:
                return
            time.sleep(FIRST_DELAY_S * 2**attempt)

    def _try(self) -> bool:
        began = time.monotonic()
        try:
            value = self._ask()
        except FAILURES as error:
            self._failures += 1
            lines = str(error).strip().splitlines()
            self.problem = lines[0] if lines else type(error).__name__
            # doubling ends long before the number overflows
            delay = min(FIRST_DELAY_S * 2 ** min(self._failures, 20), LONGEST_DELAY_S)
            self._due = time.monotonic() + delay
            return False
        self._asked = time.monotonic()
        self._due = self._asked + _PAUSES * (self._asked - began)
        self.value, self.read_at, self.problem, self._failures = value, datetime.now(UTC), "", 0
        return True
