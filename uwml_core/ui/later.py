"""Values that take longer than a page may wait: computed once, in a thread, shown when they are there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from uwml_core.ui.background import Task
from uwml_core.ui.frame import apply_language
from uwml_core.ui.text import note

T = TypeVar("T")

REFRESH_S = 1.0
_PENDING = "_awaited"
_lock = threading.Lock()


@dataclass(eq=False)
class _Awaited(Task[T]):
    """A value to come, and whether a page has been drawn without it."""

    asked: bool = False


def later(key: Hashable, work: Callable[[], T], *, wanted: bool = True, after_page: bool = False) -> T | None:
    """A value that somebody's thread computes; None until it is there.

    The page calls ``await_later`` at its end, which draws it anew when the value has come.

    Args:
        key: identifies the value; a second visitor who asks for it gets the same.
        work: computes it, without any call to Streamlit.
        wanted: whether to begin where nobody has; without, the value is only looked for.
        after_page: begin only when the page stands, so that it need not share the processor.
    """
    task: _Awaited[T] = _task(key)

    def begin() -> None:
        with _lock:
            if not task.began:
                task.start(lambda _tell: work())

    if wanted and (task.asked or not after_page):
        begin()
    task.asked |= wanted
    if wanted and (task.runs or not task.began):
        st.session_state.setdefault(_PENDING, []).append((task, begin))
    note(task.problem)
    return task.result


def await_later() -> None:
    """Draw the page again as soon as a value that it lacks has come."""
    pending: list[tuple[Task[object], Callable[[], None]]] = st.session_state.pop(_PENDING, [])
    if not pending:
        return
    drawn = time.monotonic()

    @st.fragment(run_every=REFRESH_S)
    def wait() -> None:
        apply_language()
        if time.monotonic() - drawn < REFRESH_S / 2:
            # the first time, as a part of the page
            return
        for _task, begin in pending:
            begin()
        if not all(task.runs for task, _begin in pending):
            st.rerun(scope="app")

    wait()


@st.cache_resource(max_entries=256, show_spinner=False)
def _task(key: Hashable) -> _Awaited[T]:
    return _Awaited()
