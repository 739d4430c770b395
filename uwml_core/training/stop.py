"""Ending a run when somebody asks for it: at the next step, with everything saved."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class AgreedEnd(BaseException):
    """A run ends early, in all of its processes at the same step."""


class TrainingStopped(AgreedEnd, KeyboardInterrupt):
    """A run was ended by a signal, after a checkpoint as far as one could be written.

    Attributes:
        path: folder of the run.
        step: steps completed.
        saved: steps completed at the last checkpoint that was written; None without one.
        signal: number of the signal.
    """

    def __init__(self, path: Path, step: int, saved: int | None, signal_number: int) -> None:
        super().__init__(f"stopped after {step} steps")
        self.path, self.step, self.saved, self.signal = path, step, saved, signal_number


class StopRequest:
    """Takes SIGINT and SIGTERM as a wish while it is entered; a second one interrupts at once.

    Outside the main thread signals cannot be taken, and nothing is ever requested.

    Attributes:
        signal: number of the signal that came, None before.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._take) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
