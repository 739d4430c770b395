"""Work that takes longer than a page may: in a thread, with progress, for the visitor who asked for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import streamlit as st

T = TypeVar("T")
Tell = Callable[[int, int, str], None]
# A few at once: each holds a core, and the pages need some too.
_AT_ONCE = threading.BoundedSemaphore(2)


@dataclass(eq=False)
class Task(Generic[T]):
    """One piece of work.

    Attributes:
        result: what it gave, None until then.
        problem: why it failed; empty otherwise.
        done, total, name: how far it is.
    """

    result: T | None = None
    problem: str = ""
    done: int = 0
    total: int = 1
    name: str = ""
    _thread: threading.Thread | None = field(default=None, repr=False)

    @property
    def began(self) -> bool:
        """Whether it was ever started."""
        return self._thread is not None

    @property
    def runs(self) -> bool:
        """Whether it is still at it."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[Tell], T], *, after_s: float = 0.0) -> None:
        """Begin, or wait some seconds first; ``work`` is told how to report its progress."""
        self._thread = threading.Thread(
            target=self._work, args=(work, after_s), name="uwml-task", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the end, at most so long."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _work(self, work: Callable[[Tell], T], after_s: float) -> None:
        time.sleep(after_s)
        try:
            with _AT_ONCE:
                self.result = work(self._tell)
        except Exception as error:
            # the page says it: nobody waits for this thread
            self.problem = f"{type(error).__name__}: {error}"

    def _tell(self, done: int, total: int, name: str) -> None:
        self.done, self.total, self.name = done, total, name


def show_progress(task: Task[T]) -> None:
    """Draw how far a task is."""
    st.progress(task.done / max(task.total, 1), task.name)
